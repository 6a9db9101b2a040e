package verify

import (
	"math"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// matrix returns the matrix that the kernels apply.
func matrix(p *problem.Problem) *mat.Dense {
	a := mat.NewDense(p.Points(), p.Points(), nil)
	st := problem.NewStencil(p)
	index := func(i [3]int) int { return i[0] - 1 + p.N[0]*(i[1]-1+p.N[1]*(i[2]-1)) }
	problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
		row := st.At(idx)
		a.Set(d, d, row[kernel.Center])
		for n := kernel.West; n <= 2*p.Dimension; n++ {
			next, ax := idx, (n-1)/2
			if next[ax] += 2*((n-1)%2) - 1; next[ax] >= 1 && next[ax] <= p.N[ax] {
				a.Set(d, index(next), -row[n])
			}
		}
		return true
	})
	return a
}

// inverseNorm returns ‖A⁻¹‖∞, computed by gonum.
func inverseNorm(t require.TestingT, p *problem.Problem) float64 {
	var inverse mat.Dense
	require.NoError(t, inverse.Inverse(matrix(p)))
	return mat.Norm(&inverse, math.Inf(1))
}

// anyIterate draws a feasible vector near the solution. It also clamps the solution to the obstacles.
func anyIterate(t *rapid.T, p *problem.Problem, solution []float64) []float64 {
	u := make([]float64, len(solution))
	size := rapid.SampledFrom([]float64{1e-9, 1e-4, 1}).Draw(t, "disturbance")
	where := rapid.IntRange(1, 4).Draw(t, "every")
	problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
		q := p.At(idx[0], idx[1], idx[2])
		u[d] = solution[d]
		if d%where == 0 {
			u[d] += size * rapid.Float64Range(-1, 1).Draw(t, "u")
		}
		phi, psi := math.Inf(-1), math.Inf(1)
		if p.Obstacle != nil {
			phi = p.Obstacle(q)
		}
		if p.Upper != nil {
			psi = p.Upper(q)
		}
		u[d], solution[d] = problem.Clamp(u[d], phi, psi), problem.Clamp(solution[d], phi, psi)
		return true
	})
	return u
}

// matrixAndSource returns the matrix of the kernels and the right-hand side with the boundary data.
func matrixAndSource(p *problem.Problem) (*mat.Dense, *mat.VecDense) {
	f := mat.NewVecDense(p.Points(), nil)
	st := problem.NewStencil(p)
	problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
		sum, row := p.Source.At(p.At(idx[0], idx[1], idx[2])), st.At(idx)
		for n := 1; n <= 2*p.Dimension; n++ {
			next, ax := idx, (n-1)/2
			if next[ax] += 2*((n-1)%2) - 1; next[ax] == 0 || next[ax] == p.N[ax]+1 {
				sum += row[n] * p.Boundary(p.At(next[0], next[1], next[2]))
			}
		}
		f.SetVec(d, sum)
		return true
	})
	return matrix(p), f
}

// anyMMatrix draws a problem whose matrix is an M-matrix. It has upwind differences where central ones would
// violate that, and axes of different length.
func anyMMatrix(t *rapid.T, constant bool) *problem.Problem {
	dim := rapid.IntRange(1, 3).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, []int{60, 14, 6}[dim-1]).Draw(t, "n")
	}
	p := solvertest.Membrane(n, dim)
	p.Upwind = true
	size := rapid.SampledFrom([]float64{0, 0.3, 5, 70, 3000})
	p.Diffusion.Value = rapid.SampledFrom([]float64{1e-3, 1, 40}).Draw(t, "diffusion")
	p.Reaction.Value = size.Draw(t, "reaction")
	for a := range dim {
		p.Hi[a] = rapid.SampledFrom([]float64{0.5, 1, 3}).Draw(t, "length")
		p.Velocity[a].Value = size.Draw(t, "velocity") * rapid.SampledFrom([]float64{-1, 1}).Draw(t, "direction")
	}
	if constant {
		return p
	}
	kappa, b, c := p.Diffusion.Value, p.Velocity, p.Reaction.Value
	jump := rapid.SampledFrom([]float64{1, 1, 10, 1e3}).Draw(t, "jump")
	p.Diffusion.Of = func(q problem.Point) float64 {
		if q[0]+q[1] > 0.6*p.Hi[0] {
			return kappa * jump
		}
		return kappa * (1 + q[0]*q[0])
	}
	p.Reaction.Of = func(q problem.Point) float64 { return c * q[0] }
	for a := range dim {
		// The flow has one direction: for a recirculating flow ‖A⁻¹‖∞ has no bound.
		p.Velocity[a].Of = func(q problem.Point) float64 { return b[a].Value * (1.3 + math.Cos(4*q[0]-q[a])) }
	}
	return p
}

// inclusion returns a diffusion of κ in a disk or ball whose boundary is not on grid lines, and 1 outside.
func inclusion(kappa float64) problem.Function {
	return func(q problem.Point) float64 {
		if x, y, z := q[0]-0.3, q[1]-0.4, q[2]-0.2; x*x+y*y+z*z < 0.08 {
			return kappa
		}
		return 1
	}
}
