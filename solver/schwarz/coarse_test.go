package schwarz

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRestrictionIsTheTransposeOfInterpolation checks that ⟨R·r, e⟩ = scale·⟨r, P·e⟩, where R·r is the sum over the
// pieces of any partition.
func TestRestrictionIsTheTransposeOfInterpolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		part := solvertest.AnyPartition(t, p)
		n, ok := coarseSize(p, 2, rapid.IntRange(1, 40).Draw(t, "most"))
		if !ok {
			return
		}
		g, err := newCoarseGrid(p, n)
		require.NoError(t, err)
		number := rapid.Float64Range(-1, 1)
		e := make([]float64, g.layout.Points())
		for i := range e {
			e[i] = number.Draw(t, "e")
		}
		fine, err := kernel.NewLayout(p.Dimension, p.N)
		require.NoError(t, err)
		r, pe := make([]float64, fine.Len()), make([]float64, p.N[0])
		whole := g.layout.Interior()
		line := make([]float64, n[0]+2)
		fineSide, sum := 0.0, make([]float64, len(e))
		for z := range p.N[2] {
			for y := range p.N[1] {
				g.interpolateRow(pe, e, whole, 0, y, z, line)
				for x := range p.N[0] {
					v := number.Draw(t, "r")
					r[fine.Index(x, y, z)] = v
					fineSide += v * pe[x]
				}
			}
		}
		for q := range part.Peers() {
			box := part.Box(iterate.Rank(q))
			piece := g.coarseBox(box)
			values := make([]float64, piece.Points())
			g.restrict(values, piece, r, fine, [3]int{}, box, line)
			eachPoint(piece, func(x, y, z int) {
				at := g.layout.Dense(x, y, z)
				sum[at] += values[denseIn(piece, x, y, z)]
			})
		}
		coarseSide := 0.0
		for i := range e {
			coarseSide += sum[i] * e[i]
		}
		require.InDelta(t, g.scale*fineSide, coarseSide, 1e-12*float64(len(r)))
	})
}

func TestCoarseGridSizeStaysWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &problem.Problem{Dimension: rapid.IntRange(1, 3).Draw(t, "dim"), N: [3]int{1, 1, 1}}
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 300).Draw(t, "n")
		}
		most := rapid.IntRange(0, 5000).Draw(t, "most")
		n, ok := coarseSize(p, 2, most)
		if !ok {
			return
		}
		points := n[0] * n[1] * n[2]
		require.Less(t, points, p.Points())
		if most == 0 {
			require.LessOrEqual(t, points, max(1, p.Points()/minCoarsening))
		} else {
			require.LessOrEqual(t, points, most)
		}
	})
	_, ok := coarseSize(&problem.Problem{Dimension: 1, N: [3]int{50, 1, 1}}, 1, 0)
	require.False(t, ok, "one peer needs no correction")
	_, ok = coarseSize(&problem.Problem{Dimension: 1, N: [3]int{50, 1, 1}}, 2, -1)
	require.False(t, ok, "corrections are disabled")
	disc := func(q problem.Point, v float64) float64 {
		if math.Hypot(q[0]-0.3, q[1]-0.4) < 0.1 {
			return v
		}
		return 1
	}
	for name, c := range map[string]struct {
		of   func(q problem.Point) float64
		want bool
	}{
		"small jump":     {func(q problem.Point) float64 { return disc(q, 10) }, true},
		"jump":           {func(q problem.Point) float64 { return disc(q, 100) }, false},
		"jump down":      {func(q problem.Point) float64 { return disc(q, 1e-3) }, false},
		"jump along y":   {func(q problem.Point) float64 { return 1 + 99*math.Round(q[1]) }, false},
		"smooth":         {func(q problem.Point) float64 { return math.Exp(14 * q[0]) }, true},
		"smooth along y": {func(q problem.Point) float64 { return math.Exp(14 * q[1]) }, true},
	} {
		p := solvertest.Membrane([3]int{31, 31, 1}, 2)
		p.Diffusion.Of = c.of
		part, err := problem.GridOf(p.N, [3]int{2, 2, 1})
		require.NoError(t, err)
		for _, s := range []iterate.Scheme{iterate.Asynchronous(), iterate.Synchronous()} {
			run := problem.Config{Problem: p, Partition: part, Scheme: s}
			_, ok = coarseGridOf(&run)
			require.Equal(t, c.want, ok, "%s, %s", name, s.Name())
			run.Method.Coarse = 9
			_, ok = coarseGridOf(&run)
			require.True(t, ok, "the size is configured")
		}
	}
}

