package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A cycle of multigrid is left within two passes over the grid (a correction, a relaxation
// and what reads its residual are one pass over memory), wherever the end is asked for: in
// the full multigrid start, in a cycle, in the safeguard's relaxations. What remains is never
// worse than the start.
func TestAnEarlyEndWithinACycle(t *testing.T) {
	back := 0
	for name, p := range map[string]*Problem{"membrane": membrane([3]int{31, 31, 31}, 3), "rejected cycles": windy(15), "1-D": string1D(255)} {
		for _, m := range []MethodConfig{{Name: Multigrid}, {Name: Multigrid, Cycle: "v"}, {Name: SOR}} {
			c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, Method: m}
			worst := 0.0
			for after := 0.1; after < 12; after += 0.37 {
				a := newSingle(t, c)
				worst = max(worst, a.stopped(t, after))
				if mg, ok := a.peer.(*Levels).course.method.(*multigrid); ok && mg.stopped && mg.takesBack {
					back++
					requireSameBits(t, inside(mg, mg.keep), inside(mg, mg.u))
				}
				if m.Name == Multigrid && name == "membrane" {
					require.LessOrEqual(t, singleResidual(t, a, p), 1.0, "%s after %v", name, after)
				}
			}
			limit := 3.5
			if m.Name == SOR {
				limit = 1
			}
			require.LessOrEqual(t, worst, limit, "%s %s", name, m.Name)
		}
	}
	require.Positive(t, back, "corrections that were not accepted are taken back")
}

// inside are the own points of a padded array.
func inside(m *multigrid, values []float64) []float64 {
	out := make([]float64, m.block.layout.Points())
	m.block.copyOut(out, values)
	return out
}

// Long relaxations by the safeguard end within one of them.
func TestAnEarlyEndOfRelaxations(t *testing.T) {
	p := windy(15)
	a := newSingle(t, Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, Method: MethodConfig{Name: Multigrid}})
	for a.peer.(*Levels).course.method.(*multigrid).sweeps < 100 {
		require.True(t, a.step(t), "the safeguard relaxes")
	}
	require.LessOrEqual(t, a.stopped(t, 0), 1.0)
}

// MaxSweeps bounds the work of multigrid, too: what the safeguard relaxes counts.
func TestMaxSweepsBoundsTheWork(t *testing.T) {
	p := windy(15)
	c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-13, MaxSweeps: 20, Method: MethodConfig{Name: Multigrid}}
	a := newSingle(t, c)
	for a.step(t) {
	}
	o := a.peer.Outcome()
	require.Equal(t, ReachedSweeps, o.Reason)
	nominal := a.peer.(*Levels).course.method.(*multigrid).nominal
	require.LessOrEqual(t, o.Work, 22*nominal+20)
}
