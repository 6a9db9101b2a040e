package solvertest

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// Furthest returns the distance of two vectors in the maximum norm.
func Furthest(u, v []float64) float64 {
	d := 0.0
	for i := range u {
		d = max(d, math.Abs(u[i]-v[i]))
	}
	return d
}

// Dense returns A and f of A·u = f by the textbook formulas, independent of the stencil of package problem. The
// boundary data are part of f.
func Dense(p *problem.Problem) (*mat.Dense, *mat.VecDense) {
	n := p.Points()
	a, f := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	st := problem.NewStencil(p) // for κ between two points, which package problem's tests compare with integrals
	for d, idx := range (problem.Box{Hi: p.N}).Each {
		q := p.At(idx[0], idx[1], idx[2])
		f.SetVec(d, p.Source.At(q))
		diagonal := p.Reaction.At(q)
		for ax := range p.Dimension {
			h := (p.Hi[ax] - p.Lo[ax]) / float64(p.N[ax]+1)
			for _, side := range []float64{-1, 1} {
				next := idx
				next[ax] += int(side)
				k := st.Between(idx, q, ax, int(side)) / h / h
				c := -k + side*p.Velocity[ax].At(q)/h/2
				diagonal += k
				if next[ax] == 0 || next[ax] == p.N[ax]+1 {
					f.SetVec(d, f.AtVec(d)-c*p.Boundary(p.At(next[0], next[1], next[2])))
				} else {
					a.Set(d, p.Dense(next), c)
				}
			}
		}
		a.Set(d, d, diagonal)
	}
	return a, f
}

// ActiveSet solves the obstacle problem with matrix a and right-hand side f by the primal-dual active set method.
func ActiveSet(t require.TestingT, p *problem.Problem, a *mat.Dense, f *mat.VecDense) []float64 {
	n := p.Points()
	phi, psi := make([]float64, n), make([]float64, n)
	for d, idx := range (problem.Box{Hi: p.N}).Each {
		phi[d], psi[d] = p.Obstacles(p.At(idx[0], idx[1], idx[2]))
	}
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
			// The bound for leaving contact is smaller than that for entering it, so that rounding cannot make
			// a point alternate.
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

// RequireSameBits requires that two vectors are equal bit by bit.
func RequireSameBits(t require.TestingT, want, got []float64) {
	require.Len(t, got, len(want))
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			require.Failf(t, "different bits", "at %d: %v and %v", i, want[i], got[i])
		}
	}
}