// Where the diffusion jumps, what a run has by default costs no exchanges. A correction lowers the residual there and raises the
// error: the line with a jump of 1000 took 7282 exchanges.
func TestCoarseCorrectionDoesNoHarmAtJumps(t *testing.T) {
	for dimension, c := range []struct {
		n, parts [3]int
		wave     float64 // of the pattern
		jumps    []float64
	}{
		1: {[3]int{255, 1, 1}, [3]int{4, 1, 1}, 23, []float64{10, 30, 100, 1e3}},
		2: {[3]int{63, 63, 1}, [3]int{2, 2, 1}, 12, []float64{10, 1e4}},
		3: {[3]int{15, 15, 15}, [3]int{2, 2, 2}, 9, []float64{10, 1e4}},
	} {
		for _, jump := range c.jumps {
			p := solvertest.Membrane(c.n, dimension)
			p.Diffusion.Of = func(q problem.Point) float64 {
				v := 1.0
				for a := range p.Dimension {
					v *= math.Sin(c.wave * q[a])
				}
				if v > 0 {
					return jump
				}
				return 1
			}
			p.Source = problem.Coefficient{Of: func(q problem.Point) float64 { return 5 * math.Sin(9*q[0]) }}
			p.Obstacle = func(q problem.Point) float64 { return 0.3 - 2*(q[0]-0.5)*(q[0]-0.5) }
			part, err := problem.GridOf(p.N, c.parts)
			require.NoError(t, err)
			count := func(coarse int) iterate.Iteration {
				n, err := newNetwork(1, solvertest.ConfigsFor(problem.Config{
					Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: 1e-6, MaxSweeps: 20000,
					Method: problem.MethodConfig{Name: problem.Schwarz, Local: problem.Multigrid, Overlap: 2, Coarse: coarse},
				}))
				require.NoError(t, err)
				require.NoError(t, n.Run())
				return n.Peers[0].Outcome().Sweeps
			}
			with, without := count(0), count(-1)
			t.Logf("%v, jump %v: %d exchanges with the correction, %d without", c.n, jump, with, without)
			require.LessOrEqual(t, with, without+without/5+5) // the first corrections that do not help
		}
	}
}

// TestCoarseCorrectionBoundsExchanges checks that with the coarse correction 64 boxes take few more exchanges than 8,
// and without it more than twice as many.
func TestCoarseCorrectionBoundsExchanges(t *testing.T) {
	n := 32
	if testing.Short() {
		n = 24
	}
	p := solvertest.Membrane([3]int{n, n, n}, 3)
	count := func(parts [3]int, s iterate.Scheme, coarse, overlap int) iterate.Iteration {
		part, err := problem.GridOf(p.N, parts)
		require.NoError(t, err)
		c := problem.Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-6, MaxSweeps: 200,
			Method: problem.MethodConfig{
				Name:        problem.Schwarz,
				Local:       problem.SOR,
				InnerCycles: 30,
				Overlap:     overlap,
				Coarse:      coarse,
			}}
		n, err := newNetwork(1, solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		return n.Peers[0].Outcome().Sweeps
	}
	few := count([3]int{2, 2, 2}, iterate.Synchronous(), 0, 2)
	many := count([3]int{4, 4, 4}, iterate.Synchronous(), 0, 2)
	without := count([3]int{4, 4, 4}, iterate.Synchronous(), -1, 2)
	t.Logf("overlap 2: 8 peers %d exchanges, 64 peers %d, without the correction %d", few, many, without)
	require.LessOrEqual(t, few, iterate.Iteration(8))
	require.LessOrEqual(t, many, iterate.Iteration(11))
	require.Greater(t, without, 2*many)
}

