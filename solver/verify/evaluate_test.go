package verify

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// Evaluate against gonum: A dense, the residual by its definition.
func TestEvaluateAgainstDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		if p.Points() > 300 {
			t.Skip("too large for a dense matrix")
		}
		p.Boundary = func(q problem.Point) float64 { return 0.1 + q[0] }
		p.Exact = func(q problem.Point) float64 { return q[0] + q[1] }
		phi, psi := make([]float64, p.Points()), make([]float64, p.Points())
		u, u0 := make([]float64, p.Points()), make([]float64, p.Points())
		contact, largest := 0, 0.0
		sum := 0.0
		problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
			q := p.At(idx[0], idx[1], idx[2])
			phi[d], psi[d] = math.Inf(-1), math.Inf(1)
			if p.Obstacle != nil {
				phi[d] = p.Obstacle(q)
			}
			if p.Upper != nil {
				psi[d] = p.Upper(q)
			}
			u0[d] = math.Min(math.Max(phi[d], 0), psi[d])
			u[d] = math.Min(math.Max(phi[d], rapid.Float64Range(-1, 1).Draw(t, "u")), psi[d])
			if u[d] == phi[d] {
				contact++
			}
			sum += u[d]
			largest = math.Max(largest, math.Abs(u[d]-q[0]-q[1]))
			return true
		})
		a, f := solvertest.Dense(p)
		residual := func(v []float64) (float64, float64) {
			var r mat.VecDense
			r.MulVec(a, mat.NewVecDense(len(v), v))
			r.SubVec(&r, f)
			for i := range v {
				if v[i] == phi[i] {
					r.SetVec(i, math.Min(r.AtVec(i), 0))
				}
				if v[i] == psi[i] {
					r.SetVec(i, math.Max(r.AtVec(i), 0))
				}
			}
			return mat.Norm(&r, 2), mat.Norm(&r, math.Inf(1))
		}
		r2, rInf := residual(u)
		r0, _ := residual(u0)
		_, in, err := p.InRange()
		require.NoError(t, err)
		e, err := Evaluate(p, u, solvertest.Backwards{})
		require.NoError(t, err)
		require.InEpsilon(t, 1+iterate.Relative(r2, in.Reference(r0)), 1+e.RelativeResidual, 1e-10)
		require.InEpsilon(t, 1+rInf, 1+e.ResidualInf, 1e-10)
		require.Equal(t, contact, e.ContactPoints)
		require.InDelta(t, largest, e.MaxError, 1e-14)
		for ax := range p.Dimension {
			sum /= float64(p.N[ax] + 1)
		}
		require.InDelta(t, sum, e.Sum, 1e-12)
	})
}

// TestEvaluationIsIndependentOfChunks compares chunks of any size with a single chunk.
func TestEvaluationIsIndependentOfChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		p.Boundary = func(q problem.Point) float64 { return 0.1 + q[0] }
		p.Exact = func(q problem.Point) float64 { return q[0] + q[1] }
		var before []float64
		if rapid.Bool().Draw(t, "time step") {
			before = make([]float64, p.Points())
			for i := range before {
				before[i] = float64(i % 7)
			}
			p.SteadyObstacles = rapid.Bool().Draw(t, "steady") // and yet those of the next slab are others
		}
		u := make([]float64, p.Points())
		b, err := problem.Discretize(p, problem.Box{Hi: p.N})
		require.NoError(t, err)
		for d := range u {
			u[d] = b.Project(float64(d%11)/5-1, d)
		}
		whole, err := (&evaluator{p: p, before: before, dt: 0.5, u: u}).evaluateChunks(problem.Sequential{})
		require.NoError(t, err)
		j := evaluator{p: p, before: before, dt: 0.5, u: u, points: rapid.IntRange(1, p.Points()).Draw(t, "slab")}
		cut, err := j.evaluateChunks(solvertest.Backwards{})
		require.NoError(t, err)
		want, got := whole.evaluation(&j), cut.evaluation(&j)
		want.ErrorBound, got.ErrorBound = 0, 0 // known later
		require.Equal(t, want, got)
		require.Equal(t, whole.excess, cut.excess)
		require.LessOrEqual(t, cut.rounding, whole.rounding)
		require.Positive(t, cut.rounding)
	})
}

// Rounding is allowed for the values beside a point, too: boundary data may be the largest.
func TestRoundingBoundCoversBoundaryData(t *testing.T) {
	p := solvertest.Membrane([3]int{3, 3, 3}, 3)
	u := make([]float64, p.Points())
	small, err := (&evaluator{p: p, u: u}).evaluateChunks(problem.Sequential{})
	require.NoError(t, err)
	p.Boundary = func(q problem.Point) float64 {
		if q[0] == 1 {
			return 1e6
		}
		return 0
	}
	large, err := (&evaluator{p: p, u: u}).evaluateChunks(problem.Sequential{})
	require.NoError(t, err)
	require.Greater(t, large.rounding, 1e6*small.rounding/2)
}

// The error bound holds, and is not vacuous, where it is claimed; nowhere else.
func TestErrorBoundIsValidAndNotVacuous(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 9, 9}, 3)
	exact, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 0)
	require.NoError(t, err)
	rough, err := richardson.SolveSequential(p, problem.Jacobi, 1e-2, 0, 0, 0)
	require.NoError(t, err)
	e, err := Evaluate(p, rough.U, nil)
	require.NoError(t, err)
	worst := 0.0
	for i := range exact.U {
		worst = math.Max(worst, math.Abs(exact.U[i]-rough.U[i]))
	}
	require.LessOrEqual(t, worst, e.ErrorBound)
	require.Less(t, e.ErrorBound, 20*worst)
	require.True(t, math.IsNaN(e.MaxError))
}

func TestProblemErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *problem.Problem)
		want   string
	}{
		"dimension":         {func(p *problem.Problem) { p.Dimension = 4 }, "dimension 4"},
		"grid":              {func(p *problem.Problem) { p.N[1] = 0 }, "0 interior points on axis 1"},
		"unused axis":       {func(p *problem.Problem) { p.Dimension = 2 }, "unused in dimension 2"},
		"too large":         {func(p *problem.Problem) { p.N = [3]int{1 << 20, 1 << 20, 1 << 20} }, "too large"},
		"domain":            {func(p *problem.Problem) { p.Hi[2] = -1 }, "axis 2"},
		"no boundary":       {func(p *problem.Problem) { p.Boundary = nil }, "boundary data"},
		"diffusion":         {func(p *problem.Problem) { p.Diffusion.Value = 0 }, "diffusion is 0"},
		"reaction":          {func(p *problem.Problem) { p.Reaction.Value = math.Inf(-1) }, "reaction is -Inf"},
		"velocity":          {func(p *problem.Problem) { p.Velocity[0].Value = math.NaN() }, "velocity along axis 0"},
		"source":            {func(p *problem.Problem) { p.Source.Value = math.Inf(1) }, "source is +Inf"},
		"obstacle above":    {func(p *problem.Problem) { p.Obstacle = func(problem.Point) float64 { return 1 } }, "above the boundary data"},
		"upper below":       {func(p *problem.Problem) { p.Upper = func(problem.Point) float64 { return -1 } }, "below the boundary data"},
		"boundary infinite": {func(p *problem.Problem) { p.Boundary = func(problem.Point) float64 { return math.Inf(-1) } }, "boundary data are -Inf"},
	} {
		p := solvertest.Membrane([3]int{3, 3, 3}, 3)
		require.NoError(t, p.Validate())
		c.change(p)
		err := p.Validate()
		require.ErrorIs(t, err, problem.ErrProblem, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestWorkerRejectsInvalidConfig(t *testing.T) {
	bad := func(problem.Point) float64 { return math.NaN() }
	for name, c := range map[string]struct {
		change func(c *problem.Config)
		want   string
	}{
		"no problem":   {func(c *problem.Config) { c.Problem = nil }, "needs a problem"},
		"partition":    {func(c *problem.Config) { c.Partition.Cuts[0] = []int{0, 9} }, "must run from 0 to 3"},
		"rank":         {func(c *problem.Config) { c.Rank = 7 }, "rank 7"},
		"order":        {func(c *problem.Config) { c.Order = 9 }, "order 9"},
		"tolerance":    {func(c *problem.Config) { c.Tolerance = math.NaN() }, "tolerance is NaN"},
		"lag":          {func(c *problem.Config) { c.CheckEvery, c.Lag = 4, 5 }, "lag of 5"},
		"obstacle":     {func(c *problem.Config) { c.Problem.Obstacle = bad }, "obstacle is NaN at [0.25 0.25 0.25]"},
		"source":       {func(c *problem.Config) { c.Problem.Source.Of = bad }, "source is NaN"},
		"boundary":     {func(c *problem.Config) { c.Problem.Boundary = bad }, "boundary data"},
		"coefficients": {func(c *problem.Config) { c.Problem.Diffusion.Of = bad }, "not finite"},
		"diagonal":     {func(c *problem.Config) { c.Problem.Reaction.Of = func(problem.Point) float64 { return -1e9 } }, "must be positive"},
		"crossing":     {func(c *problem.Config) { c.Problem.Upper = func(problem.Point) float64 { return -5 } }, "above the upper one"},
		"initial":      {func(c *problem.Config) { c.Problem.Initial = bad }, "starting value is NaN"},
		"initial size": {func(c *problem.Config) { c.Initial = make([]float64, 2) }, "2 starting values"},
	} {
		p := solvertest.Membrane([3]int{3, 3, 3}, 3)
		part, err := problem.Slabs(p.N, 1, nil)
		require.NoError(t, err)
		cfg := problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: 1e-3}
		c.change(&cfg)
		_, err = richardson.Method{}.New(cfg)
		require.ErrorContains(t, err, c.want, name)
	}
}

// TestMeasureDoesNotSearchForABound checks that Measure returns what Evaluate returns, except for a bound that
// needs a search.
func TestMeasureDoesNotSearchForABound(t *testing.T) {
	p := solvertest.Membrane([3]int{30, 20, 1}, 2)
	p.Diffusion.Of = inclusion(100)
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 0.6
	}
	full, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	quick, err := Measure(p, u, nil)
	require.NoError(t, err)
	require.Positive(t, full.Certificate.Work)
	require.Zero(t, quick.Certificate.Work)
	require.True(t, math.IsNaN(quick.ErrorBound))
	require.Contains(t, quick.Certificate.Why, "ended early")
	require.Equal(t, full.RelativeResidual, quick.RelativeResidual)
	require.Equal(t, full.ContactPoints, quick.ContactPoints)
	require.Equal(t, full.Sum, quick.Sum)

	p = solvertest.Membrane([3]int{30, 20, 1}, 2)
	quick, err = Measure(p, u, nil)
	require.NoError(t, err)
	require.Positive(t, quick.ErrorBound, "constant coefficients need no search")
}
