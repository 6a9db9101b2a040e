package multilevel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// inPieces runs a problem in pieces of that many cycles on one and two peers in turn, and returns the pieces and the
// outcome of the last one, whose sweeps and work are those of all.
func inPieces(t *testing.T, c problem.Config, piece iterate.Iteration, most float64) (pieces int, all iterate.Outcome) {
	t.Helper()
	var u []float64
	var state []byte
	p := c.Problem
	for {
		c.Partition, c.MaxSweeps = solvertest.SlabsOf(t, p, 1+pieces%2), piece
		k := newPeerGroup(t, 1, c)
		for r, c := range solvertest.ConfigsFor(c) {
			if u == nil {
				break
			}
			b := c.Partition.Box(iterate.Rank(r))
			c.Initial, c.Earlier = make([]float64, b.Points()), state
			method.CopyBox(c.Initial, method.DenseLayout(b.Size()), b.From(b.Lo), u, method.DenseLayout(p.N), b.Lo)
			var err error
			k.peers[r], err = newPeerOf(c)
			require.NoError(t, err)
		}
		o := k.run().peers[0].Outcome()
		for _, q := range k.peers {
			require.Equal(t, o.State, q.Outcome().State)
		}
		work, sweeps := all.Work+o.Work, all.Sweeps+o.Sweeps
		all = o
		all.Work, all.Sweeps = work, sweeps
		u, state = k.answer(p), o.State
		if pieces++; o.Reason != iterate.ReachedSweeps {
			return pieces, all
		}
		require.Less(t, work, most)
	}
}

// stripes is a problem whose diffusion varies by a factor of contrast between boxes.
func stripes(t *testing.T, n int, contrast float64) *problem.Problem {
	t.Helper()
	p := solvertest.Membrane([3]int{n, n, 1}, 2)
	p.Source.Value = 100
	p.Boundary = func(problem.Point) float64 { return 0 }
	p.Obstacle = func(q problem.Point) float64 { return 0.05*math.Sin(9*q[0]) - 0.1 }
	p.Diffusion.Of = func(q problem.Point) float64 {
		if math.Sin(37*q[0])*math.Sin(37*q[1]) > 0 {
			return contrast
		}
		return 1
	}
	return p
}

// A run in pieces, on another partition each time, goes on with the factor of SOR, its damping and what is known of
// stagnation: it needs the sweeps of one run, and ends for the same reason.
func TestRunInPiecesNeedsTheSweepsOfOne(t *testing.T) {
	for i, c := range []struct {
		n         int
		contrast  float64
		tolerance float64
		piece     iterate.Iteration
		method    problem.MethodConfig
		within    float64
	}{
		{15, 1e6, 1e-4, 400, problem.MethodConfig{Name: problem.SOR}, 1.1},
		{31, 1e4, 1e-6, 60, problem.MethodConfig{Name: problem.SOR}, 1.1},
		{31, 1, 1e-9, 8, problem.MethodConfig{Name: problem.SOR}, 1.1},
		{31, 1e6, 1e-4, 20, problem.MethodConfig{Name: problem.Multigrid}, 1.1},
		{31, 1e6, 1e-4, 100, problem.MethodConfig{Name: problem.SOR, Next: problem.Multigrid}, 1.5},
		{31, 1e6, 1e-4, 200, problem.MethodConfig{Name: problem.Multigrid, Next: problem.SOR}, 1.1},
	} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		p := stripes(t, c.n, c.contrast)
		config := problem.Config{
			Problem: p, Scheme: iterate.Synchronous(), Tolerance: c.tolerance, Method: c.method,
			Partition: solvertest.SlabsOf(t, p, 1),
		}
		one := newPeerGroup(t, 1, config).run().peers[0].Outcome()
		pieces, all := inPieces(t, config, c.piece, 10*one.Work)
		t.Logf("%+v: %v, work %.0f; in %d pieces %v, work %.0f", c, one.Reason, one.Work, pieces, all.Reason, all.Work)
		require.Equal(t, one.Reason, all.Reason)
		require.Less(t, all.Work, c.within*one.Work+2*float64(c.piece))
	}
}
