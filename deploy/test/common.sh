# Functions of the tests under real launchers. A test sets $what, its name, and sources this file.
set -eu
cd "$(dirname "$0")/../.."

skip() {
	echo "######################################################################" >&2
	echo "## make $what SKIPPED: $*" >&2
	echo "######################################################################" >&2
	[ "${LAUNCHERS_REQUIRED:-0}" = 0 ] && exit 0
	exit 1
}

say() { echo "$what: $*"; }

die() {
	echo "$what: FAILED: $*" >&2
	tail -n 20 "$work"/*.err >&2 2>/dev/null || true
	exit 1
}

# install PACKAGE ... installs Debian's packages where they are missing.
install() {
	missing=
	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
	done
	[ -z "$missing" ] && return
	command -v apt-get >/dev/null || skip "needs Debian's packages:$missing"
	[ "$(id -u)" = 0 ] || skip "not installed, and not root to install them:$missing"
	say "installing:$missing"
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
		>"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log" >&2; skip "apt-get install failed:$missing"; }
}

work=$(mktemp -d)
chmod 755 "$work"
finish() { :; }
trap 'finish; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
export XDG_CACHE_HOME="$work/cache"
obstacle=$work/obstacle

# build builds the program, or takes that in OBSTACLE.
build() {
	[ -n "${OBSTACLE:-}" ] && cp "$OBSTACLE" "$obstacle" && return
	say "building obstacle"
	CGO_ENABLED=0 ${GO:-go} build -o "$obstacle" ./cmd/obstacle
}

# solved FILE PEERS requires one answer in JSON that is solved by so many peers.
solved() {
	[ "$(grep -c '^{' "$1")" = 1 ] || die "$1: $(grep -c '^{' "$1") answers, not one"
	grep -q '"converged":true' "$1" || die "$1: not solved: $(cut -c1-300 "$1")"
	grep -q "\"peers\":$2," "$1" || die "$1: not by $2 peers: $(cut -c1-300 "$1")"
	say "ok: $3: $(grep -o '"scheme":"[a-z]*"' "$1"), $(grep -o '"relative_residual":[^,]*' "$1" | tail -n 1)"
}

# await TEXT FILE waits until a file holds a text, for a minute at most.
await() {
	i=0
	while ! grep -q -- "$1" "$2" 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 600 ] || die "$2 never said: $1"
		sleep 0.1
	done
}

# build_held builds $held, the program with the gate of its tests (obstacle/internal/gate): after five relaxations its peers wait
# until open_gate. So a run cannot end before the test disturbs it, on any machine. close_gate comes before a run.
build_held() {
	held=$work/held/obstacle
	say "building obstacle with a gate"
	CGO_ENABLED=0 ${GO:-go} test -vet=off -c -o "$held" ./obstacle
	export OBSTACLE_TEST_AS_PROGRAM="as it is" OBSTACLE_TEST_GATE="{\"Dir\":\"$work/gate\",\"Sweep\":5}"
}
close_gate() { rm -rf "$work/gate" && mkdir -p "$work/gate"; }
open_gate() { : >"$work/gate/open"; }

# run holds the flags of a run of four peers that is disturbed.
run="--method richardson --n 32 --tol 1e-8"
