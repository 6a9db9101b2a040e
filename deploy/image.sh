#!/usr/bin/env bash
# Builds the image of the program with docker, podman or buildah, whichever works here, and solves a problem in it.
# deploy/image.sh [NAME[:TAG]]; without a builder it only builds and checks the binary, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-obstacle}
most=$((45 * 1000 * 1000)) # bytes

# Without the tag the program links the C library at run time, for libibverbs, and an image from scratch has none.
vcs=false # names the commit, where Git can read it
git rev-parse HEAD >/dev/null 2>&1 && git status --porcelain >/dev/null 2>&1 && vcs=true
CGO_ENABLED=0 GOOS=linux go build -buildvcs=$vcs -trimpath -tags nolibibverbs -ldflags='-s -w' -o bin/obstacle ./cmd/obstacle
size=$(stat -c %s bin/obstacle)
echo "bin/obstacle: $size bytes"
[ "$size" -le "$most" ] || { echo "bin/obstacle has more than $most bytes" >&2; exit 1; }
if LC_ALL=C grep -q ld-linux bin/obstacle; then
  echo "bin/obstacle is not statically linked" >&2
  exit 1
fi

# The vfs driver and chroot need neither overlay mounts nor namespaces, which containers often lack.
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
solve=(/obstacle solve membrane --n 16 --peers 2 --network ether --format json)
if docker info >/dev/null 2>&1; then
  docker build -q -t "$name" .
  answer=$(docker run --rm --network none --read-only --cap-drop ALL --entrypoint "${solve[0]}" "$name" "${solve[@]:1}")
elif command -v buildah >/dev/null; then
  buildah build -q -t "$name" .
  container=$(buildah from "$name")
  trap 'buildah rm "$container" >/dev/null' EXIT
  answer=$(buildah run --cap-drop ALL "$container" "${solve[@]}")
elif command -v podman >/dev/null && podman info >/dev/null 2>&1; then
  podman build -q -t "$name" .
  answer=$(podman run --rm --network none --read-only --cap-drop ALL --entrypoint "${solve[0]}" "$name" "${solve[@]:1}")
else
  echo "SKIPPED: the image of $name: no docker daemon, buildah (apt-get install buildah) or podman here" >&2
  exit 0
fi
case $answer in
*'"converged":true'*) echo "image $name: solves" ;;
*) echo "the program in the image has not solved: $answer" >&2; exit 1 ;;
esac
