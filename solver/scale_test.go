package solver

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// timesPower is a problem with all of its data times 2^k.
func timesPower(p *problem.Problem, k int) *problem.Problem {
	of := func(f problem.Function) problem.Function {
		if f == nil {
			return nil
		}
		return func(q problem.Point) float64 { return math.Ldexp(f(q), k) }
	}
	q := *p
	q.Obstacle, q.Upper, q.Boundary, q.Initial, q.Exact = of(
		p.Obstacle,
	), of(
		p.Upper,
	), of(
		p.Boundary,
	), of(
		p.Initial,
	), of(
		p.Exact,
	)
	q.Source = problem.Coefficient{Value: math.Ldexp(p.Source.Value, k), Of: of(p.Source.Of)}
	if e := p.Evolution; e != nil {
		evolution := *e
		evolution.Initial = of(e.Initial)
		evolution.At = func(t float64) *problem.Problem { return timesPower(e.At(t), k) }
		q.Evolution = &evolution
	}
	return &q
}

// anyData draws a problem; where all of its data are 0, so is its start.
func anyData(t *rapid.T) *problem.Problem {
	p := solvertest.AnyProblem(t)
	if p.Obstacle == nil && p.Source.Of == nil && p.Source.Value == 0 {
		p.Initial = nil
	}
	return p
}

// anyPower draws k so that answers stay in the range of float64, far from 1 more often
// than not.
func anyPower(t *rapid.T) int {
	if rapid.Bool().Draw(t, "decimal") {
		return rapid.SampledFrom([]int{-930, -549, -400, 320, 515, 900}).Draw(t, "power")
	}
	return rapid.IntRange(-930, 900).Draw(t, "power")
}

// requireScaled requires that got is want times 2^k.
func requireScaled(t require.TestingT, want, got []float64, k int) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, math.Ldexp(want[i], k), got[i], "at %d", i)
	}
}

// anyMethod draws a run in lockstep whose work is not chosen by measurement.
func anyMethod(t *rapid.T) problem.MethodConfig {
	switch rapid.IntRange(0, 3).Draw(t, "method") {
	case 1:
		return problem.MethodConfig{Name: problem.SOR}
	case 2:
		return problem.MethodConfig{Name: problem.Multigrid}
	case 3:
		m := solvertest.AnySchwarz(t)
		m.Coarse = rapid.SampledFrom([]int{-1, 30}).Draw(t, "coarse")
		return m
	}
	return problem.MethodConfig{}
}

// Data times 2^k give the same run, and 2^k times its bits, over the range of float64.
func TestDataTimesAPowerOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, k := anyData(t), anyPower(t)
		if rapid.IntRange(0, 3).Draw(t, "steps") == 0 {
			p = solvertest.Evolve(t, p)
		}
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: iterate.Synchronous(), Method: anyMethod(t),
			Tolerance: rapid.SampledFrom([]float64{1e-2, 1e-6}).Draw(t, "tolerance"), MaxSweeps: 300,
		}
		if c.Partition.Peers() > solvertest.MostPeers {
			c.Partition, _ = problem.Slabs(p.N, 1, nil)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		solve := func(p *problem.Problem) (iterate.Outcome, []float64) {
			c.Problem = p
			n, err := newNetwork(seed, solvertest.ConfigsFor(c))
			require.NoError(t, err)
			require.NoError(t, n.Run())
			out := n.Peers[0].Outcome()
			out.State = nil // residuals in it have the unit of the data
			return out, n.Assemble(p)
		}
		want, u := solve(p)
		got, v := solve(timesPower(p, k))
		require.Equal(t, want, got)
		requireScaled(t, u, v, k)
	})
}

// The same for the sequential method, for a method on one block, and for the evaluation.
func TestAnswersTimesAPowerOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, k := anyData(t), anyPower(t)
		p.Exact = func(q problem.Point) float64 { return 0.1 * q[0] }
		q := timesPower(p, k)
		want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-3, 0, 0, 200)
		require.NoError(t, err)
		got, err := richardson.SolveSequential(q, problem.Jacobi, 1e-3, 0, 0, 200)
		require.NoError(t, err)
		requireScaled(t, want.U, got.U, k)
		got.U = want.U
		require.Equal(t, want, got)

		by, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-6, 20, nil)
		require.NoError(t, err)
		bz, err := multilevel.SolveBy(q, problem.MethodConfig{Name: problem.Multigrid}, 1e-6, 20, nil)
		require.NoError(t, err)
		requireScaled(t, by.U, bz.U, k)
		require.Equal(t, by.Residual, bz.Residual)

		e, err := verify.Evaluate(p, by.U, nil)
		require.NoError(t, err)
		f, err := verify.Evaluate(q, bz.U, nil)
		require.NoError(t, err)
		require.Equal(t, e.RelativeResidual, f.RelativeResidual)
		require.Equal(t, e.ContactPoints, f.ContactPoints)
		requireScaled(t, []float64{e.ResidualInf, e.MaxError, e.Sum, e.Force[0], e.Force[1]},
			[]float64{f.ResidualInf, f.MaxError, f.Sum, f.Force[0], f.Force[1]}, k)
		require.Equal(t, math.IsNaN(e.ErrorBound), math.IsNaN(f.ErrorBound))
		if e.ErrorBound > 1e-300 {
			require.InDelta(t, e.ErrorBound, math.Ldexp(f.ErrorBound, -k), 1e-9*e.ErrorBound+1e-250)
			a, err := verify.Enclose(t.Context(), p, by.U, &e, 2, nil)
			require.NoError(t, err)
			b, err := verify.Enclose(t.Context(), q, bz.U, &f, 2, nil)
			require.NoError(t, err)
			require.InDelta(t, a.Width, math.Ldexp(b.Width, -k), 1e-12)
			require.Equal(t, a.Contact, b.Contact)
		}
		force, err := verify.ContactForce(p, nil, 0, by.U, nil)
		require.NoError(t, err)
		times, err := verify.ContactForce(q, nil, 0, bz.U, nil)
		require.NoError(t, err)
		requireScaled(t, force.Values, times.Values, k)
	})
}

