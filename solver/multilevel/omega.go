package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// guessIntervals an axis of the grid on which the first factor of SOR is found.
	guessIntervals = 24
	// guessTolerance is enough to know where it is in contact.
	guessTolerance = 1e-3
	guessCycles    = 20
)

// firstOmega is the factor that red-black SOR begins with: the best one for the points
// that are off contact in the solution of the same problem on a coarse grid, whose
// smallest eigenvalue the fine grid shares. Of a time step (step), whose source is not a
// function of place, contact is left out. The same on all peers.
func firstOmega(p *problem.Problem, step bool) float64 {
	q := coarseGuess(p)
	s, u, err := problem.NewSystem(q, problem.Box{Hi: q.N})
	if err != nil {
		return 1
	}
	lowest := method.UnconstrainedEigenvalue(s.Layout, s.Operator)
	if !step {
		if v, err := lowestOffContact(s, u); err == nil {
			lowest = max(lowest, v)
		}
	}
	return method.InitialOmega(sampledDiagonal(p, q), lowest)
}

// coarseGuess is the problem on the grid that is looked at.
func coarseGuess(p *problem.Problem) *problem.Problem {
	n := p.N
	for a := range p.Dimension {
		for n[a]+1 > guessIntervals {
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
func lowestOffContact(s method.System, u []float64) (float64, error) {
	m, err := method.NewMultigrid(s, method.Options{})
	if err != nil {
		return 0, err
	}
	reference := 0.0
	m.Start(u)
	for k := range guessCycles {
		m.Cycle(u)
		if k == 0 {
			reference = m.Residual()
		}
		if !(m.Residual() > guessTolerance*reference) {
			break
		}
	}
	return method.SmallestEigenvalue(s, u)
}
