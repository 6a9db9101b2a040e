#!/bin/sh
# Solves under Slurm: two nodes on this host (slurmctld, two slurmd, munged, as root, on loopback, in a temporary
# directory), from Debian's packages. Exit status: 0 passed or skipped, with a warning; 1 failed.
what=slurm
. "$(dirname "$0")/common.sh"

install slurm-wlm munge procps
[ "$(id -u)" = 0 ] || skip "the daemons of Slurm run as root"
build

finish() {
	for f in "$work"/*.pid; do
		[ -f "$f" ] && kill "$(cat "$f")" 2>/dev/null || true
	done
	sleep 0.5
}

mkdir -p "$work/state" "$work/n1" "$work/n2" "$work/munge"
head -c 128 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
munged --force --key-file="$work/munge.key" --socket="$work/munge/socket" --log-file="$work/munge.log" \
	--pid-file="$work/munge.pid" --seed-file="$work/munge.seed" 2>"$work/munge.err" || skip "munged does not start: $(cat "$work/munge.err")"
port=$((20000 + $$ % 20000))
here=$(hostname -s)
sed -e "s#@DIR@#$work#g; s#@HOST@#$here#g; s#@CTL@#$port#; s#@D1@#$((port + 1))#; s#@D2@#$((port + 2))#" \
	deploy/test/slurm.conf >"$work/slurm.conf"
export SLURM_CONF="$work/slurm.conf"
slurmctld -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N n1 && slurmd -f "$SLURM_CONF" -N n2 || skip "the daemons do not start"
i=0
until [ "$(sinfo -h -o '%T %D' 2>/dev/null)" = "idle 2" ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || skip "Slurm does not start here: $(sinfo 2>&1 | tail -n 2; tail -n 2 "$work"/*.err)"
	sleep 0.1
done
say "two nodes are idle"

# 1. Both schemes over both nodes, one answer each.
for scheme in sync async; do
	srun -N2 -n4 "$obstacle" solve membrane --n 32 --scheme $scheme --format json >"$work/a.out" 2>"$work/a.err" ||
		die "srun: exit $?"
	solved "$work/a.out" 4 "srun -N2 -n4 obstacle solve"
done

# An iteration of a program of its own.
CGO_ENABLED=0 ${GO:-go} build -o "$work/pagerank" ./examples/pagerank
srun -N2 -n4 "$work/pagerank" solve pagerank --scheme async --format json >"$work/i.out" 2>"$work/i.err" || die "pagerank: exit $?"
solved "$work/i.out" 4 "srun -N2 -n4 pagerank solve pagerank"

# 2. The secret on the standard input of all tasks; and PMI-2 of Slurm.
"$obstacle" secret "$work/run.secret" >/dev/null
srun -N2 -n3 "$obstacle" solve membrane --n 32 --rendezvous "127.0.0.1:$((port + 3))" --secret-file - --format json \
	<"$work/run.secret" >"$work/b.out" 2>"$work/b.err" || die "secret on standard input: exit $?"
solved "$work/b.out" 3 "the secret on standard input"
srun --mpi=pmi2 -n3 "$obstacle" solve membrane --n 32 --format json >"$work/c.out" 2>"$work/c.err" || die "pmi2: exit $?"
solved "$work/c.out" 3 "srun --mpi=pmi2"

# 3. The host lists of Slurm are the oracle of ours.
${GO:-go} test -vet=off ./obstacle/internal/engine -run Scontrol >"$work/o.err" 2>&1 || die "host lists: $(cat "$work/o.err")"
say "ok: host lists as scontrol show hostnames"

# 4. Any task may be killed: the run goes on, and one task prints the answer.
# kill_task RANK kills the process of a task, which is a child of slurmstepd.
kill_task() {
	for p in $(pgrep -x obstacle); do
		if tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$1" &&
			tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q "^$held solve"; then
			kill -9 "$p" && return
		fi
	done
	die "task $1 is not there"
}
build_held
for rank in 2 0; do
	close_gate
	srun --no-kill -K0 -N2 -n4 "$held" solve membrane $run --scheme async --format json --log-level info \
		>"$work/k.out" 2>"$work/k.err" &
	srun=$!
	await 'this process can lead the run' "$work/k.err"
	await relaxing "$work/k.err"
	kill_task $rank
	open_gate
	wait $srun && die "srun does not tell that a task was killed" || code=$?
	[ $code = 137 ] || die "srun exits with $code, not 137"
	solved "$work/k.out" 4 "task $rank killed"
	grep -q "\"losses\":\[{\"rank\":$rank," "$work/k.out" || die "the answer does not name the loss of task $rank"
	: >"$work/k.err"
done

# 5. A spare task takes the place of a killed one.
close_gate
srun --no-kill -K0 -N2 -n4 "$held" solve membrane $run --peers 3 --spares 1 --format json --log-level info >"$work/s.out" 2>"$work/s.err" &
srun=$!
await 'spare peer joined' "$work/s.err"
await relaxing "$work/s.err"
kill_task 1
open_gate
wait $srun || true
solved "$work/s.out" 3 "a spare task"
grep -q '"by":"spare' "$work/s.out" || die "no spare task took the place"

# 6. A requeued job continues from its checkpoint.
cat >"$work/job.sh" <<J
#!/bin/sh
exec srun "$held" solve membrane $run --checkpoint "$work/checkpoint" --format json --log-level info
J
close_gate
id=$(sbatch --parsable -N2 -n4 --requeue --open-mode=append -o "$work/job.err" "$work/job.sh")
await relaxing "$work/job.err"
scontrol requeue "$id"
await '"resumable":true' "$work/job.err"
open_gate
say "ok: requeued: exit 3, resumable"
i=0
until [ "$(squeue -h -j "$id" -o %T)" = PENDING ] && scontrol update "JobId=$id" StartTime=now 2>/dev/null; do
	i=$((i + 1))
	[ $i -lt 300 ] || die "the job is not requeued: $(squeue)"
	sleep 0.1
done
await '"converged":true' "$work/job.err"
grep '"resumed":{"from"' "$work/job.err" >"$work/job.out" || die "the requeued job has begun again"
solved "$work/job.out" 4 "the requeued job, from its checkpoint"
i=0
until [ -z "$(squeue -h -j "$id" 2>/dev/null)" ]; do # without its controller, srun would wait for ever
	i=$((i + 1))
	[ $i -lt 300 ] || die "the requeued job does not end: $(squeue)"
	sleep 0.1
done

# 7. Variables that a process inherited from a step do not mislead a plain solve.
(
	export SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_TASK_PID=1234567
	"$obstacle" solve membrane --n 16 --peers 1 --format json >"$work/p.out" 2>"$work/p.err" || die "plain solve: exit $?"
)
solved "$work/p.out" 1 "a plain solve beside old variables"
echo "VERDICT ok: make slurm"
