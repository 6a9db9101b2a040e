# What the guest tests, a function a step; init.sh runs them.
steps="devices pingpong suite link solve"

# limit_of STEP: seconds that it may take.
limit_of() {
	case $1 in
	suite | link) echo 240 ;;
	*) echo 120 ;;
	esac
}

# wait_for SECONDS COMMAND ...: until the command succeeds.
wait_for() {
	tries=$(($1 * 10))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "waited in vain for: $*"; return 1; }
		sleep 0.1
	done
}

# One device on a netdev of its own, looped back: the surest with this kernel. RoCE v2
# of 10.1.1.1 is index 1 of its GIDs.
prepare() {
	while read -r m; do insmod "/modules/$m" || return 1; done </modules/load.list
	/bin/ip link set lo up &&
		/bin/ip link add d0 type dummy && /bin/ip link set d0 up mtu 9000 && /bin/ip addr add 10.1.1.1/24 dev d0 &&
		/bin/rdma link add rxe0 type rxe netdev d0 && wait_for 20 has_gid rxe0
}

has_gid() { grep -q 0a01:0101 /sys/class/infiniband/"$1"/ports/1/gids/* 2>/dev/null; }

devices() { ibv_devinfo -d rxe0; }

# The foreign programs alone: what fails here is the guest's fault, not ours.
pingpong() {
	for kind in rc uc; do
		ibv_${kind}_pingpong -d rxe0 -g 1 -n 100 >/tmp/$kind.log 2>&1 &
		wait_for 10 listening 4853 && # 18515
			ibv_${kind}_pingpong -d rxe0 -g 1 -n 100 127.0.0.1 | tail -n 1 && wait $! || return 1
	done
}

# listening PORT: in hexadecimal, as /proc has it.
listening() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$1 [^ ]* 0A "; }

# The provider's contract, over one device looped back.
suite() {
	export VERBS_DEVICES=rxe0 VERBS_GID=1 VERBS_NETDEV=d0
	tests libibverbs.test 'Suite|Call|ThisSystem'
}

# The link over it: the same tests as over adapters made of software.
link() {
	export VERBS_DEVICES=rxe0
	tests ib.test 'Device'
}

# tests PROGRAM PATTERN: what it prints, but for the lines of starts and pauses.
tests() {
	{
		"$1" -test.v -test.run "$2" -test.timeout 200s 2>&1
		echo $? >"/tmp/$1.status"
	} | grep -v '^=== '
	return "$(cat "/tmp/$1.status")"
}

solve() { obstacle solve membrane --n 16 --network ether --peers 2 --format json; }

# For trying the verdict: run.sh fail, run.sh hang, run.sh crash.
fail() { false; }
hang() { sleep 1000; }
crash() { echo c >/proc/sysrq-trigger; }