// TestRunConvergesWithHarmfulCorrections checks that a run converges by relaxation if a wrong coarse operator
// makes corrections overshoot.
func TestRunConvergesWithHarmfulCorrections(t *testing.T) {
	p := solvertest.Membrane([3]int{24, 24, 1}, 2)
	part, err := problem.GridOf(p.N, [3]int{3, 3, 1})
	require.NoError(t, err)
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(s.Name(), func(t *testing.T) {
			c := problem.Config{
				Problem:   p,
				Partition: part,
				Scheme:    s,
				Tolerance: 1e-6,
				Method: problem.MethodConfig{
					Name:        problem.Schwarz,
					Local:       problem.SOR,
					InnerCycles: 20,
					Overlap:     2,
					Coarse:      36,
				},
			}
			n, err := newNetwork(3, solvertest.ConfigsFor(c))
			require.NoError(t, err)
			w := n.Peers[0].(*peer)
			r := w.coarse.solver
			r.operator.Diag, r.operator.Off = r.operator.Diag/40, r.operator.Off/40
			coarse := problem.Discretization{
				Problem: w.block.Problem, Box: problem.Box{Hi: w.coarse.grid.n}, Layout: r.layout,
				Operator: r.operator, Diagonal: r.operator.Diag, Source: kernel.Field{Array: r.source},
				Lower: kernel.Field{Array: r.lower}, Upper: kernel.Field{Array: r.upper},
			}
			sweep, err := coarse.Sweep(1)
			require.NoError(t, err)
			r.sweep, r.solver = sweep, relaxingSolver{sweep, r.layout}
			r.forecast = nil // it would adapt to the wrong operator
			require.NoError(t, n.Run())
			for _, q := range n.Peers {
				require.Equal(t, iterate.Converged, q.Outcome().Reason)
			}
			t.Log(w.Iterate, w.coarse.newest, w.coarse.inIterate, r.guard, r.layout.N)
			require.Positive(t, r.guard.until, "the guard has paused corrections")
			e, err := verify.Evaluate(p, n.Assemble(p), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		})
	}
}

// relaxingSolver solves a coarse problem with obstacles by Gauss–Seidel relaxation.
type relaxingSolver struct {
	*kernel.Sweep
	layout kernel.Layout
}

func (l relaxingSolver) Name() string            { return "relaxing" }
func (l relaxingSolver) Start([]float64) float64 { return 0 }
func (l relaxingSolver) Changed()                {}
func (l relaxingSolver) Describe() string        { return "" }

func (l relaxingSolver) Cycle(u []float64) float64 {
	l.RedBlack(u, 1, 60, kernel.Sequential{})
	return 60
}

// TestGuardPausesWhenTheResidualDoesNotFall checks that corrections pause if the residual does not fall for a number of
// rounds, each time for longer, and that a round needs the shares of all peers.
func TestGuardPausesWhenTheResidualDoesNotFall(t *testing.T) {
	g := coarseGuard{seen: make([]bool, 2)}
	g.begin()
	members := []share{{square: 3, fresh: true}, {square: 1, fresh: true}}
	k := iterate.Iteration(0)
	admitted := func() (n int) {
		for g.admits(k, members) {
			n++
			k++
			require.Less(t, n, 1000)
		}
		return n
	}
	require.Equal(t, guardRounds, admitted())
	require.Equal(t, k+guardPause, g.until)
	require.False(t, g.grown)
	k = g.until
	require.Zero(t, admitted(), "relaxation has not reduced the residual since")
	require.Equal(t, k+2*guardPause, g.until)
	k = g.until
	members[0].square /= 2   // now the residual has fallen
	members[1].fresh = false // a share is missing: no round ends
	for range 10 * guardRounds {
		require.True(t, g.admits(k, members))
		k++
	}
	members[1].fresh = true
	for range 100 { // the residual falls
		members[0].square *= 0.5
		members[1].square *= 0.5
		require.True(t, g.admits(k, members))
		k++
	}
	last := members[0].square
	members[0].square *= 1000
	require.False(t, g.admits(k, members), "the residual has grown")
	require.True(t, g.grown, "the last correction is taken back")
	k = g.until
	require.False(t, g.admits(k, members), "the residual is still above the smallest one")
	require.False(t, g.grown, "there is no correction to take back")
	k = g.until
	members[0].square = last / 2
	require.True(t, g.admits(k, members))
}
