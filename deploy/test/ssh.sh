#!/bin/sh
# Solves over ssh: a server of this user on loopback, from Debian's packages. Exit status: 0 passed or skipped, with a
# warning; 1 failed.
what=ssh
. "$(dirname "$0")/common.sh"

install openssh-server openssh-client procps
build
finish() { [ -f "$work/sshd.pid" ] && kill "$(cat "$work/sshd.pid")" 2>/dev/null || true; }
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/me"
port=$((20000 + $$ % 20000))
cat >"$work/sshd.conf" <<C
Port $port
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey $work/host
AuthorizedKeysFile $work/me.pub
PidFile $work/sshd.pid
StrictModes no
AcceptEnv OBSTACLE_TEST_*
UsePAM no
PasswordAuthentication no
C
[ "$(id -u)" = 0 ] && mkdir -p /run/sshd
/usr/sbin/sshd -f "$work/sshd.conf" -E "$work/sshd.err" || skip "sshd does not start: $(cat "$work/sshd.err")"
ssh="ssh -o BatchMode=yes -p $port -i $work/me -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o SendEnv=OBSTACLE_TEST_*"
printf '127.0.0.1 slots=2\n127.0.0.2\n' >"$work/hosts"

for scheme in sync async; do
	"$obstacle" solve membrane --n 32 --scheme $scheme --hosts "$work/hosts" --ssh "$ssh" --format json \
		>"$work/a.out" 2>"$work/a.err" || die "exit $?"
	solved "$work/a.out" 3 "obstacle solve --hosts"
done
PBS_NODEFILE=$work/hosts "$obstacle" solve membrane --n 32 --hosts auto --ssh "$ssh" --format json \
	>"$work/b.out" 2>"$work/b.err" || die "--hosts auto: exit $?"
solved "$work/b.out" 3 "--hosts auto with PBS_NODEFILE"

# A killed peer is started again on the next host; the remote processes end with solve.
build_held
close_gate
"$held" solve membrane $run --peers 4 --hosts "$work/hosts" --ssh "$ssh" --format json --log-level info \
	>"$work/k.out" 2>"$work/k.err" &
solve=$!
await relaxing "$work/k.err"
kill -9 "$(pgrep -f "^$held peer .*--seat 2 " | head -n 1)"
open_gate
wait $solve || die "a killed peer: exit $?"
solved "$work/k.out" 4 "a killed peer"
grep -q '"losses":\[{"rank":2,.*by ssh\|"losses":\[{"rank":2,.*started by' "$work/k.out" || die "the answer does not name the loss"
close_gate
"$held" solve membrane $run --peers 4 --hosts "$work/hosts" --ssh "$ssh" --log-level info >"$work/l.out" 2>"$work/l.err" &
solve=$!
await relaxing "$work/l.err"
kill -9 $solve
wait $solve 2>/dev/null || true
i=0
while pgrep -f "^$held peer" >/dev/null; do
	i=$((i + 1))
	[ $i -lt 200 ] || die "remote peers outlive solve"
	sleep 0.1
done
say "ok: the peers end with solve"
echo "VERDICT ok: make ssh"
