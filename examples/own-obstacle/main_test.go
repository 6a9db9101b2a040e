package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain makes this test binary the program when it is run again, by a test or as a peer of a run.
func TestMain(m *testing.M) {
	if os.Getenv("OWN_OBSTACLE") != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), "OWN_OBSTACLE=1")
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	err = c.Run()
	return o.String(), e.String(), err
}

// answer is the part of the JSON of solve that the tests read.
type answer struct {
	Problem   string
	Converged bool
	Method    string
	Scheme    string
	Network   string
	Sum       float64
	Sweeps    []int
	Sessions  []struct {
		Name, Mode  string
		Network     string
		Composition []string
	}
}

func solve(t *testing.T, args ...string) answer {
	t.Helper()
	n := "31"
	if testing.Short() {
		n = "15"
	}
	out, errs, err := program(t, append([]string{"solve", "dome", "--n", n, "--peers", "3", "--partition", "slabs",
		"--format", "json"}, args...)...)
	require.NoError(t, err, errs)
	var a answer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	require.Equal(t, "dome", a.Problem)
	require.True(t, a.Converged)
	require.NotEmpty(t, a.Sessions)
	return a
}

// Three processes solve the problem with each of the things that main adds.
func TestRun(t *testing.T) {
	plain := solve(t, "--network", "ether")
	for _, s := range plain.Sessions {
		require.NotContains(t, s.Composition, "checksum")
	}
	with := solve(t, "--network", "ether", "--rows", "checksum")
	for _, s := range with.Sessions {
		require.Contains(t, s.Composition, "checksum")
	}
	require.Equal(t, plain.Sum, with.Sum, "a synchronous run gives the same bits")
	unix := solve(t, "--network", "unix")
	for _, s := range unix.Sessions {
		require.Equal(t, "shm", s.Network)
	}
	require.Equal(t, plain.Sum, unix.Sum)
	solve(t, "--network", "unix", "--scheme", "async")

	slow := solve(t, "--method", "damped")
	require.Equal(t, "damped", slow.Method)
	require.Greater(t, slow.Sweeps[0], plain.Sweeps[0], "the step is shorter")
	require.InDelta(t, plain.Sum, slow.Sum, 1e-4)
	in := solve(t, "--peers", "4", "--scheme", "pairs")
	require.Equal(t, "pairs", in.Scheme)
	require.InDelta(t, plain.Sum, in.Sum, 1e-4)
	modes := map[string]bool{}
	for _, s := range in.Sessions {
		modes[s.Name+" "+s.Mode] = true
	}
	require.True(t, modes["halo/0-1 sync"] && modes["halo/1-2 async"] && modes["halo/2-3 sync"], "%v", modes)
}

// Three peers run the iteration in each scheme, and in the one that main adds.
func TestRunIteration(t *testing.T) {
	for _, scheme := range []string{"sync", "async", "delay:2", "hybrid", "pairs"} {
		at := filepath.Join(t.TempDir(), "x.npy")
		out, errs, err := program(t, "solve", "line", "--peers", "3", "--clusters", "2", "--scheme", scheme,
			"--tol", "1e-9", "--out", at, "--probe", "95", "--format", "json")
		require.NoError(t, err, errs)
		var a struct {
			Converged bool
			Method    string
			N, Sweeps []int
			Sum       float64
			Messages  int
			Probes    []struct{ U float64 }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &a))
		require.True(t, a.Converged, scheme)
		require.Equal(t, "fixed-point", a.Method)
		require.Equal(t, []int{96}, a.N)
		require.Len(t, a.Sweeps, 3)
		require.Positive(t, a.Messages)
		require.InDelta(t, 2*96, a.Sum, 1e-6)
		require.InDelta(t, 2, a.Probes[0].U, 1e-7)
		info, err := os.Stat(at)
		require.NoError(t, err)
		require.EqualValues(t, 128+8*96, info.Size(), "a header, and the unknowns alone")
	}
	at := filepath.Join(t.TempDir(), "x.csv")
	_, errs, err := program(t, "solve", "line", "--out", at)
	require.NoError(t, err, errs)
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 97)
	require.Equal(t, "index,x", lines[0])
	require.True(t, strings.HasPrefix(lines[96], "95,1.99"), lines[96])
	for line, refused := range map[string]string{
		"solve lane": `no built-in problem "lane" (did you mean "line"?)`, "solve line --n 9": "leave out --n",
		"solve line --method sor": "leave out --method", "solve line --omega 1.5": "leave it out",
		"solve line --probe 96": "are 0 to 95", "solve line --probe 1.5": "are 0 to 95",
		"solve line --out x.vti": "give .npy, .csv or .png", "solve line --param values=0": "an iteration of 0 unknowns",
		"compare line --methods sor":                                         "leave it out",
		"solve dome --method fixed-point":                                    "choose another method",
		"simulate line --model graphene-eth --machines 2 --stand-in 2":       "which has no coarser grid",
		"solve line --order in-turn":                                         "only richardson has an order",
		"solve line --enclose":                                               "iteration",
		"convergence line --grids 8,16":                                      "iteration",
		"solve line --peers 97":                                              "97",
		"simulate line --model graphene-eth --machines 2 --method multigrid": "leave out --method",
	} {
		_, errs, err := program(t, strings.Fields(line)...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, line)
		require.Equal(t, 2, exit.ExitCode(), "%s: %s", line, errs)
		require.Contains(t, errs, refused, line)
	}
	_, _, err = program(t, "solve", "line", "--max-sweeps", "3")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
}

// Errors and lists name what was added.
func TestNames(t *testing.T) {
	out, _, err := program(t, "problems")
	require.NoError(t, err)
	require.Contains(t, out, "dome (2-D)\n  a membrane over a dome")
	for flag, want := range map[string]string{
		"--rows":    "want NegativeAck or checksum",
		"--method":  "want auto, richardson, sor, multigrid, schwarz, fas or damped",
		"--scheme":  "want sync, async, delay, hybrid or pairs",
		"--network": "want auto, ether, memory, shm, ib, stream or unix",
	} {
		_, errs, err := program(t, "solve", "dome", flag, "other")
		require.Error(t, err)
		require.Contains(t, errs, want)
	}
	_, errs, err := program(t, "solve", "doome")
	require.Error(t, err)
	require.Contains(t, errs, `did you mean "dome"?`)
}
