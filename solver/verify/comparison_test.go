package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Matrices that are M-matrices of moderate ‖A⁻¹‖∞ have a bound: jumps that are not on the
// grid, flows that turn or meet, coefficients over 24 decades. The norm in it is little
// more than that of the inverse, which relaxation finds too, and the search costs little.
func TestBoundExistsForMMatrices(t *testing.T) {
	flow := func(x, y problem.Function) [3]problem.Coefficient { return [3]problem.Coefficient{{Of: x}, {Of: y}} }
	rotation := func(size float64) [3]problem.Coefficient {
		return flow(
			func(q problem.Point) float64 { return size * (q[1] - 0.5) },
			func(q problem.Point) float64 { return size * (0.5 - q[0]) },
		)
	}
	meeting := flow(
		func(q problem.Point) float64 { return 50 * (q[0] - 0.5) },
		func(q problem.Point) float64 { return 50 * (q[1] - 0.5) },
	)
	cell := flow(func(q problem.Point) float64 { return math.Sin(math.Pi*q[0]) * math.Cos(math.Pi*q[1]) },
		func(q problem.Point) float64 { return -math.Cos(math.Pi*q[0]) * math.Sin(math.Pi*q[1]) })
	for _, c := range []struct {
		name      string
		n         [3]int
		diffusion problem.Coefficient
		velocity  [3]problem.Coefficient
		work      float64
	}{
		{"disk 100", [3]int{63, 63, 1}, problem.Coefficient{Of: inclusion(100)}, [3]problem.Coefficient{}, 80},
		{"disk 1e6", [3]int{100, 63, 1}, problem.Coefficient{Of: inclusion(1e6)}, [3]problem.Coefficient{}, 80},
		{"disk 1e-4", [3]int{63, 63, 1}, problem.Coefficient{Of: inclusion(1e-4)}, [3]problem.Coefficient{}, 90},
		{"ball 100", [3]int{31, 31, 31}, problem.Coefficient{Of: inclusion(100)}, [3]problem.Coefficient{}, 80},
		{"rotation 60", [3]int{31, 31, 1}, problem.Coefficient{Value: 1}, rotation(60), 80},
		{"rotation 20", [3]int{63, 63, 1}, problem.Coefficient{Value: 1e-3}, rotation(20), 200},
		{"rotation 20", [3]int{127, 127, 1}, problem.Coefficient{Value: 1e-3}, rotation(20), 400},
		{"flows that meet", [3]int{63, 63, 1}, problem.Coefficient{Value: 1}, meeting, 100},
		{"recirculation", [3]int{63, 63, 1}, problem.Coefficient{Value: 0.02}, cell, 120},
		{"24 decades", [3]int{63, 40, 1}, problem.Coefficient{Of: func(q problem.Point) float64 { return math.Pow(10, 24*q[0]) }}, [3]problem.Coefficient{}, 100},
		{"a jump in 1-D", [3]int{2000, 1, 1}, problem.Coefficient{Of: inclusion(1e4)}, [3]problem.Coefficient{}, 40},
	} {
		dimension := 1
		for dimension < 3 && c.n[dimension] > 1 {
			dimension++
		}
		p := solvertest.Membrane(c.n, dimension)
		p.Upwind = true
		p.Diffusion = c.diffusion
		p.Velocity = c.velocity
		u := make([]float64, p.Points())
		for i := range u {
			u[i] = 0.6
		}
		e, err := Evaluate(p, u, nil)
		require.NoError(t, err)
		require.Empty(t, e.Certificate.Why, c.name)
		require.Greater(t, e.ErrorBound, 0.0, c.name)
		q := unitProblem(p, p.N)
		w := 0.0
		slow := c.name == "24 decades" || c.name == "disk 1e6" || c.n[0] == 127 || testing.Short() && c.name == "rotation 20"
		if !slow && dimension > 1 { // relaxation would take very long
			one, err := multilevel.SolveBy(q, problem.MethodConfig{Name: problem.SOR}, 1e-4, 100000, nil)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, one.Reason, c.name)
			w = kernel.MaxAbs(one.U)
			require.LessOrEqual(t, e.Certificate.Inverse, 2*w, c.name)
		}
		require.GreaterOrEqual(t, e.Certificate.Inverse, w*(1-1e-3), c.name)
		m, err := newMinimiser(q, nil, solvertest.Threads{})
		require.NoError(t, err)
		require.InDelta(
			t,
			kernel.MaxAbs(m.solve(nil, nil, m.near(comparisonTolerance), maxComparisonWork)),
			e.Certificate.Inverse,
			0.5*e.Certificate.Inverse,
			c.name,
		)
		require.True(t, m.near(comparisonTolerance)(), c.name)
		require.LessOrEqual(t, m.work, c.work, c.name)
	}
}

