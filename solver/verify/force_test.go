package verify

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Equilibrium: what the obstacles, the source and the boundary put in adds up to
// nothing. The matrix is gonum's.
func TestContactForceAgreesWithTheDenseMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyMMatrix(t, rapid.Bool().Draw(t, "constant"))
		for p.Points() > 150 {
			p.N[p.Dimension-1] = max(1, p.N[p.Dimension-1]/2)
			if p.N[p.Dimension-1] == 1 {
				p.N[0] = max(1, p.N[0]/2)
			}
		}
		p.Boundary = func(q problem.Point) float64 { return 0.1 + 0.2*q[0] }
		p.Upper = func(q problem.Point) float64 { return 0.505 + 0.01*q[0] }
		a, f := matrixAndSource(p)
		u := solvertest.ActiveSet(t, p, a, f)
		u = anyIterate(t, p, u)
		force, err := ContactForce(p, nil, 0, u, solvertest.Backwards{})
		require.NoError(t, err)
		lower, upper, cell := 0.0, 0.0, 1.0
		for ax := range p.Dimension {
			cell *= p.Spacing(ax)
		}
		for i, v := range u {
			r := -f.AtVec(i)
			for k, w := range u {
				r += a.At(i, k) * w
			}
			switch q := p.At(i%p.N[0]+1, i/p.N[0]%p.N[1]+1, i/p.N[0]/p.N[1]+1); {
			case v == p.Obstacle(q):
				require.InDelta(t, r, force.Values[i], 1e-9*(1+diagonalOf(p)))
				lower += r * cell
			case v == p.Upper(q):
				require.InDelta(t, r, force.Values[i], 1e-9*(1+diagonalOf(p)))
				upper += r * cell
			default:
				require.Zero(t, force.Values[i])
			}
		}
		e, err := Evaluate(p, u, solvertest.Backwards{})
		require.NoError(t, err)
		require.InDelta(t, force.Lower, e.Force[0], 1e-12*(1+math.Abs(force.Lower)))
		require.InDelta(t, force.Upper, e.Force[1], 1e-12*(1+math.Abs(force.Upper)))
		require.InDelta(t, lower, force.Lower, 1e-9*(1+diagonalOf(p)))
		require.InDelta(t, upper, force.Upper, 1e-9*(1+diagonalOf(p)))
	})
}

// diagonalOf returns the largest diagonal entry.
func diagonalOf(p *problem.Problem) float64 {
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	if err != nil {
		panic(err)
	}
	return b.Diagonal
}

// Of a time step the rate of change belongs to the force: a membrane that lies on its
// obstacle everywhere, moved up with it.
func TestContactForceIncludesTheRateOfChange(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 1, 1}, 1)
	p.Obstacle = func(problem.Point) float64 { return 2 }
	p.Boundary = func(problem.Point) float64 { return 2 }
	p.Reaction.Value = 4 // 1/Δt
	u, before := []float64{2, 2, 2, 2, 2}, []float64{1, 1, 1, 1, 1}
	force, err := ContactForce(p, before, 0.25, u, nil)
	require.NoError(t, err)
	require.Equal(t, []float64{4, 4, 4, 4, 4}, force.Values)
	require.InDelta(t, 20.0/6, force.Lower, 1e-14)
	require.Zero(t, force.Upper)
	_, err = ContactForce(p, nil, 0, u[1:], nil)
	require.ErrorIs(t, err, problem.ErrProblem)
}
