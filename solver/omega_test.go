package solver_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// SOR with a computed ω takes hardly more sweeps than with the best of many given ω.
func TestSORFindsItsFactor(t *testing.T) {
	for _, name := range []string{"membrane", "ball2d", "quartic", "jacksboro", "torsion", "bearing1d", "dam",
		"varying2d", "perpetual-put"} {
		b, err := problems.Lookup(name)
		require.NoError(t, err)
		n := [3]int{1, 1, 1}
		for a := range b.Dimension {
			n[a] = [4]int{0, 99, 47, 31}[b.Dimension]
		}
		p, err := b.Make(n)
		require.NoError(t, err)
		found, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.SOR}, 1e-6, 5000, nil)
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, found.Reason)
		best := 5000
		for _, omega := range []float64{1.5, 1.6, 1.7, 1.75, 1.8, 1.85, 1.9, 1.93, 1.95} {
			got, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.SOR, Omega: omega}, 1e-6, best, nil)
			require.NoError(t, err)
			best = min(best, got.Cycles)
		}
		t.Logf("%-14s %d sweeps, %s; best %d", name, found.Cycles, found.Description, best)
		require.LessOrEqual(t, float64(found.Cycles), 1.5*float64(best)+8, name)
	}
}
