package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// initialIntervals is the number of intervals per axis of the grid that yields the initial SOR factor.
	initialIntervals = 24
	// initialTolerance suffices to locate the contact set.
	initialTolerance = 1e-3
	initialCycles    = 20
)

// initialOmega returns the initial factor of red-black SOR. It is optimal for the points off contact in the
// solution of the same problem on a coarse grid, with which the fine grid shares its smallest eigenvalue. For a
// time step (step), whose source is not a function of place, contact is neglected. All peers compute the same
// factor.
func initialOmega(p *problem.Problem, step bool) float64 {
	q := coarsened(p)
	s, u, err := problem.NewSystem(q, problem.Box{Hi: q.N})
	if err != nil {
		return 1
	}
	eigenvalue := method.UnconstrainedEigenvalue(s.Layout, s.Operator)
	if !step {
		if v, err := eigenvalueOffContact(s, u); err == nil {
			eigenvalue = max(eigenvalue, v)
		}
	}
	least, most := sampledDiagonal(p, q)
	if !p.Symmetric() && most > 2*least {
		return 1 // the estimate is too large by far where a strong flow meets a weak diffusion
	}
	return method.InitialOmega(most, eigenvalue)
}

// stableOmega returns the bound of the factor for a matrix that is not symmetric, from the rows at the points of a coarse
// grid. All peers compute the same bound.
func stableOmega(p *problem.Problem) (omega float64, scalable bool) {
	st := problem.NewStencil(p)
	stride := [3]int{1, 1, 1}
	for a := range p.Dimension {
		if stride[a] = (p.N[a] + initialIntervals - 1) / initialIntervals; st.Constant() {
			stride[a] = p.N[a]
		}
	}
	return method.StableOmega(p.Dimension, p.N, stride, st.At)
}

// coarsened returns the problem on the coarse grid of initialOmega.
func coarsened(p *problem.Problem) *problem.Problem {
	n := p.N
	for a := range p.Dimension {
		for n[a]+1 > initialIntervals {
			n[a] = (n[a]+2)/2 - 1
		}
	}
	q := p.Region(problem.Box{Hi: p.N}, n)
	q.Upwind = true
	return q
}

// sampledDiagonal returns the smallest and the largest diagonal entry at the points nearest to those of q.
func sampledDiagonal(p *problem.Problem, q *problem.Problem) (least, most float64) {
	st := problem.NewStencil(p)
	least = math.Inf(1)
	for _, idx := range (problem.Box{Hi: q.N}).Each {
		for a := range idx {
			idx[a] = max(1, min(p.N[a], idx[a]*(p.N[a]+1)/(q.N[a]+1)))
		}
		v := st.At(idx)[kernel.Center]
		if least, most = min(least, v), max(most, v); st.Constant() {
			break
		}
	}
	return least, most
}

// eigenvalueOffContact solves on a coarse grid and returns A's smallest eigenvalue off contact.
func eigenvalueOffContact(s method.System, u []float64) (float64, error) {
	m, err := method.NewMultigrid(s, method.Options{})
	if err != nil {
		return 0, err
	}
	reference := 0.0
	m.Start(u)
	for k := range initialCycles {
		m.Cycle(u)
		if k == 0 {
			reference = m.Residual()
		}
		if !(m.Residual() > initialTolerance*reference) {
			break
		}
	}
	return method.SmallestEigenvalue(s, u)
}
