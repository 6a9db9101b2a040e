// Package engine reads from the environment whether a batch system or an MPI launcher started this process as one of
// several, and the hosts of a job. It reads nothing itself: its functions are pure.
package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Engines that start several processes with the same command line.
const (
	Slurm      = "slurm"
	OpenMPI    = "openmpi"
	MPICH      = "mpich" // or another launcher that speaks PMI-1, such as Intel MPI
	Kubernetes = "kubernetes"
	None       = "none"
	Auto       = "auto"
)

// Names returns the values of --engine.
func Names() []string { return []string{Auto, Slurm, OpenMPI, MPICH, Kubernetes, None} }

// Task is one of the processes of a parallel command. The zero value is that of a process that runs alone.
type Task struct {
	Engine   string // empty: no engine started several processes
	Rank     int    // from 0
	Size     int    // number of processes; 0: the engine does not state it
	Job      string // the same in all processes, and unique among jobs that run at one time; empty: not stated
	Leader   string // name of the host of rank 0; empty: not stated
	OneHost  bool   // all processes run on one host
	Restarts int    // of the whole job
	Threads  int    // processors of each process; 0: not stated
	Why      string // the variables that state rank and size, with their values
	Ignored  string // variables that are set and do not apply to this process, and why; empty: none
}

// Parallel reports whether the process is one of several.
func (t *Task) Parallel() bool { return t.Engine != "" && t.Size != 1 }

// Process holds what Read must know about this process beside its environment.
type Process struct {
	Host      string // name of the host
	Ancestors []int  // process numbers: its own, its parent's, and so on
}

// Env looks up a variable of the environment.
type Env func(name string) (value string, set bool)

// Read returns the task that this process is. want is the value of --engine: an engine's name accepts its variables
// without evidence that they were set for this process; None ignores all of them.
//
// Variables of a job are inherited by every process that is started from within it, also long after its end. Those of
// Slurm apply only if SLURM_TASK_PID is an ancestor of this process. Open MPI and MPICH in turn start their daemons
// through Slurm: then the rank is theirs.
//
// Sources: the manual pages srun(1), mpirun(1) of Open MPI 4.1, mpiexec.hydra(1), and the Kubernetes documentation of
// Jobs (completion mode Indexed).
func Read(env Env, want string, p Process) (Task, error) {
	r := reader{env: env, process: p, forced: want}
	if want == None {
		return Task{}, nil
	}
	all := []func() (Task, error){r.openMPI, r.pmi, r.slurm, r.kubernetes}
	names := []string{OpenMPI, MPICH, Slurm, Kubernetes}
	var found []Task
	var ignored string
	for i, read := range all {
		if want != Auto && want != names[i] {
			continue
		}
		t, err := read()
		if err != nil {
			return Task{}, err
		}
		if t.Ignored != "" {
			ignored = t.Ignored
		}
		if t.Engine != "" {
			found = append(found, t)
		}
	}
	if want != Auto && len(found) == 0 {
		return Task{}, fmt.Errorf("--engine %s: none of its variables is set (%s); start the program with its launcher",
			want, strings.Join(variables[want], ", "))
	}
	t, err := r.choose(found)
	if t.Engine == "" {
		t.Ignored = ignored
	}
	return t, err
}

// Unused returns what a process that runs alone within a job of Slurm leaves unused, "" if the job is for one process.
// Slurm starts a script on one host, whatever the job has: srun starts the processes.
func Unused(env Env) string {
	r := reader{env: env}
	if !r.set("SLURM_JOB_ID") {
		return ""
	}
	for _, v := range []struct{ name, what string }{
		{"SLURM_NTASKS", "tasks"}, {"SLURM_JOB_NUM_NODES", "nodes"}, {"SLURM_NNODES", "nodes"},
	} {
		if n, err := strconv.Atoi(r.get(v.name)); err == nil && n > 1 {
			return fmt.Sprintf("job %s of Slurm has %d %s (%s)", r.get("SLURM_JOB_ID"), n, v.what, v.name)
		}
	}
	return ""
}

