package multilevel

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// TestCycleStopsEarlyWithinTwoPasses checks that a multigrid cycle ends within two passes over the grid of a
// request: in the full multigrid start, in a cycle and in the safeguard's relaxations. The result is never
// worse than the start.
func TestCycleStopsEarlyWithinTwoPasses(t *testing.T) {
	back, step := 0, 0.37 // cycles between two stops
	if testing.Short() {
		step = 0.74
	}
	problems := map[string]*problem.Problem{
		"membrane":        solvertest.Membrane([3]int{31, 31, 31}, 3),
		"rejected cycles": solvertest.Windy(15),
		"1-D":             solvertest.String1D(255),
	}
	methods := []problem.MethodConfig{
		{Name: problem.Multigrid}, {Name: problem.Multigrid, Cycle: "v"}, {Name: problem.SOR},
	}
	for name, p := range problems {
		for _, m := range methods {
			c := problem.Config{
				Problem:   p,
				Partition: solvertest.SlabsOf(t, p, 1),
				Scheme:    iterate.Synchronous(),
				Tolerance: 1e-13,
				Method:    m,
			}
			worst := 0.0
			for after := 0.1; after < 12; after += step {
				a := newSingle(t, c)
				worst = max(worst, a.Stopped(t, after))
				if mg, ok := a.Peer.(*peer).driver.method.(*multigrid); ok && mg.stopped && mg.restores {
					back++
					solvertest.RequireSameBits(t, inside(mg, mg.saved), inside(mg, mg.u))
				}
				if m.Name == problem.Multigrid && name == "membrane" {
					require.LessOrEqual(t, singleResidual(t, a, p), 1.0, "%s after %v", name, after)
				}
			}
			limit := 3.5
			if m.Name == problem.SOR {
				limit = 1
			}
			require.LessOrEqual(t, worst, limit, "%s %s", name, m.Name)
		}
	}
	require.Positive(t, back, "a correction that was not accepted is undone")
}

// inside returns the own points of a padded array.
func inside(m *multigrid, values []float64) []float64 {
	out := make([]float64, m.block.Layout.Points())
	m.block.CopyOut(out, values)
	return out
}

// Long relaxations by the safeguard end within one of them.
func TestSafeguardRelaxationStopsWithinOneSweep(t *testing.T) {
	p := solvertest.Windy(15)
	a := newSingle(
		t,
		problem.Config{
			Problem:   p,
			Partition: solvertest.SlabsOf(t, p, 1),
			Scheme:    iterate.Synchronous(),
			Tolerance: 1e-13,
			Method:    problem.MethodConfig{Name: problem.Multigrid},
		},
	)
	for a.Peer.(*peer).driver.method.(*multigrid).sweeps < 100 {
		require.True(t, a.Step(t), "the safeguard relaxes")
	}
	require.LessOrEqual(t, a.Stopped(t, 0), 1.0)
}

// TestMaxSweepsBoundsMultigridWork checks that relaxations by the safeguard count towards MaxSweeps.
func TestMaxSweepsBoundsMultigridWork(t *testing.T) {
	p := solvertest.Windy(15)
	c := problem.Config{
		Problem:   p,
		Partition: solvertest.SlabsOf(t, p, 1),
		Scheme:    iterate.Synchronous(),
		Tolerance: 1e-13,
		MaxSweeps: 20,
		Method:    problem.MethodConfig{Name: problem.Multigrid},
	}
	a := newSingle(t, c)
	for a.Step(t) {
	}
	o := a.Peer.Outcome()
	require.Equal(t, iterate.ReachedSweeps, o.Reason)
	nominal := a.Peer.(*peer).driver.method.(*multigrid).nominal
	require.LessOrEqual(t, o.Work, 22*nominal+20)
}
