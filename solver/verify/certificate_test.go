package verify

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestErrorBoundHolds compares the bound with gonum's dense solution on random M-matrices with flows, jumps and
// reactions. For constant coefficients it also checks that the bound is sharp.
func TestErrorBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constant := rapid.Bool().Draw(t, "constant")
		p := anyMMatrix(t, constant)
		for p.Points() > 150 {
			p.N[p.Dimension-1] = max(1, p.N[p.Dimension-1]/2)
			if p.N[p.Dimension-1] == 1 {
				p.N[0] = max(1, p.N[0]/2)
			}
		}
		p.Boundary = func(q problem.Point) float64 { return 0.1 + 0.2*q[0] }
		if rapid.Bool().Draw(t, "upper") {
			p.Upper = func(q problem.Point) float64 { return 0.55 + 0.1*q[0] }
		}
		a, f := matrixAndSource(p)
		solution := solvertest.ActiveSet(t, p, a, f)
		u := anyIterate(t, p, solution)
		e, err := Evaluate(p, u, solvertest.Backwards{})
		require.NoError(t, err)
		require.True(t, e.Certificate.MMatrix, e.Certificate.Why)
		require.Empty(t, e.Certificate.Why)
		reference, err := Evaluate(p, solution, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, solvertest.Furthest(u, solution), e.ErrorBound+reference.ErrorBound)
		norm := inverseNorm(t, p)
		require.GreaterOrEqual(t, e.Certificate.Inverse, norm*(1-1e-9))
		require.LessOrEqual(t, e.ErrorBound, e.Certificate.Inverse*(e.ResidualInf+e.Certificate.Rounding)*(1+1e-12))
		if constant {
			require.LessOrEqual(t, e.Certificate.Inverse, 1.3*norm, e.Certificate.By)
		}
	})
}

// TestErrorBoundIsSharp checks the bound without obstacles and with a residual of 1 at every point, where it is
// nearly attained.
func TestErrorBoundIsSharp(t *testing.T) {
	p := solvertest.Membrane([3]int{15, 15, 15}, 3)
	p.Obstacle = nil
	for name, change := range map[string]func(){
		"constant": func() {},
		"variable": func() { p.Diffusion.Of = func(q problem.Point) float64 { return 1 + q[0]*q[1] } },
	} {
		change()
		exact, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 0)
		require.NoError(t, err)
		p.Source.Value = 1
		off, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 0)
		require.NoError(t, err)
		p.Source.Value = 0
		e, err := Evaluate(p, off.U, nil)
		require.NoError(t, err)
		worst := solvertest.Furthest(exact.U, off.U)
		require.LessOrEqual(t, worst, e.ErrorBound, name)
		require.LessOrEqual(t, e.ErrorBound, 1.05*worst, name)
	}
}

// TestCertificateStatesWhyThereIsNoBound checks the reason if A is no M-matrix or u is infeasible or not
// finite.
func TestCertificateStatesWhyThereIsNoBound(t *testing.T) {
	varies := func(c problem.Coefficient) problem.Coefficient {
		return problem.Coefficient{Of: func(q problem.Point) float64 { return c.Value * (1 + 1e-9*q[0]) }}
	}
	for name, c := range map[string]struct {
		change func(p *problem.Problem, u []float64)
		want   string
	}{
		"constant flow": {func(p *problem.Problem, _ []float64) { p.Velocity[1].Value = -50 }, "no M-matrix: at [0.1 0.1 0.1] the entry for the neighbour in y is positive"},
		"variable flow": {func(p *problem.Problem, _ []float64) { p.Velocity[2] = varies(problem.Coefficient{Value: 50}) }, "no M-matrix: at [0.1 0.1 0.1] the entry for the neighbour in z is positive"},
		"below":         {func(p *problem.Problem, u []float64) { u[364] = 0.2 }, "not between the obstacles"},
		"not a number":  {func(p *problem.Problem, u []float64) { u[7] = math.NaN() }, "not between"},
	} {
		p := solvertest.Membrane([3]int{9, 9, 9}, 3)
		u := make([]float64, p.Points())
		for i := range u {
			u[i] = 0.5
		}
		e, err := Evaluate(p, u, nil)
		require.NoError(t, err)
		require.Empty(t, e.Certificate.Why)
		require.Greater(t, e.ErrorBound, 0.0)
		c.change(p, u)
		e, err = Evaluate(p, u, nil)
		require.NoError(t, err)
		require.True(t, math.IsNaN(e.ErrorBound), name)
		require.Contains(t, e.Certificate.Why, c.want, name)
	}
}

// TestErrorBoundIncludesRounding checks a solution whose computed residual is 0 while the exact one is not.
func TestErrorBoundIncludesRounding(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 1, 1}, 1)
	p.Obstacle = nil
	p.Boundary = func(q problem.Point) float64 { return 1e6 + q[0] }
	a, f := matrixAndSource(p)
	u := solvertest.ActiveSet(t, p, a, f)
	e, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, e.Certificate.Rounding, 1e6*2*1681*0x1p-53)
	worst := 0.0
	for i, v := range u {
		worst = max(worst, math.Abs(v-(1e6+float64(i+1)/41)))
	}
	require.LessOrEqual(t, worst, e.ErrorBound+1e-9)
	require.Less(t, e.ErrorBound, 1e-5)
}

// A grid of many slabs whose coefficients jump: the profile comes from a coarser grid,
// fails the check and is refined.
func TestComparisonIsRefinedWhereDiffusionJumps(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	p := solvertest.Membrane([3]int{600, 600, 1}, 2)
	p.Diffusion.Of = func(q problem.Point) float64 {
		if q[0]+q[1] > 0.8 {
			return 10
		}
		return 1
	}
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 0.6
	}
	e, err := Evaluate(p, u, solvertest.Threads{})
	require.NoError(t, err)
	require.Empty(t, e.Certificate.Why)
	require.Greater(t, e.ErrorBound, 0.0)
	_, err = Evaluate(p, u[:7], nil)
	require.ErrorIs(t, err, problem.ErrProblem)
}