// variables are those that state the rank.
var variables = map[string][]string{
	Slurm: {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, OpenMPI: {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	MPICH: {"PMI_RANK", "PMI_SIZE"}, Kubernetes: {"JOB_COMPLETION_INDEX"},
}

// choose returns the innermost of several tasks, or an error if they contradict each other and none is known to have
// started the other.
func (r *reader) choose(found []Task) (Task, error) {
	if len(found) == 0 {
		return Task{}, nil
	}
	inner := found[0]
	for _, outer := range found[1:] {
		carried := outer.Engine == Kubernetes || outer.Engine == Slurm &&
			(inner.Engine == OpenMPI || r.set("MPI_LOCALRANKID"))
		same := inner.Rank == outer.Rank && inner.Size == outer.Size
		if same && outer.Engine == Slurm && inner.Engine == MPICH {
			inner = outer // srun --mpi=pmi2: Slurm knows more
		} else if !same && !carried {
			return Task{}, fmt.Errorf("%s and %s contradict each other: unset those of the launcher that did not start this "+
				"process, or name the other one with --engine %s or --engine %s", inner.Why, outer.Why, inner.Engine,
				outer.Engine)
		}
	}
	return inner, nil
}

type reader struct {
	env     Env
	process Process
	forced  string
}

func (r *reader) get(name string) string {
	v, _ := r.env(name)
	return strings.TrimSpace(v)
}

func (r *reader) set(name string) bool { return r.get(name) != "" }

// most bounds the number of tasks and of hosts.
const most = 1 << 20

// ranks sets the rank and the size of a task from two variables. A task without the first one is none.
func (r *reader) ranks(t *Task, rank, size string) error {
	var err error
	if t.Rank, err = r.number(rank, 0); err != nil {
		return err
	}
	if t.Size, err = r.number(size, 1); err != nil {
		return err
	}
	t.Why = fmt.Sprintf("%s=%d of %s=%d", rank, t.Rank, size, t.Size)
	if t.Rank >= t.Size {
		return fmt.Errorf("%s: the rank must be less than the number of tasks; --engine none ignores both", t.Why)
	}
	return nil
}

func (r *reader) number(name string, least int) (int, error) {
	v, set := r.env(name)
	n, err := strconv.Atoi(strings.TrimSpace(v))
	switch {
	case !set:
		return 0, fmt.Errorf("%s is not set, but other variables of its launcher are; --engine none ignores them", name)
	case err != nil || n < least || n > most:
		return 0, fmt.Errorf("%s=%q: want a number from %d to %d; --engine none ignores it", name, v, least, most)
	}
	return n, nil
}

func (r *reader) openMPI() (Task, error) {
	if !r.set("OMPI_COMM_WORLD_RANK") {
		return Task{}, nil
	}
	t := Task{Engine: OpenMPI}
	if err := r.ranks(&t, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"); err != nil {
		return t, err
	}
	if pmix := r.get("PMIX_RANK"); pmix != "" && pmix != strconv.Itoa(t.Rank) {
		return t, fmt.Errorf("OMPI_COMM_WORLD_RANK=%d and PMIX_RANK=%s contradict each other: unset the one that the "+
			"launcher of this process has not set", t.Rank, pmix)
	}
	t.OneHost = r.get("OMPI_COMM_WORLD_LOCAL_SIZE") == strconv.Itoa(t.Size)
	t.Job = job(r.get("PMIX_NAMESPACE"), r.get("OMPI_MCA_orte_precondition_transports"), r.get("OMPI_MCA_orte_hnp_uri"))
	return t, nil
}

func (r *reader) pmi() (Task, error) {
	if !r.set("PMI_RANK") {
		return Task{}, nil
	}
	t := Task{Engine: MPICH}
	err := r.ranks(&t, "PMI_RANK", "PMI_SIZE")
	t.OneHost = r.get("MPI_LOCALNRANKS") == strconv.Itoa(t.Size)
	t.Job = job(r.get("PMI_JOBID"))
	return t, err
}

func (r *reader) slurm() (Task, error) {
	if !r.set("SLURM_PROCID") {
		return Task{}, nil
	}
	t := Task{Engine: Slurm}
	forced := r.forced == Slurm
	contradicts := r.set("PMI_RANK") && !r.set("MPI_LOCALRANKID") && r.get("PMI_RANK") != r.get("SLURM_PROCID")
	if why := r.stale(); why != "" && !forced && !contradicts {
		return Task{Ignored: fmt.Sprintf("SLURM_PROCID=%s: %s", r.get("SLURM_PROCID"), why)}, nil
	}
	size := "SLURM_STEP_NUM_TASKS"
	if !r.set(size) {
		size = "SLURM_NTASKS"
	}
	if err := r.ranks(&t, "SLURM_PROCID", size); err != nil {
		return t, err
	}
	t.OneHost = r.get("SLURM_STEP_NUM_NODES") == "1"
	t.Job = job(r.get("SLURM_CLUSTER_NAME"), r.get("SLURM_JOB_ID"), r.get("SLURM_STEP_ID"), r.get("SLURM_RESTART_COUNT"))
	if list := r.get("SLURM_STEP_NODELIST"); list != "" {
		hosts, err := ExpandNodes(list)
		if err != nil {
			return t, fmt.Errorf("SLURM_STEP_NODELIST: %w", err)
		}
		t.Leader = hosts[0]
	}
	if r.set("SLURM_RESTART_COUNT") {
		var err error
		if t.Restarts, err = r.number("SLURM_RESTART_COUNT", 0); err != nil {
			return t, err
		}
	}
	if r.set("SLURM_CPUS_PER_TASK") {
		var err error
		if t.Threads, err = r.number("SLURM_CPUS_PER_TASK", 1); err != nil {
			return t, err
		}
	}
	return t, nil
}

// stale returns why the variables of a Slurm task are not those of this process, "" if they are.
func (r *reader) stale() string {
	pid, err := strconv.Atoi(r.get("SLURM_TASK_PID"))
	switch {
	case !r.set("SLURM_STEP_ID"):
		return "not in a job step (SLURM_STEP_ID is not set); srun starts one"
	case err != nil:
		return "SLURM_TASK_PID is not set"
	case !slices.Contains(r.process.Ancestors, pid):
		return fmt.Sprintf("the task's process (SLURM_TASK_PID=%d) did not start this one; "+
			"if it did, from outside a container, give --engine slurm", pid)
	}
	return ""
}

func (r *reader) kubernetes() (Task, error) {
	if !r.set("JOB_COMPLETION_INDEX") {
		return Task{}, nil
	}
	t := Task{Engine: Kubernetes}
	var err error
	if t.Rank, err = r.number("JOB_COMPLETION_INDEX", 0); err != nil {
		return t, err
	}
	t.Why = fmt.Sprintf("JOB_COMPLETION_INDEX=%d", t.Rank)
	// The host name of a Pod of an Indexed Job is that of the Job and the index.
	if name, found := strings.CutSuffix(r.process.Host, "-"+strconv.Itoa(t.Rank)); found {
		t.Job, t.Leader = job(name), name+"-0"
	}
	return t, nil
}

// job returns an identifier made of several, "" if the first is missing, that can be part of a file name.
func job(parts ...string) string {
	if parts[0] == "" && (len(parts) < 2 || parts[1] == "") {
		return ""
	}
	keep := func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '_'
	}
	whole := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
	return strings.Map(keep, whole[:min(len(whole), 120)])
}
