#!/bin/sh
# Tests on the real verbs stack where there is no adapter: a guest kernel with
# soft-RoCE (rdma_rxe), built from Debian's packages and emulated by QEMU.
#
#   ib/guest/run.sh [STEP ...]    without steps: all of them (init.sh lists them)
#
# Exit status: 0 if every step passed, or if the guest cannot be built here (with a warning;
# with GUEST_REQUIRED=1 that fails too); 1 if a step or the guest failed.
# GUEST_CACHE (default .cache/guest) keeps the kernel between runs; remove it to get a newer
# kernel. GUEST_TIME is the time limit of the guest in seconds. GUEST_ACCEL is QEMU's -accel.
set -eu
cd "$(dirname "$0")/../.."

cache=${GUEST_CACHE:-.cache/guest}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
limit=${GUEST_TIME:-600}
accel=${GUEST_ACCEL:-tcg,thread=multi}
root=$cache/root
log=$cache/console.log

skip() {
	echo "######################################################################" >&2
	echo "## make verbs SKIPPED: $*" >&2
	echo "## The libibverbs provider was NOT tested against the RDMA stack." >&2
	echo "######################################################################" >&2
	[ "${GUEST_REQUIRED:-0}" = 0 ] && exit 0
	exit 1
}

say() { echo "guest: $*"; }

# Packages that the guest is built from. The kernel is unpacked, never installed.
packages="qemu-system-x86 busybox-static cpio kmod iproute2 libibverbs1 ibverbs-providers ibverbs-utils"

