#!/usr/bin/env bash
# Builds the release of the last commit in two clones with different paths, the second time with an empty build cache,
# and compares all files. Then it installs the Debian package in a folder of its own and runs the program. Its arguments are those of the program release, such as -targets linux/amd64.
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

# The package of this machine, if it was built: what dpkg installs must run, and know its commit.
package=$(ls "$work"/one/*_linux_"$(go env GOARCH)".deb 2>/dev/null || true)
if [ -z "$package" ] || ! command -v dpkg >/dev/null; then
  echo "package: NOT CHECKED, there is none for this machine, or no dpkg"
  exit 0
fi
root=$work/root
mkdir -p "$root"/var/lib/dpkg/{info,updates}
touch "$root/var/lib/dpkg/status"
dpkg --root="$root" --force-not-root --log="$work/dpkg.log" -i "$package" >/dev/null
"$root/usr/bin/obstacle" version
"$root/usr/bin/obstacle" version --format json | grep -q "\"commit\":\"$(git rev-parse HEAD)\".*\"modified\":false"
"$root/usr/bin/obstacle" solve membrane --n 12 --peers 2 --format json | grep -q '"converged":true'
for f in share/man/man1/obstacle-solve.1.gz share/bash-completion/completions/obstacle share/doc/obstacle/sbom.cdx.json; do
  test -s "$root/usr/$f"
done
dpkg --root="$root" --force-not-root --log="$work/dpkg.log" -r obstacle >/dev/null
test ! -e "$root/usr/bin/obstacle"
echo "package: installed, run and removed"
