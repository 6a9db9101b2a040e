package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// minAxisPoints is the smallest number of points on an axis of the coarser grid.
	minAxisPoints = 7
	// minErrorRatio is the smallest ratio of the errors on two grids for which an estimate is meaningful.
	minErrorRatio = 1.5
	// estimateTolerance and estimateCycles bound a solve on a coarser grid.
	estimateTolerance = 1e-8
	estimateCycles    = 200
)

// coarser returns the contract and the grid for a second computation: about half the points along every axis
// and a quarter of the time steps, so that the errors of order h² and of order Δt are both four times as
// large. by is the smaller of the two error ratios, or 0 if the grid or the time steps cannot be coarsened.
func (o *Option) coarser(n [3]int) (c Option, m [3]int, by float64) {
	c, m = *o, n
	by = math.Inf(1)
	for a := range o.Assets {
		if m[a] = (n[a] - 1) / 2; m[a] < minAxisPoints {
			return c, m, 0
		}
		ratio := float64(n[a]+1) / float64(m[a]+1)
		if !o.hasRidge() {
			ratio *= ratio
		}
		by = min(by, ratio)
	}
	if !o.Perpetual {
		if c.Steps = (o.Steps + 2) / 4; c.Steps < 1 || c.checkTime() != nil {
			return c, m, 0
		}
		by = min(by, float64(o.Steps)/float64(c.Steps))
	}
	return c, m, by
}

// PriceError estimates the error of price, computed on a grid of n points, against the value of the contract. This is
// the error of the discretisation in space and time, which bounds of the algebraic error do not include.
//
// The contract is priced again with half the points per axis and a quarter of the time steps, which takes an eighth
// of the work in one dimension, a 16th in two and a 32nd in three. By Richardson extrapolation the difference of the
// prices is the difference of the errors. It may be small by chance, because the position of the free boundary
// between grid points varies. A second coarsening is therefore computed, and the larger of the two estimates counts.
//
// The result is an estimate, not a bound. If there is none, it is NaN and why is the reason.
func (o *Option) PriceError(price float64, n [3]int, e problem.Executor) (estimate float64, why string, err error) {
	finer, scale := price, 1.0
	for level := range 2 {
		c, m, by := o.coarser(n)
		if !(by >= minErrorRatio) {
			if level == 0 {
				return math.NaN(), "the grid points or time steps are too few for a second computation with fewer", nil
			}
			break
		}
		q, why, err := c.priceOn(m, e)
		if err != nil || why != "" {
			return math.NaN(), why, err
		}
		estimate = max(estimate, math.Abs(finer-q)/(scale*(by-1)))
		o, n = &c, m
		finer, scale = q, scale*by
	}
	return estimate, "", nil
}

// priceOn returns today's price on a grid of n points.
func (o *Option) priceOn(n [3]int, e problem.Executor) (price float64, why string, err error) {
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
