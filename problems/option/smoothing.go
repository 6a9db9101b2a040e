package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// cellAverage is the payoff at maturity, averaged over the cell of a grid point where the cell contains a
// kink. Otherwise the error would depend on the position of the kink between grid points and have no order
// (Pooley, Vetzal and Forsyth, Journal of Computational Finance 6(4), 2003).
type cellAverage struct {
	payoff *payoffFunction
	d      int
	half   [MaxAssets]float64 // half the size of a cell
	reach  [MaxAssets]float64 // largest change of the logarithm of a price, or of the basket, within a cell
	points int                // points of the midpoint rule along an axis
}

func newCellAverage(w *payoffFunction, p *problem.Problem) *cellAverage {
	s := &cellAverage{payoff: w, d: p.Dimension, points: []int{1, 64, 16, 4}[p.Dimension]}
	for a := range s.d {
		s.half[a] = p.Spacing(a) / 2
	}
	for i := range w.d {
		for a := range s.d {
			s.reach[i] += math.Abs(w.slope[i][a]) * s.half[a]
		}
	}
	return s
}

func (s *cellAverage) at(y problem.Point) float64 {
	if !s.hasKink(y) {
		return s.payoff.at(y)
	}
	sum, count := 0.0, 1
	for range s.d {
		count *= s.points
	}
	for i := range count {
		q, rest := y, i
		for a := range s.d {
			q[a] += s.half[a] * (float64(2*(rest%s.points)+1)/float64(s.points) - 1)
			rest /= s.points
		}
		sum += s.payoff.at(q)
	}
	return sum / float64(count)
}

// hasKink reports whether the corners of the cell around y are on different pieces of the payoff. Kinks that
// separate no corners have less effect than the discretisation error.
func (s *cellAverage) hasKink(y problem.Point) bool {
	if !s.mayHaveKink(y) {
		return false
	}
	here := s.payoff.branch(y)
	for corner := range 1 << s.d {
		q := y
		for a := range s.d {
			if corner>>a&1 == 0 {
				q[a] -= s.half[a]
			} else {
				q[a] += s.half[a]
			}
		}
		if s.payoff.branch(q) != here {
			return true
		}
	}
	return false
}

// mayHaveKink reports whether the cell around y can contain a kink. It evaluates the payoff only once.
func (s *cellAverage) mayHaveKink(y problem.Point) bool {
	w := s.payoff
	if w.basket == Arithmetic {
		reach := max(s.reach[0], s.reach[1], s.reach[2])
		return math.Abs(math.Log(w.value(y))-w.level) <= reach
	}
	if w.basket == Geometric {
		return math.Abs(w.log(0, y)-w.level) <= s.reach[0]
	}
	which, extreme := w.extreme(y)
	for i := range w.d {
		if v := w.log(i, y); i != which && math.Abs(v-extreme) <= s.reach[i]+s.reach[which] {
			return true
		}
	}
	return math.Abs(extreme-w.level) <= s.reach[which]
}