// An asynchronous run meets its tolerance for data of any magnitude.
func TestAsynchronousRunsOfAnyMagnitude(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := timesPower(anyData(t), anyPower(t))
		c := problem.Config{
			Problem:   p,
			Partition: solvertest.AnyPartition(t, p),
			Scheme:    iterate.Asynchronous(),
			Tolerance: 1e-4,
		}
		if rapid.Bool().Draw(t, "schwarz") {
			c.Method = solvertest.AnySchwarz(t)
		}
		if c.Partition.Peers() > solvertest.MostPeers {
			c.Partition, _ = problem.Slabs(p.N, 1, nil)
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
		require.Equal(t, iterate.Converged, n.Peers[0].Outcome().Reason)
	})
}

// The same for operators of any magnitude.
func TestOperatorsTimesAPowerOfTwo(t *testing.T) {
	for _, k := range []int{-560, -300, 300, 560} {
		p := solvertest.Membrane([3]int{9, 7, 1}, 2)
		p.Source.Value = -3
		q := *p
		q.Diffusion.Value, q.Source.Value = math.Ldexp(1, k), math.Ldexp(-3, k)
		for _, name := range []string{problem.Richardson, problem.SOR, problem.Multigrid} {
			want, err := multilevel.SolveBy(p, problem.MethodConfig{Name: name}, 1e-8, 1000, nil)
			require.NoError(t, err)
			got, err := multilevel.SolveBy(&q, problem.MethodConfig{Name: name}, 1e-8, 1000, nil)
			require.NoError(t, err)
			require.Equal(t, want.U, got.U, "%s, 2^%d", name, k)
			require.Equal(t, iterate.Converged, got.Reason)
			e, err := verify.Evaluate(&q, got.U, nil)
			require.NoError(t, err)
			require.Equal(t, want.Residual, e.RelativeResidual)
		}
	}
}

// A problem with data outside the supported range is refused with an error that names the value and the range.
func TestDataOutOfRangeAreRefused(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 7, 1}, 2)
	solve := func(p *problem.Problem) error {
		_, err := richardson.SolveSequential(p, problem.Jacobi, 1e-3, 0, 0, 50)
		return err
	}
	for _, k := range []int{990, 1020} {
		err := solve(timesPower(p, k))
		require.ErrorIs(t, err, problem.ErrProblem, "2^%d", k)
		require.ErrorContains(t, err, "choose other units")
	}
	for _, k := range []int{-990, -1050} { // whose answers are rounded to the least numbers
		require.NoError(t, solve(timesPower(p, k)), "2^%d", k)
	}
	stiff := *p
	stiff.Diffusion.Value = 0x1p700
	require.ErrorContains(t, solve(&stiff), "the operator's diagonal is about 1e+213")

	peak := *p // between the points that are looked at first, and 1e200 times as large
	peak.N = [3]int{40, 40, 1}
	peak.Source.Of = func(q problem.Point) float64 {
		if q == peak.At(4, 4, 1) {
			return 1e200
		}
		return 1
	}
	err := solve(&peak)
	require.ErrorIs(t, err, problem.ErrProblem)
	require.ErrorContains(t, err, "too large to be squared")
	c := problem.Config{
		Problem:   &peak,
		Partition: solvertest.SlabsOf(t, &peak, 1),
		Scheme:    iterate.Synchronous(),
		Tolerance: 1e-3,
	}
	for _, m := range []problem.MethodConfig{{}, {Name: problem.SOR}, {Name: problem.Multigrid},
		{Name: problem.Schwarz}} {
		c.Method = m
		_, err = New(c)
		require.ErrorContains(t, err, "too large to be squared", m.Name)
	}
	small := *p
	small.Hi = problem.Point{1e-160, 1e-160}
	require.ErrorContains(t, solve(&small), "choose another unit of length")
	far := *p
	far.Initial = func(problem.Point) float64 { return 1e200 }
	require.ErrorContains(t, solve(&far), "of the size of the problem's data")
}

// A large negative obstacle that means "none" has no effect.
func TestNoObstacleByALargeNumber(t *testing.T) {
	p := solvertest.Membrane([3]int{15, 1, 1}, 1)
	inner := p.Obstacle
	p.Obstacle = func(q problem.Point) float64 {
		if math.Abs(q[0]-0.5) > 0.2 {
			return -1
		}
		return inner(q)
	}
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	tiny := timesPower(p, -900)
	scaled := tiny.Obstacle
	tiny.Obstacle = func(q problem.Point) float64 {
		if math.Abs(q[0]-0.5) > 0.2 {
			return -1e300
		}
		return scaled(q)
	}
	got, err := richardson.SolveSequential(tiny, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	requireScaled(t, want.U, got.U, -900)
}
