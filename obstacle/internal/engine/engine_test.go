package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// environment returns the variables of a file, as env prints them, with changes: NAME=VALUE, or NAME to unset it.
func environment(t *testing.T, file string, changes ...string) Env {
	vars := map[string]string{}
	if file != "" {
		text, err := os.ReadFile(filepath.Join("testdata", file+".env"))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			vars[name] = value
		}
	}
	for _, c := range changes {
		if name, value, found := strings.Cut(c, "="); found {
			vars[name] = value
		} else {
			delete(vars, name)
		}
	}
	return func(name string) (string, bool) { v, set := vars[name]; return v, set }
}

// within returns a process of which the task's process is the parent.
func within(env Env) Process {
	v, _ := env("SLURM_TASK_PID")
	task, _ := strconv.Atoi(v)
	return Process{Host: "node", Ancestors: []int{4711, task, 1}}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, file string
		changes    []string
		want       string
		expect     Task
	}{
		{"srun", "srun", nil, Auto, Task{Engine: Slurm, Rank: 3, Size: 4, Job: "two-1-0", Leader: "n1",
			Why: "SLURM_PROCID=3 of SLURM_STEP_NUM_TASKS=4"}},
		{"srun after a requeue", "srun", []string{"SLURM_RESTART_COUNT=2", "SLURM_STEP_NUM_NODES=1"}, Auto,
			Task{Engine: Slurm, Rank: 3, Size: 4, Job: "two-1-0-2", Leader: "n1", Restarts: 2, OneHost: true,
				Why: "SLURM_PROCID=3 of SLURM_STEP_NUM_TASKS=4"}},
		{"srun --mpi=pmi2", "srun-pmi2", nil, Auto, Task{Engine: Slurm, Rank: 1, Size: 2, Job: "two-4-0", Leader: "n1",
			Why: "SLURM_PROCID=1 of SLURM_STEP_NUM_TASKS=2"}},
		{"Open MPI", "openmpi", nil, Auto, Task{Engine: OpenMPI, Rank: 2, Size: 3, OneHost: true,
			Why: "OMPI_COMM_WORLD_RANK=2 of OMPI_COMM_WORLD_SIZE=3"}},
		{"Open MPI within Slurm", "openmpi-in-slurm", nil, Auto, Task{Engine: OpenMPI, Rank: 3, Size: 4,
			Why: "OMPI_COMM_WORLD_RANK=3 of OMPI_COMM_WORLD_SIZE=4"}},
		{"MPICH", "mpich", nil, Auto, Task{Engine: MPICH, Rank: 2, Size: 3, OneHost: true,
			Why: "PMI_RANK=2 of PMI_SIZE=3"}},
		{"MPICH within Slurm", "mpich-in-slurm", nil, Auto, Task{Engine: MPICH, Rank: 3, Size: 4,
			Why: "PMI_RANK=3 of PMI_SIZE=4"}},
		{"Kubernetes", "", []string{"JOB_COMPLETION_INDEX=2"}, Auto, Task{Engine: Kubernetes, Rank: 2,
			Why: "JOB_COMPLETION_INDEX=2"}},
		{"a batch script", "sbatch", nil, Auto, Task{
			Ignored: "SLURM_PROCID=0: not in a job step (SLURM_STEP_ID is not set); srun starts one"}},
		{"nothing", "", nil, Auto, Task{}},
		{"none", "srun", nil, None, Task{}},
		{"one of two by name", "openmpi-in-slurm", nil, Slurm, Task{Engine: Slurm, Rank: 0, Size: 2, Job: "two-5-0",
			Leader: "n1", Why: "SLURM_PROCID=0 of SLURM_STEP_NUM_TASKS=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := environment(t, c.file, c.changes...)
			got, err := Read(env, c.want, within(env))
			require.NoError(t, err)
			if c.expect.Engine == OpenMPI {
				assert.NotEmpty(t, got.Job)
				got.Job = ""
			}
			assert.Equal(t, c.expect, got)
		})
	}
}

