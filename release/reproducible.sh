#!/usr/bin/env bash
# Builds the release of the last commit in two clones with different paths, the second time with an empty build cache,
# and compares all files. Then it installs the Debian package of this machine (package.sh). Its arguments are those of the program release, such as -targets linux/amd64.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

git clone -q "$source" "$work/first"
git clone -q "$source" "$work/second/of-another-depth"
(cd "$work/first" && go run ./release "$@" -out "$work/one")
(cd "$work/second/of-another-depth" && GOCACHE=$work/cache go run ./release "$@" -out "$work/two" >/dev/null)
diff -r "$work/one" "$work/two"
(cd "$work/one" && sha256sum --quiet --check SHA256SUMS)
echo "reproducible: $(find "$work/one" -type f | wc -l) files are the same"

# The package of this machine, if it was built.
package=$(ls "$work"/one/*_linux_"$(go env GOARCH)".deb 2>/dev/null || true)
if [ -z "$package" ]; then
  echo "package: NOT CHECKED, there is none for this machine"
  exit 0
fi
release/package.sh "$package" "$(git -C "$work/first" rev-parse HEAD)"
