package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// guessIntervals an axis of the grid on which the first factor of SOR is found.
	initialIntervals = 24
	// guessTolerance is enough to know where it is in contact.
	initialTolerance = 1e-3
	initialCycles    = 20
)

// firstOmega is the factor that red-black SOR begins with: the best one for the points
// that are off contact in the solution of the same problem on a coarse grid, whose
// smallest eigenvalue the fine grid shares. Of a time step (step), whose source is not a
// function of place, contact is left out. The same on all peers.
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
	return method.InitialOmega(sampledDiagonal(p, q), eigenvalue)
}

// coarseGuess is the problem on the grid that is looked at.
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

// sampledDiagonal is the largest diagonal entry at the points nearest to those of q.
func sampledDiagonal(p *problem.Problem, q *problem.Problem) float64 {
	st := problem.NewStencil(p)
	largest := 0.0
	problem.Box{Hi: q.N}.Each(func(_ int, idx [3]int) bool {
		for a := range idx {
			idx[a] = max(1, min(p.N[a], idx[a]*(p.N[a]+1)/(q.N[a]+1)))
		}
		largest = max(largest, st.At(idx)[kernel.Center])
		return !st.Constant()
	})
	return largest
}

// lowestOffContact solves on a coarse grid and estimates A's smallest eigenvalue there.
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