// TestSearchEvaluatesCoefficientsOnce checks that the search for w evaluates no coefficients a second time where the
// diffusion jumps, and that A·w = |r| is solved only where it promises a sharper bound.
func TestSearchEvaluatesCoefficientsOnce(t *testing.T) {
	calls := 0
	jump := inclusion(1e4)
	p := solvertest.Membrane([3]int{63, 63, 1}, 2)
	p.Diffusion.Of = func(q problem.Point) float64 {
		calls++
		return jump(q)
	}
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 1 // all residuals are about as large as the entries of their rows
	}
	_, err := Measure(p, u, nil)
	require.NoError(t, err)
	once := calls
	calls = 0
	e, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	require.Greater(t, e.ErrorBound, 0.0)
	require.LessOrEqual(t, calls, once*101/100) // the samples that show a jump

	p.Source.Value = -1
	p.Obstacle = nil
	e, err = Evaluate(p, make([]float64, p.Points()), nil)
	require.NoError(t, err)
	require.LessOrEqual(t, e.Certificate.Work, 80.0)
	require.LessOrEqual(t, e.ErrorBound, 1.0001*e.Certificate.Inverse)
}

// TestComparisonSearchIsBounded checks that the search ends, and that its failure is reported, if ‖A⁻¹‖∞ is
// very large.
func TestComparisonSearchIsBounded(t *testing.T) {
	p := solvertest.Membrane([3]int{63, 63, 1}, 2)
	p.Upwind = true
	for a := range 2 {
		p.Velocity[a].Of = func(q problem.Point) float64 { return 2000 * (q[a] - 0.5) }
	}
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 0.6
	}
	e, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	require.True(t, math.IsNaN(e.ErrorBound))
	require.Contains(t, e.Certificate.Why, "‖A⁻¹‖ is very large")
	require.Less(t, e.Certificate.Work, 1.2*maxComparisonWork)
}

// seededMMatrix is a problem of at most 216 points with jumps, flows, reactions and
// obstacles.
func seededMMatrix(seed uint64) (*problem.Problem, string) {
	r := rand.New(rand.NewPCG(seed, 15))
	dimension := 1 + int(seed%3)
	n := [3]int{1, 1, 1}
	for a := range dimension {
		n[a] = []int{60, 8, 3}[dimension-1] + r.IntN([]int{141, 7, 4}[dimension-1])
	}
	p := solvertest.Membrane(n, dimension)
	p.Upwind = true
	jump := math.Pow(10, float64(r.IntN(7)))
	size := []float64{0, 1, 60, 1000}[r.IntN(4)]
	turn, c := r.Float64(), []float64{0, 5, 500}[r.IntN(3)]
	at, radius := problem.Point{r.Float64(), r.Float64(), r.Float64()}, 0.2+0.2*r.Float64()
	p.Diffusion.Of = func(q problem.Point) float64 {
		d := 0.0
		for a := range dimension {
			d += (q[a] - at[a]) * (q[a] - at[a])
		}
		if d < radius*radius {
			return jump
		}
		return 1
	}
	p.Velocity[0].Of = func(q problem.Point) float64 { return size * (q[1] - turn) }
	if dimension > 1 {
		p.Velocity[1].Of = func(q problem.Point) float64 { return size * (0.5 - q[0]) }
	}
	p.Reaction.Of = func(q problem.Point) float64 { return c * q[0] }
	p.Source.Value = 4
	p.Boundary = func(q problem.Point) float64 { return 0.1 + 0.2*q[0] }
	if r.IntN(2) == 0 {
		p.Upper = func(q problem.Point) float64 { return 0.55 + 0.1*q[0] }
	}
	return p, fmt.Sprintf("%d-D %-10s jump %-6g flow %-5g reaction %-4g upper %v",
		dimension, fmt.Sprint(n[:dimension]), jump, size, c, p.Upper != nil)
}

// The bound exists and holds for 50 M-matrices, against the solution by a primal-dual
// active set with gonum's dense factors, whatever the iterate.
func TestErrorBoundOfFiftyMMatrices(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		p, name := seededMMatrix(seed)
		a, f := matrixAndSource(p)
		solution := solvertest.ActiveSet(t, p, a, f)
		problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool { // rounding may leave it outside
			q := p.At(idx[0], idx[1], idx[2])
			solution[d] = max(solution[d], p.Obstacle(q))
			if p.Upper != nil {
				solution[d] = min(solution[d], p.Upper(q))
			}
			return true
		})
		reference, err := Evaluate(p, solution, nil)
		require.NoError(t, err)
		require.Empty(t, reference.Certificate.Why, name)
		line := name
		for _, tol := range []float64{1e-1, 1e-4, 1e-8} {
			u, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.SOR}, tol, 20000, nil)
			require.NoError(t, err)
			e, err := Evaluate(p, u.U, solvertest.Backwards{})
			require.NoError(t, err)
			require.Empty(t, e.Certificate.Why, name)
			worst := solvertest.Furthest(u.U, solution)
			require.LessOrEqual(t, worst, e.ErrorBound+reference.ErrorBound, name)
			line += fmt.Sprintf("  %.2g/%.2g=%.3g", e.ErrorBound, worst, e.ErrorBound/worst)
		}
		t.Log(line)
	}
}
