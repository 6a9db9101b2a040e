package multilevel

import (
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Multigrid of one peer has the bits and the cycles of multigrid in package method.
func TestMultigridOfOnePeerEqualsSolveBy(t *testing.T) {
	check := func(t require.TestingT, p *problem.Problem, tol float64) {
		want, err := SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, tol, 40, nil)
		require.NoError(t, err)
		c := alone(
			problem.Config{
				Problem:   p,
				Scheme:    iterate.Synchronous(),
				Tolerance: tol,
				MaxSweeps: 40,
				Method:    problem.MethodConfig{Name: problem.Multigrid},
			},
		)
		k := newPeerGroup(t, 1, c).run()
		o := k.peers[0].Outcome()
		require.Equal(t, want.Reason, o.Reason)
		require.EqualValues(t, want.Cycles, o.Sweeps)
		require.Equal(t, want.Residual, o.Residual)
		require.InDelta(t, want.Work, o.Work, 1e-9*want.Work+1e-300)
		solvertest.RequireSameBits(t, want.U, k.answer(p))
	}
	for _, n := range [][3]int{{31, 31, 31}, {16, 20, 24}, {33, 15, 1}, {100, 1, 1}} {
		dim := 3
		for dim > 1 && n[dim-1] == 1 {
			dim--
		}
		check(t, solvertest.Membrane(n, dim), 1e-8)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, solvertest.AnyProblem(t), 1e-7) })
	// Peers reuse the grids of the previous time step; SolveBy allocates new ones.
	rapid.Check(t, func(t *rapid.T) { check(t, solvertest.Evolving(t), 1e-7) })
	// At rest the residual is that of rounding, and no correction reduces it, not even the first one of a step.
	rest := solvertest.Membrane([3]int{3, 1, 1}, 1)
	still := *rest
	rest.Evolution = &problem.Evolution{End: 0.3, Steps: 2, At: func(float64) *problem.Problem { p := still; return &p }}
	check(t, rest, 1e-7)
}

func TestMultigridEqualsOnePeerOnAnyPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Tolerance: 1e-7, MaxSweeps: 30,
			Scheme: iterate.Synchronous(),
			Method: problem.MethodConfig{
				Name:  problem.Multigrid,
				Cycle: rapid.SampledFrom([]string{"", "v", "w"}).Draw(t, "cycle"),
			}, Executor: solvertest.Threads{}, Late: rapid.Bool().Draw(t, "late"),
		}
		c.GatherPoints = rapid.SampledFrom([]int{1, 10, 100, 0}).Draw(t, "gather")
		one, _ := sameAsAlone(t, rapid.Uint64().Draw(t, "seed"), c)
		if o := one.peers[0].Outcome(); o.Reason == iterate.Converged {
			e, err := verify.Evaluate(p, one.answer(p), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
		}
	})
}

// Several levels of these grids are distributed.
func TestMultigridEqualsOnePeerWithSeveralDistributedLevels(t *testing.T) {
	for _, c := range []struct {
		n, parts [3]int
		dim      int
		small    int // points of grids that are gathered
		cut      int // distributed grids
	}{
		{[3]int{47, 47, 47}, [3]int{1, 1, 2}, 3, 100, 4},
		{[3]int{35, 35, 35}, [3]int{1, 1, 2}, 3, 0, 1},
		{[3]int{31, 23, 19}, [3]int{2, 2, 2}, 3, 100, 3},
		{[3]int{32, 20, 32}, [3]int{1, 2, 2}, 3, 100, 3},
		{[3]int{127, 63, 1}, [3]int{2, 3, 1}, 2, 10, 5},
		{[3]int{100, 50, 1}, [3]int{4, 1, 1}, 2, 10, 4},
		{[3]int{2001, 1, 1}, [3]int{3, 1, 1}, 1, 10, 8},
		{[3]int{15, 15, 15}, [3]int{1, 1, 15}, 3, 1, 0},
		{[3]int{8, 20, 20}, [3]int{8, 1, 1}, 3, 1, 1},
	} {
		t.Run(fmt.Sprint(c.n, c.parts), func(t *testing.T) {
			p := solvertest.Membrane(c.n, c.dim)
			part, err := problem.GridOf(c.n, c.parts)
			require.NoError(t, err)
			config := problem.Config{
				Problem: p, Partition: part, Tolerance: 1e-6, MaxSweeps: 12, Scheme: iterate.Synchronous(),
				Method: problem.MethodConfig{Name: problem.Multigrid}, GatherPoints: c.small,
			}
			plan := planLevels(&config)
			require.Equal(t, c.cut, plan.gathered)
			one, _ := sameAsAlone(t, 3, config)
			require.NotEqual(t, iterate.Diverged, one.peers[0].Outcome().Reason)
		})
	}
}

