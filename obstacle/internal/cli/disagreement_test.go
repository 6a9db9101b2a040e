package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// An answer that does not meet the tolerance which its peers say it meets is an error that names the part with the largest
// residual.
func TestPartThatDisagreesIsNamed(t *testing.T) {
	b, err := problems.Lookup("membrane")
	require.NoError(t, err)
	p, err := b.Make([3]int{6, 6, 9})
	require.NoError(t, err)
	cut, err := problem.Slabs(p.N, 3, nil)
	require.NoError(t, err)
	solved, err := richardson.SolveSequential(p, problem.Jacobi, 1e-10, 0, 0, 0)
	require.NoError(t, err)
	o := &launch.Outcome{Reason: launch.Converged}
	for rank := range 3 {
		o.Boxes = append(o.Boxes, cut.Box(iterate.Rank(rank)))
		o.Hosts = append(o.Hosts, rendezvous.Member{Rank: rank, Host: "h", Pid: 100 + rank})
	}
	for liar := range 3 {
		o.U = append([]float64(nil), solved.U...)
		o.U[p.Dense([3]int{3, 3, 3*liar + 2})] += 0.5
		why := disagreement(p, o)
		require.Contains(t, why, []string{"peer 0 (pid 100 on h)", "peer 1 (pid 101 on h)", "peer 2 (pid 102 on h)"}[liar])
		s := &report.Solution{Reason: launch.Converged, Tolerance: 1e-6, RelativeResidual: 0.5, Failure: why}
		require.True(t, disagrees(s))
		require.ErrorContains(t, verdict(s), "that of the assembled solution is 0.5: the residual is largest in the part of peer")
		require.Equal(t, ExitFailed, exitCode(verdict(s)))
	}
	for _, s := range []*report.Solution{
		{Reason: launch.Converged, Converged: true, Tolerance: 1e-6, RelativeResidual: 1e-7},
		{Reason: launch.Converged, Tolerance: 1e-6, RelativeResidual: 1.5e-6}, // by rounding
		{Reason: launch.Time, Tolerance: 1e-6, RelativeResidual: 0.5},
	} {
		require.False(t, disagrees(s))
	}
	require.True(t, disagrees(&report.Solution{Reason: launch.Converged, Tolerance: 1e-6, RelativeResidual: nullable.NaN()}))
	o.Boxes = o.Boxes[:1]
	require.Empty(t, disagreement(p, o), "one part cannot contradict another")
}
