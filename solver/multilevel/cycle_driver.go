package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// whole is a method of the whole grid, as one peer does its part.
type globalMethod interface {
	// build prepares for a problem: the reference vector in values, and its residual's own
	// share. Arrays that an earlier build made are used again.
	build(p *problem.Problem, before []float64, dt float64) (reference kernel.Sum, err error)
	// begin sets the own values to the starting iterate: values, dense own-box, or the
	// problem's. The stages of open then bring the ghosts up to date.
	begin(values []float64) error
	openingStages() []stage
	// next is the next stage of the cycle in progress, nil when it is complete: the ghosts
	// of the values are then up to date. The call after that begins another cycle. At
	// most limit cycles may be done at once; done tells how many, and what they cost in
	// sweeps over the own points; no cycles: it has been left for an early end.
	next(limit iterate.Iteration) *stage
	done() (cycles iterate.Iteration, work float64)
	// exhausted tells that MaxSweeps allows no more work.
	exhausted() bool
	// measure is the stage that takes the residual of the current values, nil where the
	// cycle has done so; sums are what it has made, of which the first is that of the
	// residual's squares.
	measure() *stage
	sums(s *[maxSums]kernel.Sum) int
	// judged hands the totals on, none where the cycle knows them, and tells that of the
	// squares.
	applyTotals(totals []float64) (squares float64)
	magnitudes() kernel.Sum // of the own values, see stagnation
	describe() string       // for reports
	copyOut(dst []float64)
	// rhythm is how often iterates are checked and when that takes effect; the
	// configuration may ask for another, unless it is fixed.
	checkInterval() (every, lag iterate.Iteration, fixed bool)
}

// course is the order of a run: cycles, and between them checks of the residual, which
// take effect a fixed number of cycles later. All peers take the same.
type cycleDriver struct {
	peer           *peer
	method         globalMethod
	schedule       iterate.CheckSchedule
	interval       iterate.CheckInterval
	phase          driverPhase
	cycle          iterate.Iteration // complete ones: the iterate
	check          iterate.Iteration // open or next
	measureFrom    iterate.Iteration // checks from here on measure
	open           bool              // the check's sums have been given
	final          bool              // it is of an iterate that is the answer if it meets the tolerance: everybody waits
	measured       bool              // with a residual
	fromCycle      bool              // which the cycle has taken
	withMagnitudes bool              // and with magnitudes
	stagnant       iterate.Stagnation
	last           iterate.Iteration // valid once reason is not Running
	residual       float64
	norm0          float64
	reason         iterate.Reason
	spent          float64 // work of all steps

	inCycle        bool              // a cycle is in progress
	stopCheckedAt  iterate.Iteration // of the last look, see looks
	reference      kernel.Sum
	opening        []stage
	at             int
	awaitReduction stage
}

type driverPhase int

const (
	driverOpen  driverPhase = iota
	driverCheck             // at an iterate: a check may begin
	driverContribute
	driverEffect // a verdict may be due
	driverEvaluate
	driverCycle
)

func (c *cycleDriver) init(g *peer) error {
	c.peer = g
	var err error
	if g.config.Method.Name == problem.Multigrid {
		c.method, err = newMultigrid(g)
	} else {
		c.method, err = newRedBlack(g)
	}
	if err != nil {
		return err
	}
	every, lag, fixed := c.method.checkInterval()
	c.interval = iterate.CheckInterval{Every: every, Lag: lag, Max: g.config.MaxSweeps, Fixed: fixed}
	if given := g.config.CheckEvery; given > 0 && !fixed {
		c.interval.Every, c.interval.Fixed, c.interval.Lag = given, true, min(lag, given)
	}
	if g.config.Lag > 0 && !fixed {
		c.interval.Lag = min(g.config.Lag, c.interval.Every)
	}
	c.awaitReduction = stage{kind: stageReduce}
	return nil
}

// begin prepares for the run, or for a time step.
func (c *cycleDriver) begin(p *problem.Problem) error {
	g := c.peer
	var dt float64
	var values []float64
	if g.steps.Total > 0 {
		dt, values = g.config.Problem.Evolution.Step(), g.steps.Previous
	}
	var err error
	if c.reference, err = c.method.build(p, values, dt); err != nil {
		return err
	}
	if err = p.CheckReference(&c.reference); err != nil {
		return err
	}
	if values == nil {
		values = g.config.Initial
	}
	if err := c.method.begin(values); err != nil {
		return err
	}
	g.config.Initial = nil
	c.phase, c.cycle, c.check, c.measureFrom, c.open, c.final = driverOpen, 0, 0, 0, false, false
	c.fromCycle, c.withMagnitudes, c.stagnant, c.stopCheckedAt, c.inCycle = false, false, iterate.Stagnation{}, 0, false
	c.schedule, c.reason, c.residual, c.norm0 = iterate.CheckSchedule{}, iterate.Running, iterate.UnknownResidual(), iterate.UnknownResidual()
	c.opening, c.at = c.method.openingStages(), 0
	return nil
}