// Variables that another process has inherited are ignored, unless the user says that they apply.
func TestStaleSlurm(t *testing.T) {
	env := environment(t, "srun")
	elsewhere := Process{Host: "login", Ancestors: []int{4711, 17, 1}}
	got, err := Read(env, Auto, elsewhere)
	require.NoError(t, err)
	assert.False(t, got.Parallel())
	assert.Contains(t, got.Ignored, "SLURM_TASK_PID=18463")
	got, err = Read(env, Slurm, elsewhere)
	require.NoError(t, err)
	assert.True(t, got.Parallel())
}

func TestPodName(t *testing.T) {
	got, err := Read(environment(t, "", "JOB_COMPLETION_INDEX=12"), Auto, Process{Host: "solve-1-12"})
	require.NoError(t, err)
	assert.Equal(t, "solve-1-0", got.Leader)
	assert.Equal(t, "solve-1", got.Job)
	assert.True(t, got.Parallel())
}

func TestContradictions(t *testing.T) {
	for _, c := range []struct {
		file, want string
		changes    []string
		names      []string
	}{
		{"srun-pmi2", Auto, []string{"PMI_RANK=0"}, []string{"PMI_RANK=0", "SLURM_PROCID=1"}},
		{"", Auto, []string{"PMI_RANK=1", "PMI_SIZE=4", "SLURM_PROCID=2", "SLURM_NTASKS=4"},
			[]string{"PMI_RANK=1", "SLURM_PROCID=2"}},
		{"openmpi", Auto, []string{"PMIX_RANK=1"}, []string{"OMPI_COMM_WORLD_RANK=2", "PMIX_RANK=1"}},
		{"openmpi", Auto, []string{"PMI_RANK=1", "PMI_SIZE=3"}, []string{"OMPI_COMM_WORLD_RANK=2", "PMI_RANK=1"}},
		{"mpich", Auto, []string{"PMI_SIZE=2"}, []string{"PMI_RANK=2", "PMI_SIZE=2"}},
		{"mpich", Auto, []string{"PMI_SIZE"}, []string{"PMI_SIZE is not set"}},
		{"mpich", Auto, []string{"PMI_RANK=two"}, []string{`PMI_RANK="two"`}},
		{"srun", Auto, []string{"SLURM_STEP_NUM_TASKS=-1"}, []string{`SLURM_STEP_NUM_TASKS="-1"`}},
		{"srun", Auto, []string{"SLURM_STEP_NODELIST=n[1-"}, []string{"SLURM_STEP_NODELIST", "n[1-"}},
		{"srun", OpenMPI, nil, []string{"--engine openmpi", "OMPI_COMM_WORLD_RANK"}},
		{"", Auto, []string{"JOB_COMPLETION_INDEX=99999999"}, []string{"JOB_COMPLETION_INDEX"}},
	} {
		env := environment(t, c.file, c.changes...)
		_, err := Read(env, c.want, within(env))
		require.Error(t, err, "%v", c)
		for _, name := range c.names {
			assert.ErrorContains(t, err, name)
		}
	}
}

func TestExpandNodes(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                      "n1",
		"n[1-3,07],login":         "n1 n2 n3 n07 login",
		"a[08-11]b":               "a08b a09b a10b a11b",
		"r[0-1]c[1,3-4],gpu-[01]": "r0c1 r0c3 r0c4 r1c1 r1c3 r1c4 gpu-01",
	} {
		got, err := ExpandNodes(list)
		require.NoError(t, err, list)
		assert.Equal(t, strings.Fields(want), got)
	}
	for _, list := range []string{"", "n[", "n[1", "n]", "n[2-1]", "n[x]", "n[1-9999999]", "a,,b", "n[1-9999][1-9999]",
		"-oProxyCommand=x", "a b"} {
		_, err := ExpandNodes(list)
		assert.ErrorContains(t, err, "host list", list)
	}
}

