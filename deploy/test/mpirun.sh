#!/bin/sh
# Solves under Open MPI and MPICH on this host, from Debian's packages. Exit status: 0 passed or skipped, with a
# warning; 1 failed.
what=mpirun
. "$(dirname "$0")/common.sh"

install openmpi-bin mpich procps
build
open="mpirun.openmpi --oversubscribe"
[ "$(id -u)" = 0 ] && open="$open --allow-run-as-root"
$open -n 2 true >"$work/t.err" 2>&1 && mpiexec.mpich -n 2 true >>"$work/t.err" 2>&1 ||
	skip "the launchers do not run here: $(tail -n 3 "$work/t.err")"

for scheme in sync async; do
	$open -n 4 "$obstacle" solve membrane --n 32 --scheme $scheme --format json >"$work/a.out" 2>"$work/a.err" ||
		die "Open MPI: exit $?"
	solved "$work/a.out" 4 "Open MPI, mpirun -n 4 obstacle solve"
	mpiexec.mpich -n 4 "$obstacle" solve membrane --n 32 --scheme $scheme --format json >"$work/b.out" 2>"$work/b.err" ||
		die "MPICH: exit $?"
	solved "$work/b.out" 4 "MPICH, mpiexec -n 4 obstacle solve"
done

# Two jobs at one time do not meet each other.
$open -n 2 "$obstacle" solve membrane --n 32 --format json >"$work/c.out" 2>"$work/c.err" &
one=$!
mpiexec.mpich -n 3 "$obstacle" solve membrane --n 32 --format json >"$work/d.out" 2>"$work/d.err" &
two=$!
mpiexec.mpich -n 2 "$obstacle" solve membrane --n 32 --format json >"$work/e.out" 2>"$work/e.err" || die "MPICH: exit $?"
wait $one && wait $two || die "one of three jobs at one time failed"
solved "$work/c.out" 2 "one of three jobs at one time"
solved "$work/d.out" 3 "another"
solved "$work/e.out" 2 "the third"

# With --enable-recovery of Open MPI the run goes on without a killed process.
build_held
close_gate
$open --enable-recovery -n 4 "$held" solve membrane $run --format json --log-level info >"$work/k.out" 2>"$work/k.err" &
mpirun=$!
await relaxing "$work/k.err"
for p in $(pgrep -x obstacle); do
	if tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=2" &&
		tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q "^$held solve"; then
		kill -9 "$p"
	fi
done
open_gate
wait $mpirun || true
solved "$work/k.out" 4 "Open MPI --enable-recovery, process 2 killed"
grep -q '"losses":\[{"rank":2,' "$work/k.out" || die "the answer does not name the loss of process 2"

# A wrong command is refused once, by all processes, at once.
code=0
mpiexec.mpich -n 3 "$obstacle" solve membrane --peers 2 >"$work/f.out" 2>"$work/f.err" || code=$?
[ $code = 2 ] || die "exit $code, not 2"
[ "$(grep -c 'do not make the 3 processes' "$work/f.err")" = 1 ] || die "the reason is not given once"
say "ok: --peers 2 for three processes: exit 2"
echo "VERDICT ok: make mpirun"