// next is the stage that comes next, nil at the end.
func (c *cycleDriver) next() *stage {
	for {
		switch c.phase {
		case driverOpen:
			if c.at < len(c.opening) {
				c.at++
				return &c.opening[c.at-1]
			}
			c.phase = driverCheck
		case driverCheck:
			c.phase = driverEffect
			if !c.beginsCheck() {
				break
			}
			c.phase = driverContribute
			if !c.measured {
				break
			}
			s := c.method.measure()
			if c.fromCycle = s == nil; !c.fromCycle {
				return s
			}
			if c.withMagnitudes {
				break
			}
			c.phase = driverCheck
			c.evaluate(nil)
		case driverContribute:
			c.phase = driverEffect
			c.contribute()
		case driverEffect:
			c.phase = driverCycle
			if c.open && c.cycle == c.effect() {
				c.phase = driverEvaluate
				return &c.awaitReduction
			}
		case driverEvaluate:
			c.phase = driverCheck // the next one may begin at the same iterate
			c.open = false
			c.evaluate(c.peer.allReduce.values[:c.peer.allReduce.n])
		case driverCycle:
			if c.reason != iterate.Running && c.cycle == c.last {
				return nil
			}
			if !c.inCycle {
				if s := c.stopCheck(); s != nil {
					return s
				}
				if c.stopEarly() {
					return nil
				}
			}
			if s := c.method.next(c.limit()); s != nil {
				c.inCycle = true
				return s
			}
			c.inCycle = false
			cycles, work := c.method.done()
			c.cycle += cycles
			c.spent += work
			if cycles > 0 || !c.stopEarly() {
				c.phase = driverCheck
			}
		}
	}
}

// limit is how many cycles there are to the next thing that has to be done between two.
func (c *cycleDriver) limit() iterate.Iteration {
	at := c.check
	switch {
	case c.reason != iterate.Running:
		at = c.last
	case c.open:
		at = c.effect()
	}
	return at - c.cycle
}

// effect is the iterate at which the verdict on the open check takes effect.
func (c *cycleDriver) effect() iterate.Iteration {
	if c.final {
		return c.check
	}
	return c.interval.Effect(c.check)
}

// checks tells whether a check begins at the current iterate, and whether it measures.
func (c *cycleDriver) beginsCheck() bool {
	if c.reason != iterate.Running || c.open || c.cycle != c.check {
		return false
	}
	c.measured = c.cycle >= c.measureFrom || c.cycle == c.interval.Max
	return true
}

// give gives the sums of the check; check 0 has that of the reference vector, too.
func (c *cycleDriver) contribute() {
	t := &c.peer.allReduce
	for i := range t.sums {
		t.sums[i] = kernel.Sum{}
	}
	n := 0
	if c.measured && !c.fromCycle {
		n = c.method.sums(&t.sums)
	}
	if c.measured && c.withMagnitudes {
		t.sums[n] = c.method.magnitudes()
		n++
	}
	if c.check == 0 {
		t.sums[n] = c.reference
		n++
	}
	t.contribute(n)
	c.open = true
}

// judge is what the totals of the open check mean; none where the method knows its own.
func (c *cycleDriver) evaluate(totals []float64) {
	r, k := c.interval, c.check
	reason := iterate.Running
	if c.measured {
		n, m := len(totals)-1, 0.0
		asked := c.withMagnitudes && k > 0
		if asked {
			m, totals = math.Sqrt(totals[n])/c.norm0, totals[:n]
		}
		if k == 0 {
			c.norm0, totals = c.peer.config.Units.Reference(math.Sqrt(totals[n])), totals[:n]
		}
		tol := c.peer.config.Tolerance
		c.residual, reason = r.Evaluate(k, math.Sqrt(c.method.applyTotals(totals)), c.norm0, tol)
		if reason == iterate.Running && c.method.exhausted() {
			reason = iterate.ReachedSweeps
		}
		c.measureFrom = c.schedule.Next(r, k, c.residual, tol)
		if c.withMagnitudes = false; reason == iterate.Running {
			reason, c.withMagnitudes = c.stagnant.Evaluate(k, c.residual, tol, iterate.StagnantChecks, asked, m)
		}
	}
	if reason == iterate.Running {
		reason = c.peer.allReduce.stopReason
	}
	if reason == iterate.Converged && c.cycle > k {
		// What was sweeps ago need not hold now: over-relaxation raises the residual at times.
		c.final, c.check, c.measureFrom = true, c.cycle, c.cycle
		return
	}
	if reason != iterate.Running {
		c.reason, c.last = reason, c.effect()
		return
	}
	c.final, c.check = false, r.After(k)
}

func (c *cycleDriver) copyOut(dst []float64) { c.method.copyOut(dst) }
