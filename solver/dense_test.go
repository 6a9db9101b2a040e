package solver

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// dense writes the problem as A·u = f with gonum, by the textbook formulas and not
// by the package's stencil: A dense, the boundary data moved to the right-hand side.
func dense(p *Problem) (*mat.Dense, *mat.VecDense) {
	n := p.Points()
	a, f := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	index := func(i [3]int) int { return i[0] - 1 + p.N[0]*(i[1]-1+p.N[1]*(i[2]-1)) }
	Box{Hi: p.N}.each(func(d int, idx [3]int) bool {
		q := p.At(idx[0], idx[1], idx[2])
		f.SetVec(d, p.Source.At(q))
		diagonal := p.Reaction.At(q)
		for ax := range p.Dimension {
			h := (p.Hi[ax] - p.Lo[ax]) / float64(p.N[ax]+1)
			for _, side := range []float64{-1, 1} {
				half, next := q, idx
				half[ax] += side * h / 2
				next[ax] += int(side)
				k := p.Diffusion.At(half) / h / h
				c := -k + side*p.Velocity[ax].At(q)/h/2
				diagonal += k
				if next[ax] == 0 || next[ax] == p.N[ax]+1 {
					f.SetVec(d, f.AtVec(d)-c*p.Boundary(p.At(next[0], next[1], next[2])))
				} else {
					a.Set(d, index(next), c)
				}
			}
		}
		a.Set(d, d, diagonal)
		return true
	})
	return a, f
}

// solveActiveSet solves the obstacle problem exactly: Howard's policy iteration
// (the primal-dual active set method of Hintermüller, Ito and Kunisch, 2002), each
// step a dense solve, ending when the sets repeat.
func solveActiveSet(t require.TestingT, p *Problem) []float64 {
	a, f := dense(p)
	return activeSet(t, p, a, f)
}

func activeSet(t require.TestingT, p *Problem, a *mat.Dense, f *mat.VecDense) []float64 {
	n := p.Points()
	phi, psi := make([]float64, n), make([]float64, n)
	Box{Hi: p.N}.each(func(d int, idx [3]int) bool {
		phi[d], psi[d] = math.Inf(-1), math.Inf(1)
		if p.Obstacle != nil {
			phi[d] = p.Obstacle(p.At(idx[0], idx[1], idx[2]))
		}
		if p.Upper != nil {
			psi[d] = p.Upper(p.At(idx[0], idx[1], idx[2]))
		}
		return true
	})
	set := make([]int, n) // −1: at φ, 1: at ψ
	for range 200 {
		m, rhs := mat.DenseCopyOf(a), mat.VecDenseCopyOf(f)
		for i, s := range set {
			if s != 0 {
				m.SetRow(i, make([]float64, n))
				m.Set(i, i, 1)
				rhs.SetVec(i, phi[i])
				if s > 0 {
					rhs.SetVec(i, psi[i])
				}
			}
		}
		var u, r mat.VecDense
		require.NoError(t, u.SolveVec(m, rhs))
		r.MulVec(a, &u)
		r.SubVec(&r, f)
		same := true
		for i := range set {
			// A point leaves contact at a smaller bound than it comes into it, so that rounding
			// cannot have it do both in turn.
			scale, want, bound := a.At(i, i), 0, 1e-9
			if set[i] != 0 {
				bound = -1e-12
			}
			switch lambda := r.AtVec(i); {
			case set[i] <= 0 && lambda-scale*(u.AtVec(i)-phi[i]) > bound*scale:
				want = -1
			case set[i] >= 0 && lambda-scale*(u.AtVec(i)-psi[i]) < -bound*scale:
				want = 1
			}
			same = same && set[i] == want
			set[i] = want
		}
		if same {
			return u.RawVector().Data
		}
	}
	require.Fail(t, "the active sets do not settle")
	return nil
}

func TestAgainstDenseSolvers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		for p.Points() > 150 {
			p.N[p.Dimension-1] = max(1, p.N[p.Dimension-1]/2)
			if p.N[p.Dimension-1] == 1 {
				p.N[0] = max(1, p.N[0]/2)
			}
		}
		p.Boundary = func(q Point) float64 { return 0.1 + 0.2*q[0] + 0.1*q[1]*q[2] }
		want := solveActiveSet(t, p)
		part := anyPartition(t, p)
		s := rapid.SampledFrom([]Scheme{Synchronous(), Asynchronous(), BoundedDelay(0), BoundedDelay(2)}).Draw(t, "scheme")
		order := rapid.SampledFrom([]Order{Jacobi, InTurn}).Draw(t, "order")
		n, err := newNetwork(1, configsFor(Config{Problem: p, Partition: part, Scheme: s, Order: order, Tolerance: 1e-11}))
		require.NoError(t, err)
		require.NoError(t, n.run())
		got := n.assemble(p, part)
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-8, "point %d", i)
		}
	})
}

func TestLinearProblemAgainstGonum(t *testing.T) {
	p := membrane([3]int{5, 4, 6}, 3)
	p.Obstacle, p.Source.Value = nil, 3
	p.Reaction.Value, p.Velocity[1].Value = 2, -4
	p.Boundary = func(q Point) float64 { return q[0] - q[2]*q[1] }
	a, f := dense(p)
	var u mat.VecDense
	require.NoError(t, u.SolveVec(a, f))
	got, err := SolveSequential(p, Jacobi, 1e-13, 0, 0, 100000)
	require.NoError(t, err)
	require.Equal(t, Converged, got.Reason)
	for i, v := range got.U {
		require.InDelta(t, u.AtVec(i), v, 1e-11)
	}
}

// Upwind differences keep all off-diagonal coefficients positive where central
// ones do not, and leave rows with a small Péclet number alone.
func TestUpwindKeepsTheMMatrix(t *testing.T) {
	p := membrane([3]int{9, 1, 1}, 1)
	p.Velocity[0].Of = func(q Point) float64 { return 90 * (q[0] - 0.5) }
	require.Len(t, p.Warnings(), 1)
	require.Contains(t, p.Warnings()[0], "Péclet")
	central, upwind := newStencil(p), *p
	upwind.Upwind = true
	require.Len(t, upwind.Warnings(), 1)
	require.Contains(t, upwind.Warnings()[0], "upwind differences are taken")
	negative := 0
	for i := 1; i <= 9; i++ {
		c, u := central.at([3]int{i, 1, 1}), newStencil(&upwind).at([3]int{i, 1, 1})
		if c[kernel.West] < 0 || c[kernel.East] < 0 {
			negative++
			require.Greater(t, u[kernel.West], 0.0)
			require.Greater(t, u[kernel.East], 0.0)
		} else {
			require.Equal(t, c, u)
		}
		for _, row := range [][kernel.Directions]float64{c, u} {
			require.InDelta(t, row[kernel.Center], row[kernel.West]+row[kernel.East], 1e-9, "constants are in the kernel")
		}
	}
	require.Equal(t, 4, negative)
}
