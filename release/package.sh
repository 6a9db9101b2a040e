#!/usr/bin/env bash
# Installs a Debian package of the program with dpkg, in a folder of its own, runs the program, and removes it again:
# package.sh FILE.deb COMMIT. It fails unless the program was built from that commit without changes.
set -euo pipefail
package=$1 commit=$2
if ! command -v dpkg >/dev/null; then
  echo "package: NOT CHECKED, there is no dpkg"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/var/lib/dpkg/{info,updates}
touch "$root/var/lib/dpkg/status"

manage() { dpkg --root="$root" --force-not-root --log="$work/dpkg.log" "$@" >/dev/null; }
fail() {
  echo "package: $1" >&2
  exit 1
}

if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$package" || fail "lintian reports errors or warnings"
  echo "package: lintian reports nothing"
else
  echo "package: NOT CHECKED by lintian, which is missing: apt-get install lintian"
fi
[ "$(dpkg-deb -f "$package" Depends)" = libc6 ] || fail "the package depends on other packages than libc6"
manage --force-depends -i "$package" 2>/dev/null # libc6 is that of this machine
"$root/usr/bin/obstacle" version
version=$("$root/usr/bin/obstacle" version --format json)
[[ $version == *"\"commit\":\"$commit\""* ]] || fail "the program is not of commit $commit: $version"
[[ $version == *"\"modified\":false"* ]] || fail "the program was built from a changed checkout: $version"
answer=$("$root/usr/bin/obstacle" solve membrane --n 12 --peers 2 --format json)
[[ $answer == *"\"converged\":true"* ]] || fail "the program did not solve a problem: $answer"
for f in share/man/man1/obstacle-solve.1.gz share/bash-completion/completions/obstacle share/doc/obstacle/sbom.cdx.json share/doc/obstacle/LICENSES.txt.gz; do
  [ -s "$root/usr/$f" ] || fail "/usr/$f is missing"
done
manage -r obstacle
[ ! -e "$root/usr/bin/obstacle" ] || fail "the program is still there after its removal"
echo "package: installed, run and removed"
