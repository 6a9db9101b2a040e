# What the guest tests, a function a step; init.sh runs them.
steps="devices pingpong foreign suite pair link doctor sync2 async2 sync3 async3 modes limit port removal"

# limit_of STEP: seconds that it may take.
limit_of() {
	case $1 in
	suite | pair | link | sync* | async* | modes | port | removal) echo 240 ;;
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
	tests verbs.test 'Suite' && tests libibverbs.test 'Call|ThisSystem|LockLimit'
}

# Our end against rdma-core's programs.
foreign() {
	export VERBS_DEVICES=rxe0 VERBS_GID=1
	tests libibverbs.test 'ForeignPeer'
}

# The same between two devices, one on each end of a veth. (Over other addresses than
# those of the link itself, this kernel's packets take the loopback interface.)
pair() {
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad # an address is there when its interface is
	/bin/ip link add v0 type veth peer name v1 || return 1
	for n in 0 1; do
		/bin/ip link set "v$n" up mtu 4500 && /bin/rdma link add "rxev$n" type rxe netdev "v$n" || return 1
	done
	wait_for 20 settled v0 && wait_for 20 settled v1 || return 1
	export VERBS_DEVICES=rxev0,rxev1 VERBS_GID=0 VERBS_NETDEV=v1
	tests verbs.test 'Suite'
	rc=$?
	/bin/rdma link delete rxev0 && /bin/rdma link delete rxev1 && /bin/ip link delete v0 || return 1
	return $rc
}

# settled INTERFACE: it has a link-local address that is known to be the only one.
settled() { /bin/ip -6 addr show dev "$1" scope link -tentative | grep -q fe80; }

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

# The program, its peers processes, in both schemes. A synchronous run gives the same
# numbers as the one over UDP that run.sh has done outside, on a real processor, to the
# last bit; an asynchronous one meets the tolerance.
doctor() { obstacle doctor; }

sync2() { as_reference 2; }
sync3() { as_reference 3; }

as_reference() {
	solve --scheme sync $(cat "/reference/sync$1.flags") && same_numbers "$1" && over_verbs
}

same_numbers() {
	for field in sum relative_residual residual_inf contact_points sweeps; do
		udp=$(field $field "/reference/sync$1.json")
		verbs=$(field $field /tmp/verbs.json)
		echo "over UDP $udp, over verbs $verbs"
		[ -n "$udp" ] && [ "$udp" = "$verbs" ] || return 1
	done
}

# field NAME FILE: the first of that name, a number or a list.
field() { grep -o -E "\"$1\":(\[[^]]*\]|[^,]*)" "$2" | head -n 1; }

async2() { solve --scheme async --peers 2 --tol 1e-3 && over_verbs; }
async3() { solve --scheme async --peers 3 --tol 1e-2 --ib-mode one-sided && over_verbs; }

# The three ways to carry messages side by side: that each works, not how fast it is,
# for an emulated processor would decide that. Synchronous runs agree whatever the way.
modes() {
	for scheme in sync async; do
		for mode in segments messages one-sided; do
			solve --scheme $scheme --peers 2 --tol 1e-2 --ib-mode $mode && over_verbs || return 1
			echo "$scheme $mode: $(field sum /tmp/verbs.json) $(field sweeps /tmp/verbs.json) $(field messages /tmp/verbs.json) $(field bytes /tmp/verbs.json)"
			[ $scheme = async ] && continue
			[ $mode = segments ] && first=$(field sum /tmp/verbs.json)
			[ "$(field sum /tmp/verbs.json)" = "$first" ] || return 1
		done
	done
}

# The limit on locked memory, for who is not root: too low for the blocks, named with the
# value needed; enough for fewer blocks.
limit() {
	echo 'nobody:x:65534:65534::/tmp:/sbin/sh' >/etc/passwd
	as_nobody 1024 '' >/tmp/limit.log 2>&1
	rc=$?
	cat /tmp/limit.log
	[ $rc = 2 ] && grep -q ' 1024 KiB.*RLIMIT_MEMLOCK.*below the' /tmp/limit.log || return 1
	as_nobody 8192 '--ib-blocks 400'
}

as_nobody() { su nobody -c "ulimit -l $1; obstacle solve membrane --n 16 --tol 1e-2 --peers 2 --network ib $2"; }

# The port goes down in mid-run, and comes back: sessions move to UDP and return, and
# the numbers are the same.
port() {
	during_run || return 1
	/bin/ip link set d0 down
	wait_for 60 in_log 1 'rail down' && wait_for 60 in_log 1 'halo.*SequencedSegment.*session adapted' || { finished; return 1; }
	/bin/ip link set d0 up
	wait_for 60 in_log 3 'rail up' && wait_for 60 in_log 1 'halo.*"Synchronous"\].*session adapted' || { finished; return 1; }
	finished
}

# The interface, and the device with it, is taken away in mid-run. This kernel's rxe
# cannot leave its users: it tells them that the port is down, and goes when they have
# closed it.
removal() {
	during_run || return 1
	/bin/ip link delete d0 &
	deletion=$!
	wait_for 60 in_log 1 'rail down' && wait_for 60 in_log 1 'halo.*SequencedSegment.*session adapted'
	finished && wait $deletion && wait_for 60 without_device
}

without_device() { [ ! -e /sys/class/infiniband/rxe0 ]; }

# during_run: a run is going on, slowed down so that it lasts, with its sessions over
# verbs; finished waits for its end and compares.
during_run() {
	: >/tmp/run.log
	obstacle solve membrane --n 32 --network auto --scheme sync --slow 0:6 --format json --log-level debug --log-format json \
		$(cat /reference/sync2.flags) >/tmp/verbs.json 2>/tmp/run.log &
	run=$!
	wait_for 60 in_log 1 'relaxing' || { cat /tmp/run.log; return 1; }
}

# in_log N PATTERN: at least so many lines.
in_log() { [ "$(grep -c -E "$2" /tmp/run.log)" -ge "$1" ]; }

finished() {
	wait "$run"
	rc=$?
	grep -E 'rail|session adapted|iterated' /tmp/run.log | sed 's/"time":"[^"]*T/"/' | cut -c1-300
	[ $rc = 0 ] && same_numbers 2
}

# solve FLAG ...: its answer is /tmp/verbs.json.
solve() {
	obstacle solve membrane --n 32 --network ib --format json "$@" >/tmp/verbs.json || { echo "obstacle solve $*: exit $?"; return 1; }
	for field in converged relative_residual sum sweeps seconds; do field $field /tmp/verbs.json; done | tr '\n' ' '
	echo
}

# over_verbs: every session of the last run was on the InfiniBand rail.
over_verbs() {
	sessions=$(grep -o '"column":"[^"]*"' /tmp/verbs.json | sort | uniq -c)
	echo "$sessions"
	case $sessions in *ether*) echo "a session was not on InfiniBand"; return 1 ;; *ib*) ;; *) return 1 ;; esac
}

# For trying the verdict: run.sh fail, run.sh hang, run.sh crash.
fail() { false; }
hang() { sleep 1000; }
crash() { echo c >/proc/sysrq-trigger; }