// The root holds the coarsest grid alone. Truncated arms of its points have codes that depend on the diffusion.
func TestMultigridEqualsOnePeerIfOnlyTheCoarsestGridIsGathered(t *testing.T) {
	for _, n := range [][3]int{{1, 5, 1}, {1, 10, 1}, {3, 11, 1}, {7, 7, 1}, {5, 11, 5}} {
		for _, length := range []float64{0.3, 1, 1.5, 4} {
			t.Run(fmt.Sprint(n, length), func(t *testing.T) {
				p := solvertest.Membrane(n, 3)
				p.Hi[0] = length
				p.Diffusion.Of = func(q problem.Point) float64 { return 1 + 0.5*math.Sin(3*q[1]) }
				cut := n[1] / 2
				c := problem.Config{
					Problem:   p,
					Partition: problem.Partition{Cuts: [3][]int{{0, n[0]}, {0, cut, n[1]}, {0, n[2]}}},
					Tolerance: 1e-9, MaxSweeps: 20, Scheme: iterate.Synchronous(), GatherPoints: 1,
					Method: problem.MethodConfig{Name: problem.Multigrid},
				}
				sameAsAlone(t, 1, c)
			})
		}
	}
}

func TestMultigridSolvesTimeStepsAsOnePeer(t *testing.T) {
	p := solvertest.Heating(17, 3)
	for _, parts := range [][3]int{{1, 1, 1}, {2, 1, 1}, {2, 2, 2}, {1, 1, 9}} {
		part, err := problem.GridOf(p.N, parts)
		require.NoError(t, err)
		one, _ := sameAsAlone(
			t,
			5,
			problem.Config{
				Problem:   p,
				Partition: part,
				Scheme:    iterate.Synchronous(),
				Tolerance: 1e-7,
				Method:    problem.MethodConfig{Name: problem.Multigrid},
			},
		)
		require.Len(t, one.steps[0], p.Evolution.Steps)
		require.Equal(t, iterate.Converged, one.peers[0].Outcome().Reason)
		require.False(t, math.IsNaN(one.peers[0].Outcome().WorstResidual))
	}
}

// TestTimeStepsReuseGrids checks that grids are allocated once per run, not once per time step.
func TestTimeStepsReuseGrids(t *testing.T) {
	p := solvertest.Heating(15, 3)
	base := *p
	p.Evolution.At = func(t float64) *problem.Problem { // an operator that changes
		q := base
		q.Diffusion.Of = func(x problem.Point) float64 { return 1 + t*x[0] }
		return &q
	}
	p.Diffusion = p.Evolution.At(p.Evolution.End).Diffusion
	g, err := newPeer(
		alone(
			problem.Config{
				Problem:   p,
				Scheme:    iterate.Synchronous(),
				Tolerance: 1e-7,
				Method:    problem.MethodConfig{Name: problem.Multigrid},
			},
		),
	)
	require.NoError(t, err)
	m := g.driver.method.(*multigrid)
	coarse := m.levels[1]
	values, first := &coarse.Values[0], &coarse.Operator().Arrays[0][0]
	entry := *first
	for op := g.Next(0); op.Kind != iterate.OpDone; op = g.Next(0) {
		require.NotEqual(t, iterate.OpFail, op.Kind)
		g.Relax(op)
	}
	require.Equal(t, 3, g.Outcome().Steps)
	require.Same(t, coarse, m.levels[1])
	require.Same(t, values, &coarse.Values[0])
	require.Same(t, first, &coarse.Operator().Arrays[0][0])
	require.NotEqual(t, entry, *first)
}

// rough returns a membrane over an obstacle of spikes with a load of both signs. Coarse grids represent it poorly, so
// that the safeguard rejects some cycles.
func rough(n [3]int, dim int, seed float64) *problem.Problem {
	p := solvertest.Membrane(n, dim)
	noise := func(q problem.Point, k float64) float64 {
		v := math.Sin(1e4 * (seed*q[0] + k*q[1] + 3*q[2] + seed + k))
		return v * v * v
	}
	p.Obstacle = func(q problem.Point) float64 { return 0.3*noise(q, 1.7) - 0.2 }
	p.Upper = func(q problem.Point) float64 { return 0.3*noise(q, 1.7) + 0.05 + 0.3*math.Abs(noise(q, 2.9)) }
	p.Boundary = func(q problem.Point) float64 { return problem.Clamp(0, p.Obstacle(q), p.Upper(q)) }
	p.Source.Of = func(q problem.Point) float64 { return 300 * noise(q, 5.3) }
	p.Diffusion.Of = func(q problem.Point) float64 { return math.Exp(10 * noise(nearest(p, q), 0.3)) }
	return p
}