func TestParseHosts(t *testing.T) {
	text := "# nodes\nn1 slots=2\nn2:4\nn3 3 all.q@n3 <NULL>\nn4\nn4\n2001:db8::1\nn5 slots=2 max-slots=3 # fast\n"
	got, err := ParseHosts(text)
	require.NoError(t, err)
	assert.Equal(t, []Host{{"n1", 2}, {"n2", 4}, {"n3", 3}, {"n4", 2}, {"2001:db8::1", 1}, {"n5", 2}}, got)
	for text, why := range map[string]string{
		"":               "names no host",
		"n1\n-oX=y\n":    "line 2",
		"-v\n":           "line 1",
		"n1 slots=0":     "not a number of processes",
		"n1:many":        "not a number of processes",
		"n1;reboot":      "not the name",
		"$(hostname) 1 ": "not the name",
	} {
		_, err := ParseHosts(text)
		assert.ErrorContains(t, err, why)
	}
}

func TestListed(t *testing.T) {
	got, err := Listed("n[1-4]", "2(x3),1")
	require.NoError(t, err)
	assert.Equal(t, []Host{{"n1", 2}, {"n2", 2}, {"n3", 2}, {"n4", 1}}, got)
	for _, tasks := range []string{"x", "2(x", "0", "2(x9)"} {
		_, err := Listed("n[1-4]", tasks)
		assert.Error(t, err, tasks)
	}
}

// Slurm expands lists as we do. make slurm runs this test where Slurm is.
func TestExpandNodesAsScontrol(t *testing.T) {
	if os.Getenv("SLURM_CONF") == "" {
		t.Skip("needs Slurm, SLURM_CONF is not set")
	}
	for _, list := range []string{"n1", "n[1-2]", "n[1-3,07],login", "a[08-11],c[1,3-4]", "r[0-1]x[2-3]",
		"gpu-[001-120]"} {
		out, err := exec.Command("scontrol", "show", "hostnames", list).Output()
		require.NoError(t, err, list)
		got, err := ExpandNodes(list)
		require.NoError(t, err, list)
		assert.Equal(t, strings.Fields(string(out)), got)
	}
}

// A list of numbered hosts expands to the same hosts that it was made of.
func TestExpandNodesRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 200).Draw(t, "low")
		high := low + rapid.IntRange(0, 50).Draw(t, "more")
		width := rapid.IntRange(1, 5).Draw(t, "width")
		var want []string
		for n := low; n <= high; n++ {
			want = append(want, "node"+pad(n, width))
		}
		got, err := ExpandNodes("node[" + pad(low, width) + "-" + pad(high, width) + "]")
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	})
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

func FuzzExpandNodes(f *testing.F) {
	f.Add("n[1-3,07],login")
	f.Add("r[0-1]c[1,3-4]")
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := ExpandNodes(list)
		if (err == nil) != (len(hosts) > 0) {
			t.Fatal(hosts, err)
		}
		for _, h := range hosts {
			if !validHost(h) {
				t.Fatal(h)
			}
		}
	})
}

func FuzzParseHosts(f *testing.F) {
	f.Add("n1 slots=2\nn2:4\nn3 3 q\n")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHosts(text)
		for _, h := range hosts {
			if err != nil || !validHost(h.Name) || h.Slots < 1 {
				t.Fatal(h, err)
			}
		}
	})
}

// A process alone within a job of Slurm for several says so.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
			"job 7 of Slurm has 4 tasks (SLURM_NTASKS)"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"},
			"job 7 of Slurm has 2 nodes (SLURM_JOB_NUM_NODES)"},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1", "SLURM_NNODES": "1"}, ""},
		{map[string]string{"SLURM_JOB_ID": "7"}, ""},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "9223372036854775808"}, ""},
		{map[string]string{"SLURM_JOB_ID": "7", "SLURM_NTASKS": "-1"}, ""},
		{map[string]string{"SLURM_NTASKS": "4"}, ""},
	} {
		got := Unused(func(name string) (string, bool) { v, set := c.variables[name]; return v, set })
		require.Equal(t, c.want, got, c.variables)
	}
}