install_packages() {
	[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || skip "needs Linux on x86-64, this is $(uname -s) on $(uname -m)"
	command -v dpkg-deb >/dev/null && command -v apt-get >/dev/null || skip "needs Debian's packages (dpkg-deb, apt-get)"
	missing=
	for p in $packages; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
	done
	[ -z "$missing" ] && return
	[ "$(id -u)" = 0 ] || skip "not installed, and not root to install them:$missing"
	say "installing:$missing"
	refresh || skip "apt-get update failed"
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >"$cache/apt.log" 2>&1 ||
		{ tail -5 "$cache/apt.log" >&2; skip "apt-get install failed:$missing"; }
}

# image_package prints the kernel that linux-image-amd64 depends on. The cloud kernel has no RDMA.
image_package() {
	apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: *\(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1
}

# refresh updates apt's package lists, once.
refresh() {
	[ -z "${updated:-}" ] && [ "$(id -u)" = 0 ] || return 1
	updated=1
	apt-get update -qq
}

download() { (cd "$cache/kernel/deb" && apt-get -o APT::Sandbox::User=root download -qq "$1"); }

fetch_kernel() {
	[ -f "$cache/kernel/done" ] && return
	image=$(image_package)
	[ -n "$image" ] || { refresh && image=$(image_package); }
	[ -n "$image" ] || skip "no package linux-image-amd64 here"
	say "unpacking $image"
	rm -rf "$cache/kernel" && mkdir -p "$cache/kernel/deb"
	download "$image" || { refresh && image=$(image_package) && download "$image"; } || skip "cannot download $image"
	dpkg-deb --fsys-tarfile "$cache"/kernel/deb/*.deb | tar -x -C "$cache/kernel" --wildcards \
		'*/boot/vmlinuz*' '*/modules.builtin*' '*/modules.order' '*/kernel/crypto/*' '*/kernel/lib/*' \
		'*/kernel/drivers/infiniband/*' '*/kernel/drivers/net/dummy.ko*' '*/kernel/drivers/net/veth.ko*' \
		'*/kernel/fs/configfs/*' '*/kernel/net/ipv4/*' '*/kernel/net/ipv6/*'
	rm -r "$cache/kernel/deb"
	[ -d "$cache/kernel/lib" ] || ln -s usr/lib "$cache/kernel/lib"
	depmod -b "$cache/kernel" "$(ls "$cache/kernel/lib/modules")"
	touch "$cache/kernel/done"
}

# copy_modules writes the modules and load.list, their order of loading. rxe needs crc32 at run
# time, which its dependencies do not name.
copy_modules() {
	version=$(ls "$cache/kernel/lib/modules")
	mkdir -p "$root/modules"
	: >"$root/modules/load.list"
	for m in crc32_generic rdma_rxe rdma_ucm dummy veth; do
		modprobe -d "$cache/kernel" -S "$version" --show-depends "$m" | awk '$1 == "insmod" {print $2}'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "$file" .xz)
		case $file in *.xz) xz -dc "$file" >"$root/modules/$name" ;; *) cp "$file" "$root/modules/$name" ;; esac
		echo "$name" >>"$root/modules/load.list"
	done
	[ -s "$root/modules/load.list" ] || { say "this kernel has no rdma_rxe" >&2; exit 1; }
}

# copy_program copies a program and the libraries that the loader finds for it.
copy_program() {
	cp "$1" "$root/bin/"
	ldd "$1" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | while read -r lib; do
		mkdir -p "$root$(dirname "$lib")"
		cp -nL "$lib" "$root$lib"
	done
}

# copy_library copies the provider that libibverbs loads by name, which ldd does not see. Its
# folder depends on how the library was built.
copy_library() {
	lib=$(dirname "$(ldd "$(command -v ibv_devinfo)" | sed -n 's/.*libibverbs.so.1 => \([^ ]*\).*/\1/p')")
	for so in "$lib"/libibverbs/librxe-rdmav*.so /usr/lib/*/libibverbs/librxe-rdmav*.so; do
		[ -f "$so" ] || continue
		mkdir -p "$root$(dirname "$so")"
		cp "$so" "$root$so"
	done
	mkdir -p "$root/etc/libibverbs.d"
	cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
}

build_initramfs() {
	rm -rf "$root"
	mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/etc"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp ib/guest/init.sh "$root/init"
	cp ib/guest/steps.sh "$root/steps.sh"
	chmod +x "$root/init"
	copy_modules
	for p in ip rdma ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong; do
		copy_program "$(PATH=$PATH:/usr/sbin:/sbin command -v $p)"
	done
	copy_library
	mkdir -p "$cache/bin"
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$cache/bin/obstacle" ./cmd/obstacle
	CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$cache/bin/verbs.test" ./ib/internal/verbs
	CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$cache/bin/libibverbs.test" ./ib/internal/verbs/libibverbs
	CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$cache/bin/ib.test" ./ib
	# obstacle with the gate of its tests (obstacle/internal/gate)
	CGO_ENABLED=0 go test -vet=off -c -trimpath -ldflags '-s -w' -o "$cache/bin/held" ./obstacle
	for p in obstacle held verbs.test libibverbs.test ib.test; do copy_program "$cache/bin/$p"; done
	solve_references
	(cd "$root" && find . | cpio -o -H newc --quiet) >"$cache/initramfs"
}

# solve_references runs the synchronous solves over UDP here; the guest compares its own.
solve_references() {
	mkdir -p "$root/reference"
	for peers in 2 3; do
		flags="--method richardson --peers $peers --tol 1e-$((5 - peers))"
		echo "$flags" >"$root/reference/sync$peers.flags"
		# shellcheck disable=SC2086
		"$cache/bin/obstacle" solve membrane --n 32 --scheme sync --network ether --format json $flags >"$root/reference/sync$peers.json"
	done
}

# boot runs the guest. Its verdict is a line on the console, missing after a panic or a hang.
boot() {
	say "booting $(ls "$cache/kernel/lib/modules") with $(($(wc -c <"$cache/initramfs") >> 20)) MiB, at most $limit s"
	timeout "$limit" qemu-system-x86_64 -accel "$accel" -smp 2 -m 1024 -nodefaults -no-user-config \
		-display none -no-reboot -serial stdio -kernel "$cache"/kernel/boot/vmlinuz* -initrd "$cache/initramfs" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off -- $*" \
		</dev/null 2>&1 | tr -d '\r' | tee "$log"
	grep -q 'guest: VERDICT ok' "$log" && return
	grep -q 'guest: VERDICT' "$log" || say "no verdict: the guest died, or took longer than $limit s (log: $log)" >&2
	exit 1
}

mkdir -p "$cache"
start=$(date +%s)
install_packages
fetch_kernel
build_initramfs
say "built in $(($(date +%s) - start)) s"
boot "$@"
say "done in $(($(date +%s) - start)) s"
