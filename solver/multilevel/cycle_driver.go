package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// globalMethod is one peer's part of a method on the whole grid.
type globalMethod interface {
	// build prepares for a problem: the values become the reference vector, and its own share of the squared
	// residual is returned. Arrays of an earlier build are reused.
	build(p *problem.Problem, before []float64, dt float64) (reference kernel.Sum, err error)
	// begin sets the own values to the starting iterate: values, dense on the own box, or the problem's.
	// openingStages then update the ghosts.
	begin(values []float64) error
	openingStages() []stage
	// next returns the next stage of the cycle in progress, or nil if it is complete and the ghosts of the values
	// are up to date. The following call begins another cycle. At most limit cycles may be done at once.
	next(limit iterate.Iteration) *stage
	// done returns the number of cycles that were completed and their cost in sweeps over the own points. It
	// returns no cycles if the cycle was abandoned for an early end.
	done() (cycles iterate.Iteration, work float64)
	// exhausted reports whether MaxSweeps allows no more work.
	exhausted() bool
	// measure returns the stage that measures the residual of the current values, or nil if the cycle has measured
	// it.
	measure() *stage
	// sums stores the sums of that stage and returns their number. The first is that of the squared residual.
	sums(s *[maxSums]kernel.Sum) int
	// applyTotals accepts the totals (none if the cycle knows them) and returns the squared residual.
	applyTotals(totals []float64) (squares float64)
	magnitudes() kernel.Sum // magnitudes of the own values for the stagnation test
	describe() string       // for reports
	copyOut(dst []float64)
	// checkInterval returns how often iterates are checked and after how many sweeps a check takes effect. The
	// configuration overrides both unless they are fixed.
	checkInterval() (every, lag iterate.Iteration, fixed bool)
}

// cycleDriver runs the cycles of a method and, between them, the checks of the residual, which take effect a
// fixed number of cycles later. All peers take the same sequence.
type cycleDriver struct {
	peer        *peer
	method      globalMethod
	schedule    iterate.CheckSchedule
	interval    iterate.CheckInterval
	phase       driverPhase
	cycle       iterate.Iteration // completed cycles: the iterate
	check       iterate.Iteration // iterate of the open or next check
	measureFrom iterate.Iteration // checks from this iterate on measure the residual
	open        bool              // the check's sums have been contributed
	// the check is at the final iterate if it meets the tolerance: all peers wait for it
	final          bool
	measured       bool // the check includes the residual
	fromCycle      bool // which the cycle has already measured
	withMagnitudes bool // the check includes the magnitudes
	stagnant       iterate.Stagnation
	last           iterate.Iteration // final iterate, once reason is not Running
	residual       float64
	norm0          float64
	reason         iterate.Reason
	spent          float64 // work of all steps

	inCycle        bool              // a cycle is in progress
	stopCheckedAt  iterate.Iteration // iterate of the last check for an early end
	reference      kernel.Sum
	opening        []stage
	at             int
	awaitReduction stage
}

type driverPhase int

const (
	driverOpen  driverPhase = iota
	driverCheck             // between cycles: a check may begin
	driverContribute
	driverEffect // a check may take effect
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
		c.interval.Every = given
		c.interval.Fixed = true
		c.interval.Lag = min(lag, given)
	}
	if g.config.Lag > 0 && !fixed {
		c.interval.Lag = min(g.config.Lag, c.interval.Every)
	}
	c.awaitReduction = stage{kind: stageReduce}
	return nil
}

// begin prepares for the run or a time step.
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
	c.phase = driverOpen
	c.cycle = 0
	c.check = 0
	c.measureFrom = 0
	c.open = false
	c.final = false
	c.fromCycle = false
	c.withMagnitudes = false
	c.stagnant = iterate.Stagnation{}
	c.stopCheckedAt = 0
	c.inCycle = false
	c.schedule = iterate.CheckSchedule{}
	c.reason = iterate.Running
	c.residual = iterate.UnknownResidual()
	c.norm0 = iterate.UnknownResidual()
	c.opening, c.at = c.method.openingStages(), 0
	return nil
}

// next returns the next stage, or nil at the end of the run or time step.
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
			c.phase = driverCheck // the next check may begin at the same iterate
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

// limit returns the number of cycles until something must be done between two cycles.
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

// effect returns the iterate at which the open check takes effect.
func (c *cycleDriver) effect() iterate.Iteration {
	if c.final {
		return c.check
	}
	return c.interval.Effect(c.check)
}

// beginsCheck reports whether a check begins at the current iterate, and sets measured.
func (c *cycleDriver) beginsCheck() bool {
	if c.reason != iterate.Running || c.open || c.cycle != c.check {
		return false
	}
	c.measured = c.cycle >= c.measureFrom || c.cycle == c.interval.Max
	return true
}

// contribute contributes the sums of the check. Check 0 includes the reference vector's.
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

// evaluate evaluates the totals of the open check. totals is empty if the method knows its residual.
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
		// The check is of an earlier iterate, and over-relaxation may have increased the residual since.
		c.final = true
		c.check = c.cycle
		c.measureFrom = c.cycle
		return
	}
	if reason != iterate.Running {
		c.reason, c.last = reason, c.effect()
		return
	}
	c.final, c.check = false, r.After(k)
}

func (c *cycleDriver) copyOut(dst []float64) { c.method.copyOut(dst) }