// nearest returns the grid point nearest to q.
func nearest(p *problem.Problem, q problem.Point) problem.Point {
	for a := range p.Dimension {
		h := p.Spacing(a)
		q[a] = p.Lo[a] + h*math.Floor((q[a]-p.Lo[a])/h+0.5)
	}
	return q
}

// All peers take the same decisions of the safeguard, with the same results.
func TestSafeguardDecidesAlikeOnAllPeers(t *testing.T) {
	rejected := 0
	for seed := range 4 {
		for _, c := range []struct {
			n, parts [3]int
			dim      int
		}{
			{[3]int{23, 15, 1}, [3]int{2, 2, 1}, 2},
			{[3]int{11, 8, 7}, [3]int{1, 2, 2}, 3},
			{[3]int{12, 6, 1}, [3]int{1, 6, 1}, 2},
		} {
			p := rough(c.n, c.dim, 0.71+0.13*float64(seed))
			p.Velocity[0].Value = 30 * float64(seed%2) // then the matrix is nonsymmetric, and the residual decides alone
			p.Upwind = true
			part, err := problem.GridOf(c.n, c.parts)
			require.NoError(t, err)
			config := problem.Config{
				Problem: p, Partition: part, Tolerance: 1e-9, MaxSweeps: 7, Scheme: iterate.Synchronous(),
				Method: problem.MethodConfig{Name: problem.Multigrid}, GatherPoints: 10,
			}
			one, _ := sameAsAlone(t, uint64(seed), config)
			want, err := SolveBy(p, config.Method, config.Tolerance, int(config.MaxSweeps), nil)
			require.NoError(t, err)
			solvertest.RequireSameBits(t, want.U, one.answer(p))
			rejected += one.peers[0].(*peer).driver.method.(*multigrid).guard.Rejections()
		}
	}
	require.Positive(t, rejected)
}

// If coarse grids give a poor start, all peers discard it, and the next cycle begins with the reference vector.
func TestRejectedStartIsDroppedByAllPeers(t *testing.T) {
	rejected := 0
	for seed := range 2 {
		for _, c := range []struct {
			n, parts [3]int
			dim      int
			small    int
		}{
			{[3]int{23, 15, 1}, [3]int{2, 2, 1}, 2, 10},
			{[3]int{12, 9, 1}, [3]int{1, 9, 1}, 2, 10},
			{[3]int{11, 8, 7}, [3]int{1, 2, 2}, 3, 0},
		} {
			p := rough(c.n, c.dim, 1)
			noise := func(q problem.Point, k float64) float64 {
				v := math.Sin(1e4 * (q[0] + k*q[1] + 3*q[2] + float64(seed) + k))
				return v * v * v
			}
			p.Obstacle = nil
			p.Upper = nil
			p.Boundary = func(q problem.Point) float64 { return noise(q, 3.1) }
			p.Source.Of = func(q problem.Point) float64 { return 1e4 * noise(q, 5.3) }
			p.Diffusion.Of = func(q problem.Point) float64 { return math.Exp(10 * noise(nearest(p, q), 0.3)) }
			part, err := problem.GridOf(c.n, c.parts)
			require.NoError(t, err)
			for most := range iterate.Iteration(2) {
				config := problem.Config{
					Problem: p, Partition: part, Tolerance: 1e-9, MaxSweeps: most + 1, Scheme: iterate.Synchronous(),
					Method: problem.MethodConfig{Name: problem.Multigrid}, GatherPoints: c.small,
				}
				one, _ := sameAsAlone(t, uint64(seed), config)
				m := one.peers[0].(*peer).driver.method.(*multigrid)
				if most == 0 {
					rejected += m.guard.Rejections()
				}
				if e, err := verify.Evaluate(p, one.answer(p), nil); err == nil && e.RelativeResidual <= 1 {
					want, err := SolveBy(p, config.Method, config.Tolerance, int(config.MaxSweeps), nil)
					require.NoError(t, err)
					solvertest.RequireSameBits(t, want.U, one.answer(p))
				}
			}
		}
	}
	require.Positive(t, rejected)
}
