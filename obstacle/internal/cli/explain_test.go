package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

func explained(t *testing.T, args ...string) *explanation {
	t.Helper()
	code, out, errs := call(append([]string{"explain", "--format", "json"}, args...)...)
	require.Zero(t, code, errs)
	var e explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	return &e
}

func (e *explanation) choice(t *testing.T, what string) decision {
	t.Helper()
	i := slices.IndexFunc(e.Choices, func(d decision) bool { return d.What == what })
	require.GreaterOrEqual(t, i, 0, what)
	return e.Choices[i]
}

// solve does what explain says.
func TestExplainAgreesWithSolve(t *testing.T) {
	for _, args := range [][]string{
		{"membrane", "--n", "9"},
		{"membrane", "--n", "9,8,7", "--peers", "2", "--scheme", "async"},
		{"torsion", "--n", "9", "--method", "multigrid"},
		{"torsion", "--n", "9", "--method", "sor", "--scheme", "async", "--peers", "2", "--partition", "boxes"},
		{"front1d", "--n", "9", "--param", "steps=2", "--weights", "1,2"},
	} {
		args = append(args, "--in-process")
		e := explained(t, args...)
		code, out, errs := call(append([]string{"solve", "--format", "json"}, args...)...)
		require.Equal(t, ExitSolved, code, errs)
		var s report.Solution
		require.NoError(t, json.Unmarshal([]byte(out), &s))
		require.Equal(t, s.N, e.N)
		require.Equal(t, s.Points, e.Unknowns)
		method, _, _ := strings.Cut(e.choice(t, "method").Value, " ")
		require.Equal(t, s.Method, method)
		require.Equal(t, s.Scheme, e.choice(t, "scheme").Value)
		require.Equal(t, peersText(&work{peers: s.Peers, threads: s.Threads}, true), e.choice(t, "peers").Value)
		require.Contains(t, e.choice(t, "partition").Value, axesText(s.Partition)+" parts")
		require.Equal(t, s.PartitionWhy, e.choice(t, "partition").Why)
		require.Equal(t, decision{"recovery", s.Recover, s.RecoverWhy}, e.choice(t, "recovery"))
		if e.choice(t, "network").Value != "none" {
			require.Equal(t, s.Network, e.choice(t, "network").Value, args)
		}
		require.Equal(t, *s.Kernel, e.choice(t, "kernel").Value)
		for _, c := range e.Choices {
			require.NotEmpty(t, c.Why, c.What)
		}
		require.Equal(t, "obstacle solve "+strings.Join(args, " "), sorted(args, e.Next))
	}
}

// sorted returns next if it has the words of args, in the order of args.
func sorted(args []string, next string) string {
	words := strings.Fields(next)[2:]
	if slices.Equal(slices.Sorted(slices.Values(words)), slices.Sorted(slices.Values(args))) {
		return "obstacle solve " + strings.Join(args, " ")
	}
	return next
}

// The text has the equation, the domain, the grid and every choice, and explain says more than check.
func TestExplainText(t *testing.T) {
	name := t.TempDir() + "/mine.yaml"
	code, _, errs := call("init", name, "--kind", "moving", "--dimension", "1")
	require.Zero(t, code, errs)
	code, out, errs := call("explain", name, "--n", "31", "--scheme", "async", "--peers", "2")
	require.Zero(t, code, errs)
	for _, want := range []string{
		"u ≥ φ, u_t − Δu ≥ f, complementary", "0 < x < 1", "0.2 - 8*((x - 0.3 - 0.4*t)^2)",
		"31 interior points, spacing 0.03125: 31 unknowns", "finite differences on 3 points",
		"10 steps of implicit Euler", "method       fas: scheme async", "not richardson: about", "async: --scheme",
		"2 peers of 1 thread, each a process: --peers", "2 parts, the largest of 16 points", "kernel", "recovery     step: a lost peer is replaced",
		"to solve     obstacle solve " + name + " --n 31 --peers 2 --scheme async",
	} {
		require.Contains(t, out, want)
	}
	_, check, _ := call("check", name)
	for line := range strings.Lines(check) {
		if !strings.HasPrefix(line, "fingerprint") {
			require.Contains(t, out, line)
		}
	}
}

// A run that does not fit into memory is announced; bad flags are refused as by solve.
func TestExplainWarnsAndRefuses(t *testing.T) {
	require.EqualValues(t, 8*64*3, memoryAtLeast(&work{problem: cube(t, 4)}))
	require.Contains(t, memoryWarning(3<<30, 1<<30), "needs at least 3.0 GiB of memory, and this host has 1.0 GiB")
	require.Empty(t, memoryWarning(1<<30, 1<<30))
	require.Empty(t, memoryWarning(1<<50, -1))
	for _, args := range [][]string{
		{"membrain"}, {"membrane", "--n", "0"}, {"membrane", "--network", "memory"}, {"membrane", "--probe", "2,0,0"},
		{"membrane", "--method", "multigird"}, {"membrane", "--out", "x.contour.csv"},
	} {
		code, _, want := call(append([]string{"solve"}, args...)...)
		require.Equal(t, ExitUsage, code, args)
		code, out, errs := call(append([]string{"explain"}, args...)...)
		require.Equal(t, ExitUsage, code, args)
		require.Empty(t, out)
		require.Equal(t, want, errs)
	}
}

// Where a flow dominates, the better method is not known: explain gives no numbers, and a stopped run names no method as the
// one to try.
func TestFlowsThatDominate(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("p.yaml", []byte("dimension: 2\ndomain: [[0, 1], [0, 1]]\nboundary: \"0\"\nf: \"1\"\n"+
		"obstacle: \"-10\"\nvelocity: [\"60*(x-0.5)\", \"60*(y-0.5)\"]\n"), 0o600))
	e := explained(t, "p.yaml", "--n", "31")
	require.Contains(t, e.choice(t, "method").Why, "not known")
	require.NotContains(t, e.choice(t, "method").Why, "about")
	for _, method := range []string{"sor", "multigrid", "richardson"} {
		code, out, errs := call("solve", "p.yaml", "--n", "31", "--method", method, "--tol", "1e-9", "--max-sweeps", "1100",
			"--in-process", "--peers", "1")
		require.Equal(t, ExitStopped, code, errs)
		require.Contains(t, out, "without --method, the run alternates between multigrid and sor", method)
		require.NotContains(t, out, "is chosen")
		require.NotContains(t, out, "try --method")
	}
}
