package solver

import (
	"github.com/p2pdc/p2pdc/solver/method"
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
// smallest eigenvalue the fine grid shares. Of a time step, whose source is not a function
// of place, contact is left out. The same on all peers.
func (p *Problem) firstOmega(s *method.System) float64 {
	lowest := method.Free(s.Layout, s.Operator)
	if p.Evolution == nil {
		if v, err := p.lowestOffContact(); err == nil && v > lowest {
			lowest = v
		}
	}
	return method.FirstOmega(s.Operator, lowest)
}

// lowestOffContact solves on a coarse grid and estimates A's smallest eigenvalue there.
func (p *Problem) lowestOffContact() (float64, error) {
	n := p.N
	for a := range p.Dimension {
		for n[a]+1 > guessIntervals {
			n[a] = (n[a]+1+1)/2 - 1
		}
	}
	q := p.region(Box{Hi: p.N}, n)
	s, u, err := NewSystem(q, Box{Hi: n})
	if err != nil {
		return 0, err
	}
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
	return method.Lowest(s, u)
}
