package verify

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// TestEnclosureContainsTheSolution compares enclosures of rough iterates with gonum's solution after any number
// of sweeps, and the contact counts with its contact set.
func TestEnclosureContainsTheSolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyMMatrix(t, rapid.Bool().Draw(t, "constant"))
		for p.Points() > 150 {
			p.N[p.Dimension-1] = max(1, p.N[p.Dimension-1]/2)
			if p.N[p.Dimension-1] == 1 {
				p.N[0] = max(1, p.N[0]/2)
			}
		}
		p.Boundary = func(q problem.Point) float64 { return 0.1 + 0.2*q[0] }
		if rapid.Bool().Draw(t, "source") {
			p.Source.Of = func(q problem.Point) float64 { return -3 * q[0] }
		}
		a, f := matrixAndSource(p)
		solution := solvertest.ActiveSet(t, p, a, f)
		u := anyIterate(t, p, solution)
		judged, err := Evaluate(p, u, nil)
		require.NoError(t, err)
		reference, err := Evaluate(p, solution, nil)
		require.NoError(t, err)
		slack := reference.ErrorBound
		roundoff := 8 * kernel.UnitRoundoff * (judged.ErrorBound + mat.Norm(mat.NewVecDense(len(u), u), math.Inf(1))) // of two values
		var last Enclosure
		for i, sweeps := range []int{0, 1, 23} {
			n, err := Enclose(t.Context(), p, u, &judged, sweeps, solvertest.Backwards{})
			require.NoError(t, err)
			touching, sum := 0, reference.Sum
			for d, v := range solution {
				require.LessOrEqual(t, n.Lower[d], v+slack, "point %d", d)
				require.GreaterOrEqual(t, n.Upper[d], v-slack, "point %d", d)
				if n.Upper[d] == phiOf(p, d) {
					require.LessOrEqual(t, v, phiOf(p, d)+slack)
				}
				if v == phiOf(p, d) {
					touching++
				}
			}
			require.LessOrEqual(t, n.Sum[0], sum+slack)
			require.GreaterOrEqual(t, n.Sum[1], sum-slack)
			require.GreaterOrEqual(t, n.Contact[1], touching)
			require.LessOrEqual(t, n.Width, 2*judged.ErrorBound*(1+1e-9)+1e-13)
			if i > 0 {
				require.LessOrEqual(t, n.Width, last.Width+roundoff)
				require.GreaterOrEqual(t, n.Contact[0], last.Contact[0])
				require.LessOrEqual(t, n.Contact[1], last.Contact[1])
			}
			last = n
		}
	})
}

func phiOf(p *problem.Problem, d int) float64 {
	x, y, z := d%p.N[0], d/p.N[0]%p.N[1], d/p.N[0]/p.N[1]
	return p.Obstacle(p.At(x+1, y+1, z+1))
}

// Of a solution to round-off, sweeps settle the contact set and do not lose the
// enclosure to rounding.
func TestSweepsSettleTheContactSet(t *testing.T) {
	p := solvertest.Membrane([3]int{15, 15, 15}, 3)
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 0)
	require.NoError(t, err)
	judged, err := Evaluate(p, s.U, nil)
	require.NoError(t, err)
	n, err := Enclose(t.Context(), p, s.U, &judged, 400, nil)
	require.NoError(t, err)
	require.Less(t, n.Width, 1e-11)
	require.Equal(t, [2]int{judged.ContactPoints, judged.ContactPoints}, n.Contact)
	rough, err := richardson.SolveSequential(p, problem.Jacobi, 1e-3, 0, 0, 0)
	require.NoError(t, err)
	judged, err = Evaluate(p, rough.U, nil)
	require.NoError(t, err)
	before, err := Enclose(t.Context(), p, rough.U, &judged, 0, nil)
	require.NoError(t, err)
	after, err := Enclose(t.Context(), p, rough.U, &judged, 400, nil)
	require.NoError(t, err)
	require.Less(t, after.Width, before.Width/10)
	require.Zero(t, before.Contact[0])
	require.Positive(t, after.Contact[0])
}

// Slabs of a large grid give an enclosure, too: the one of the neighbours' faces.
func TestEnclosureOfManySlabsContainsTheSolution(t *testing.T) {
	p := solvertest.Membrane([3]int{700, 600, 1}, 2)
	p.Obstacle, p.Boundary = nil, func(problem.Point) float64 { return 1 }
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 1.001
	}
	judged, err := Evaluate(p, u, solvertest.Threads{})
	require.NoError(t, err)
	n, err := Enclose(t.Context(), p, u, &judged, 9, solvertest.Threads{})
	require.NoError(t, err)
	for i := range n.Lower {
		if n.Lower[i] > 1 || n.Upper[i] < 1 { // the solution is 1
			require.Fail(t, "not enclosed", "point %d: %v to %v", i, n.Lower[i], n.Upper[i])
		}
	}
	require.Less(t, n.Sum[0], 1.0)
	require.Greater(t, n.Sum[1], 1.0*700*600/701/601)
}

func TestEncloseRejectsInvalidInput(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 1, 1}, 1)
	u := make([]float64, 9)
	for i := range u {
		u[i] = 1
	}
	judged, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	_, err = Enclose(t.Context(), p, u[:3], &judged, 1, nil)
	require.ErrorContains(t, err, "3 values to enclose")
	_, err = Enclose(t.Context(), p, u, &judged, -1, nil)
	require.ErrorIs(t, err, problem.ErrProblem)
	p.Velocity[0].Value = 500
	judged, err = Evaluate(p, u, nil)
	require.NoError(t, err)
	_, err = Enclose(t.Context(), p, u, &judged, 1, nil)
	require.ErrorContains(t, err, "no M-matrix")
	p.Evolution = &problem.Evolution{End: 1, Steps: 1, At: func(float64) *problem.Problem { return p }}
	_, err = Enclose(t.Context(), p, u, &judged, 1, nil)
	require.ErrorContains(t, err, "nonstationary")
}

// Points on the upper obstacle are counted, with the lower one or without it, and enclosed.
func TestUpperContactIsCountedAndEnclosed(t *testing.T) {
	for _, lower := range []bool{true, false} {
		p := solvertest.Membrane([3]int{9, 9, 9}, 3)
		p.Source.Value = 20
		p.Upper = func(q problem.Point) float64 { return 0.6 + 0.1*q[0] }
		if !lower {
			p.Obstacle = nil
		}
		s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-12, 0, 0, 0)
		require.NoError(t, err)
		want := 0
		problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
			if s.U[d] == p.Upper(p.At(idx[0], idx[1], idx[2])) {
				want++
			}
			return true
		})
		require.Positive(t, want)
		e, err := Evaluate(p, s.U, solvertest.Backwards{})
		require.NoError(t, err)
		require.Equal(t, want, e.UpperPoints)
		n, err := Enclose(t.Context(), p, s.U, &e, 50, nil)
		require.NoError(t, err)
		require.Positive(t, n.UpperContact[0])
		require.LessOrEqual(t, n.UpperContact[0], want)
		require.GreaterOrEqual(t, n.UpperContact[1], want)
	}
}
