package multilevel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A run that alternates between multigrid and SOR changes its method at the same iterates on every partition, and has the
// same bits.
func TestAlternatingMethodsKeepTheBits(t *testing.T) {
	islands := solvertest.Islands(15, 1e4)
	frozen := *islands
	heating := solvertest.Islands(15, 1e4)
	heating.Evolution = &problem.Evolution{End: 20, Steps: 2, At: func(float64) *problem.Problem { q := frozen; return &q }}
	vortex := solvertest.Membrane([3]int{17, 16, 1}, 2)
	vortex.Upwind = true
	vortex.Velocity[0].Of = func(q problem.Point) float64 { return 3000 * (q[1] - 0.5) }
	vortex.Velocity[1].Of = func(q problem.Point) float64 { return 3000 * (0.5 - q[0]) }
	for name, p := range map[string]*problem.Problem{"islands": islands, "vortex": vortex, "heating": heating} {
		changed := 0
		for _, m := range []problem.MethodConfig{
			{Name: problem.Multigrid, Next: problem.SOR}, {Name: problem.SOR, Next: problem.Multigrid},
		} {
			for _, parts := range [][3]int{{2, 1, 1}, {2, 2, 1}, {5, 1, 1}} {
				part, err := problem.GridOf(p.N, parts)
				require.NoError(t, err)
				for _, gather := range []int{0, 10} {
					one, many := sameAsAlone(t, 7, problem.Config{
						Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: 1e-11, Method: m,
						GatherPoints: gather, MaxSweeps: 4000,
					})
					about := one.peers[0].Describe()
					if one.peers[0].(*peer).driver.changedAt > 0 {
						changed++
						require.Contains(t, about, "from sweep")
					}
					for _, g := range many.peers {
						require.Equal(t, one.peers[0].(*peer).driver.spent, g.(*peer).driver.spent)
						require.Equal(t, one.peers[0].(*peer).driver.changedAt, g.(*peer).driver.changedAt)
					}
				}
			}
		}
		require.Positive(t, changed, name)
	}
}
