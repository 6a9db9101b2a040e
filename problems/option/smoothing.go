package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// smoothed is the payoff at maturity as the grid sees it: where a cell of the grid meets
// a kink, the average over the cell. Without that the error jumps with where the kink
// lies between the points, and has no order (Pooley, Vetzal and Forsyth, Journal of
// Computational Finance 6(4), 2003).
type smoothed struct {
	reward *reward
	d      int
	half   [MaxAssets]float64 // of a cell
	reach  [MaxAssets]float64 // what the logarithm of a price, or of the basket, moves by to a corner
	points int                // of the midpoint rule along an axis
}

func newSmoothed(w *reward, p *problem.Problem) *smoothed {
	s := &smoothed{reward: w, d: p.Dimension, points: []int{1, 64, 16, 4}[p.Dimension]}
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

func (s *smoothed) at(y problem.Point) float64 {
	if !s.kinked(y) {
		return s.reward.at(y)
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
		sum += s.reward.at(q)
	}
	return sum / float64(count)
}

// kinked tells whether the corners of the cell round y are on different pieces of the
// payoff. What no corner sees is less than the error of the differences.
func (s *smoothed) kinked(y problem.Point) bool {
	if !s.near(y) {
		return false
	}
	here := s.reward.branch(y)
	for corner := range 1 << s.d {
		q := y
		for a := range s.d {
			if corner>>a&1 == 0 {
				q[a] -= s.half[a]
			} else {
				q[a] += s.half[a]
			}
		}
		if s.reward.branch(q) != here {
			return true
		}
	}
	return false
}

// near tells, for the price of one value, whether the cell round y can meet a kink.
func (s *smoothed) near(y problem.Point) bool {
	w := s.reward
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
