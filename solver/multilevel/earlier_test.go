package multilevel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A run in pieces that are shorter than the first trial of a method alternates as one run does, on any partition, and
// needs about as much work.
func TestRunInPiecesAlternates(t *testing.T) {
	const piece = 5
	p := solvertest.Membrane([3]int{31, 31, 1}, 2)
	p.Upwind, p.Source.Value = true, -1
	p.Boundary = func(problem.Point) float64 { return 0 }
	p.Obstacle = func(q problem.Point) float64 { return 0.05*math.Sin(9*q[0]) - 0.1 }
	for a := range 2 { // multigrid stands still where the flow leaves the domain on all sides
		p.Velocity[a].Of = func(q problem.Point) float64 { return 50 * (q[a] - 0.5) }
	}
	for _, m := range []problem.MethodConfig{
		{Name: problem.Multigrid, Next: problem.SOR}, {Name: problem.SOR, Next: problem.Multigrid},
	} {
		c := problem.Config{
			Problem: p, Scheme: iterate.Synchronous(), Tolerance: 1e-6, Method: m, Partition: solvertest.SlabsOf(t, p, 1),
		}
		one := newPeerGroup(t, 1, c).run().peers[0].Outcome()
		require.Equal(t, iterate.Converged, one.Reason)
		_, all := inPieces(t, c, piece, 1.5*one.Work)
		require.Equal(t, iterate.Converged, all.Reason)
	}
}

// The state of another method, or of no method, is ignored.
func TestForeignStatesAreIgnored(t *testing.T) {
	p := solvertest.Islands(7, 1e4)
	c := problem.Config{
		Problem: p, Scheme: iterate.Synchronous(), Tolerance: 1e-6, Partition: solvertest.SlabsOf(t, p, 1), MaxSweeps: 500,
	}
	states := [][]byte{nil, {}, make([]byte, 3), make([]byte, 4096)}
	methods := []problem.MethodConfig{
		{Name: problem.Multigrid}, {Name: problem.SOR}, {Name: problem.Multigrid, Next: problem.SOR},
		{Name: problem.SOR, Next: problem.Multigrid},
	}
	for _, c.Method = range methods {
		o := newPeerGroup(t, 1, c).run().peers[0].Outcome()
		require.NotEmpty(t, o.State)
		states = append(states, o.State)
	}
	for i, m := range methods {
		c.Method, c.Earlier = m, nil
		want := newPeerGroup(t, 1, c).run().peers[0].Outcome()
		for j, state := range states {
			if j == len(states)-len(methods)+i {
				continue
			}
			c.Earlier = state
			require.Equal(t, want.Sweeps, newPeerGroup(t, 1, c).run().peers[0].Outcome().Sweeps, "%s with state %d", m.Name, j)
		}
	}
}

// A state of the version before, which ends with the alternation, is adopted too.
func TestOlderStatesAreRead(t *testing.T) {
	e := earlier{methods: 1, work: 7, omega: 1.5, started: true, old: true}
	old := iterate.EncodeState(&e)
	require.Equal(t, &e, decodeEarlier(old))
	e.old, e.cycles, e.worked = false, 9, [2]float64{7, 2}
	now := iterate.EncodeState(&e)
	require.Greater(t, len(now), len(old))
	require.Equal(t, &e, decodeEarlier(now))
	require.Nil(t, decodeEarlier(nil))
	require.Nil(t, decodeEarlier(old[:len(old)-1]))

	p := solvertest.Islands(15, 1e4)
	c := problem.Config{
		Problem: p, Scheme: iterate.Synchronous(), Tolerance: 1e-6, Partition: solvertest.SlabsOf(t, p, 1),
		Method: problem.MethodConfig{Name: problem.SOR}, Earlier: old,
	}
	first := newPeerGroup(t, 1, c).peers[0].(*peer)
	require.InDelta(t, 1.5, first.driver.method.omega(), 0)
}
