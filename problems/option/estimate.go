package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// leastAxis is the fewest points an axis of the coarser grid has.
	leastAxis = 7
	// leastRatio of the errors on two grids that say anything of each other.
	leastRatio = 1.5
	// estimateTolerance and estimateCycles end a coarser solve.
	estimateTolerance = 1e-8
	estimateCycles    = 200
)

// coarser is the contract and the grid on which it is priced again: about half the points
// along every axis, and a quarter of the time steps, so that the errors in h², and in Δt,
// are both four times as large. by is how many times as large they are there, the smaller
// of the two; 0: the grid or the steps are too few to be fewer.
func (o *Option) coarser(n [3]int) (c Option, m [3]int, by float64) {
	c, m, by = *o, n, math.Inf(1)
	for a := range o.Assets {
		if m[a] = (n[a] - 1) / 2; m[a] < leastAxis {
			return c, m, 0
		}
		ratio := float64(n[a]+1) / float64(m[a]+1)
		if !o.ridged() {
			ratio *= ratio
		}
		by = min(by, ratio)
	}
	if !o.Perpetual {
		if c.Steps = (o.Steps + 2) / 4; c.Steps < 1 {
			return c, m, 0
		}
		by = min(by, float64(o.Steps)/float64(c.Steps))
	}
	return c, m, by
}

// PriceError estimates how far price, read off a solution on a grid of n points, is from
// the value of the contract: the error of the discretisation in space and time, which no
// bound of the algebraic error knows. The contract is priced again with half the points an
// axis and a quarter of the steps, for an eighth of the work in one dimension, a 16th in two
// and a 32nd in three; by Richardson's extrapolation the difference is the error there less
// that here. Where one such difference is small by chance (the free boundary lies anywhere
// between two points), the next one, from another coarsening, is not: the larger of what the two say
// counts. It is an estimate, not a bound. why says why there is none; then it is NaN.
func (o *Option) PriceError(price float64, n [3]int, e problem.Executor) (estimate float64, why string, err error) {
	finer, scale := price, 1.0
	for level := range 2 {
		c, m, by := o.coarser(n)
		if !(by >= leastRatio) {
			if level == 0 {
				return math.NaN(), "the grid or the time steps are too few to price the contract again with fewer", nil
			}
			break
		}
		q, why, err := c.priced(m, e)
		if err != nil || why != "" {
			return math.NaN(), why, err
		}
		estimate = max(estimate, math.Abs(finer-q)/(scale*(by-1)))
		o, n, finer, scale = &c, m, q, scale*by
	}
	return estimate, "", nil
}

// priced is today's price on a grid of n points.
func (o *Option) priced(n [3]int, e problem.Executor) (price float64, why string, err error) {
	p, err := o.Problem("coarser", n)
	if err != nil {
		return 0, "", err
	}
	s, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, estimateTolerance, estimateCycles, e)
	if err != nil {
		return 0, "", err
	}
	if s.Reason != iterate.Converged {
		return 0, "the contract could not be priced on a coarser grid: " + s.Reason.String(), nil
	}
	q, err := o.Quote(p.AtStep(p.Steps()), s.U)
	return q.Price, "", err
}
