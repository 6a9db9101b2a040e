# The tests of the guest, one function per step. init.sh runs them.
steps="devices pingpong foreign suite pair link doctor sync2 async2 sync3 async3 modes limit port removal"

# limit_of STEP prints its time limit in seconds.
limit_of() {
	case $1 in
	suite | pair | link | sync* | async* | modes | port | removal) echo 240 ;;
	*) echo 120 ;;
	esac
}

# wait_for SECONDS COMMAND ... repeats the command until it succeeds.
wait_for() {
	tries=$(($1 * 10))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "timed out: $*"; return 1; }
		sleep 0.1
	done
}

# prepare creates one looped-back device on its own network interface, the most reliable setup
# with this kernel. Its GID 1 is RoCE v2 of 10.1.1.1.
prepare() {
	while read -r m; do insmod "/modules/$m" || return 1; done </modules/load.list
	/bin/ip link set lo up &&
		/bin/ip link add d0 type dummy && /bin/ip link set d0 up mtu 9000 && /bin/ip addr add 10.1.1.1/24 dev d0 &&
		/bin/rdma link add rxe0 type rxe netdev d0 && wait_for 20 has_gid rxe0
}

has_gid() { grep -q 0a01:0101 /sys/class/infiniband/"$1"/ports/1/gids/* 2>/dev/null; }

devices() { ibv_devinfo -d rxe0; }

# pingpong runs rdma-core's programs alone. A failure here is one of the guest.
pingpong() {
	for kind in rc uc; do
		ibv_${kind}_pingpong -d rxe0 -g 1 -n 100 >/tmp/$kind.log 2>&1 &
		wait_for 10 listening 4853 && # 18515
			ibv_${kind}_pingpong -d rxe0 -g 1 -n 100 127.0.0.1 | tail -n 1 && wait $! || return 1
	done
}

# listening PORT reports whether a TCP port is open. The port is hexadecimal, as in /proc.
listening() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$1 [^ ]* 0A "; }

# suite tests the contract of verbs over one looped-back device.
suite() {
	export VERBS_DEVICES=rxe0 VERBS_GID=1 VERBS_NETDEV=d0
	tests verbs.test 'Suite' && tests libibverbs.test 'Call|ThisSystem|LockLimit'
}

# foreign tests the provider against rdma-core's programs.
foreign() {
	export VERBS_DEVICES=rxe0 VERBS_GID=1
	tests libibverbs.test 'ForeignPeer'
}

# pair tests the contract between two devices, at the ends of a veth. (With addresses other than
# link-local ones this kernel sends the packets through the loopback interface.)
pair() {
	echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad # no delay before an address is usable
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

# settled INTERFACE reports whether duplicate detection of its link-local address is over.
settled() { /bin/ip -6 addr show dev "$1" scope link -tentative | grep -q fe80; }

# link runs the tests of links that also run over software adapters.
link() {
	export VERBS_DEVICES=rxe0
	tests ib.test 'Device'
}

# tests PROGRAM PATTERN runs tests and prints their output without "===" lines.
tests() {
	{
		"$1" -test.v -test.run "$2" -test.timeout 200s 2>&1
		echo $? >"/tmp/$1.status"
	} | grep -v '^=== '
	return "$(cat "/tmp/$1.status")"
}

# The program with peers as processes, in both schemes. A synchronous run gives the same numbers
# as the run over UDP that run.sh has done outside, to the last bit. An asynchronous run meets
# the tolerance.
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

# field NAME FILE prints the first field of that name, a number or a list.
field() { grep -o -E "\"$1\":(\[[^]]*\]|[^,]*)" "$2" | head -n 1; }

async2() { solve --method richardson --scheme async --peers 2 --tol 1e-3 && over_verbs; }
async3() { solve --method richardson --scheme async --peers 3 --tol 1e-2 --ib-mode one-sided && over_verbs; }

# modes tests that every --ib-mode works; speed would be that of an emulated processor.
# Synchronous runs give the same numbers in all modes.
modes() {
	for scheme in sync async; do
		for mode in segments messages one-sided; do
			solve --method richardson --scheme $scheme --peers 2 --tol 1e-2 --ib-mode $mode && over_verbs || return 1
			echo "$scheme $mode: $(field sum /tmp/verbs.json) $(field sweeps /tmp/verbs.json) $(field messages /tmp/verbs.json) $(field bytes /tmp/verbs.json)"
			[ $scheme = async ] && continue
			[ $mode = segments ] && first=$(field sum /tmp/verbs.json)
			[ "$(field sum /tmp/verbs.json)" = "$first" ] || return 1
		done
	done
}

# limit tests the limit on locked memory of an unprivileged user: too low for the blocks, with an
# error that names the value needed, and sufficient for fewer blocks.
limit() {
	echo 'nobody:x:65534:65534::/tmp:/sbin/sh' >/etc/passwd
	as_nobody 1024 '' >/tmp/limit.log 2>&1
	rc=$?
	cat /tmp/limit.log
	[ $rc = 2 ] && grep -q ' 1024 KiB.*RLIMIT_MEMLOCK.*below the' /tmp/limit.log || return 1
	as_nobody 8192 '--ib-blocks 400'
}

as_nobody() { su nobody -c "ulimit -l $1; obstacle solve membrane --n 16 --method richardson --tol 1e-2 --peers 2 --network ib $2"; }

# port takes the port down during a run and up again: sessions move to UDP and return, and the
# numbers are the same.
port() {
	during_run || return 1
	/bin/ip link set d0 down
	wait_for 60 in_log 1 'rail down' && wait_for 60 in_log 1 'halo.*SequencedSegment.*session adapted' || { finished; return 1; }
	/bin/ip link set d0 up
	wait_for 60 in_log 3 'rail up' && wait_for 60 in_log 1 'halo.*"Synchronous"\].*session adapted' || { finished; return 1; }
	finished
}

# removal deletes the interface and its device during a run. This kernel's rxe reports that the
# port is down, and removes the device when its users have closed it.
removal() {
	during_run || return 1
	/bin/ip link delete d0 &
	deletion=$!
	wait_for 60 in_log 1 'rail down' && wait_for 60 in_log 1 'halo.*SequencedSegment.*session adapted'
	finished && wait $deletion && wait_for 60 without_device
}

without_device() { [ ! -e /sys/class/infiniband/rxe0 ]; }

# during_run starts a run with its sessions over verbs: --network auto prefers shared memory except
# between clusters. A gate (obstacle/internal/gate) lets one sweep pass in 100 ms, so that the run
# exchanges halos and does not end before finished, which opens the gate, waits for the end and
# compares the numbers.
during_run() {
	: >/tmp/run.log
	rm -rf /tmp/gate && mkdir /tmp/gate
	OBSTACLE_TEST_AS_PROGRAM="as it is" OBSTACLE_TEST_GATE='{"Dir":"/tmp/gate","Sweep":5,"Every":100000000}' \
		held solve membrane --n 32 --network auto --clusters 2 --scheme sync --format json --log-level debug --log-format json \
		$(cat /reference/sync2.flags) >/tmp/verbs.json 2>/tmp/run.log &
	run=$!
	wait_for 60 in_log 1 'relaxing' || { cat /tmp/run.log; finished; return 1; }
}

# in_log N PATTERN reports whether the log has at least N matching lines.
in_log() { [ "$(grep -c -E "$2" /tmp/run.log)" -ge "$1" ]; }

finished() {
	: >/tmp/gate/open
	wait "$run"
	rc=$?
	grep -E 'rail|session adapted|iterated' /tmp/run.log | sed 's/"time":"[^"]*T/"/' | cut -c1-300
	[ $rc = 0 ] && same_numbers 2
}

# solve FLAG ... runs the program over verbs, with output to /tmp/verbs.json.
solve() {
	obstacle solve membrane --n 32 --network ib --format json "$@" >/tmp/verbs.json || { echo "obstacle solve $*: exit $?"; return 1; }
	for field in converged relative_residual sum sweeps seconds; do field $field /tmp/verbs.json; done | tr '\n' ' '
	echo
}

# over_verbs reports whether every session of the last run used the InfiniBand rail.
over_verbs() {
	sessions=$(grep -o '"column":"[^"]*"' /tmp/verbs.json | sort | uniq -c)
	echo "$sessions"
	case $sessions in *ether*) echo "a session was not on InfiniBand"; return 1 ;; *ib*) ;; *) return 1 ;; esac
}

# Steps that test the verdict: run.sh fail, run.sh hang, run.sh crash.
fail() { false; }
hang() { sleep 1000; }
crash() { echo c >/proc/sysrq-trigger; }
