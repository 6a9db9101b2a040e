package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// whole is a method of the whole grid, as one peer does its part.
type whole interface {
	// build prepares for a problem: the reference vector in values, and its residual's own
	// share. Arrays that an earlier build made are used again.
	build(p *problem.Problem, before []float64, dt float64) (reference kernel.Sum, err error)
	// begin sets the own values to the starting iterate: values, dense own-box, or the
	// problem's. The stages of open then bring the ghosts up to date.
	begin(values []float64) error
	open() []stage
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
	judged(totals []float64) (squares float64)
	magnitudes() kernel.Sum // of the own values, see stagnation
	describe() string       // for reports
	copyOut(dst []float64)
	// rhythm is how often iterates are checked and when that takes effect; the
	// configuration may ask for another, unless it is fixed.
	rhythm() (every, lag iterate.Iteration, fixed bool)
}

// course is the order of a run: cycles, and between them checks of the residual, which
// take effect a fixed number of cycles later. All peers take the same.
type course struct {
	g        *Levels
	method   whole
	plan     iterate.CheckSchedule
	pace     iterate.CheckInterval
	phase    coursePhase
	cycle    iterate.Iteration // complete ones: the iterate
	check    iterate.Iteration // open or next
	due      iterate.Iteration // checks from here on measure
	open     bool              // the check's sums have been given
	final    bool              // it is of an iterate that is the answer if it meets the tolerance: everybody waits
	measured bool              // with a residual
	known    bool              // which the cycle has taken
	asks     bool              // and with magnitudes
	stagnant iterate.Stagnation
	last     iterate.Iteration // valid once reason is not Running
	residual float64
	norm0    float64
	reason   iterate.Reason
	spent    float64 // work of all steps

	within    bool              // a cycle is in progress
	lookedAt  iterate.Iteration // of the last look, see looks
	reference kernel.Sum
	opening   []stage
	at        int
	verdict   stage
}

type coursePhase int

const (
	courseOpen  coursePhase = iota
	courseCheck             // at an iterate: a check may begin
	courseGive
	courseEffect // a verdict may be due
	courseJudge
	courseCycle
)

func (c *course) init(g *Levels) error {
	c.g = g
	var err error
	if g.config.Method.Name == problem.Multigrid {
		c.method, err = newMultigrid(g)
	} else {
		c.method, err = newRedBlack(g)
	}
	if err != nil {
		return err
	}
	every, lag, fixed := c.method.rhythm()
	c.pace = iterate.CheckInterval{Every: every, Lag: lag, Max: g.config.MaxSweeps, Fixed: fixed}
	if given := g.config.CheckEvery; given > 0 && !fixed {
		c.pace.Every, c.pace.Fixed, c.pace.Lag = given, true, min(lag, given)
	}
	if g.config.Lag > 0 && !fixed {
		c.pace.Lag = min(g.config.Lag, c.pace.Every)
	}
	c.verdict = stage{kind: stageTotal}
	return nil
}

// begin prepares for the run, or for a time step.
func (c *course) begin(p *problem.Problem) error {
	g := c.g
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
	c.phase, c.cycle, c.check, c.due, c.open, c.final = courseOpen, 0, 0, 0, false, false
	c.known, c.asks, c.stagnant, c.lookedAt, c.within = false, false, iterate.Stagnation{}, 0, false
	c.plan, c.reason, c.residual, c.norm0 = iterate.CheckSchedule{}, iterate.Running, iterate.UnknownResidual(), iterate.UnknownResidual()
	c.opening, c.at = c.method.open(), 0
	return nil
}

// next is the stage that comes next, nil at the end.
func (c *course) next() *stage {
	for {
		switch c.phase {
		case courseOpen:
			if c.at < len(c.opening) {
				c.at++
				return &c.opening[c.at-1]
			}
			c.phase = courseCheck
		case courseCheck:
			c.phase = courseEffect
			if !c.checks() {
				break
			}
			c.phase = courseGive
			if !c.measured {
				break
			}
			s := c.method.measure()
			if c.known = s == nil; !c.known {
				return s
			}
			if c.asks {
				break
			}
			c.phase = courseCheck
			c.judge(nil)
		case courseGive:
			c.phase = courseEffect
			c.give()
		case courseEffect:
			c.phase = courseCycle
			if c.open && c.cycle == c.effect() {
				c.phase = courseJudge
				return &c.verdict
			}
		case courseJudge:
			c.phase = courseCheck // the next one may begin at the same iterate
			c.open = false
			c.judge(c.g.total.values[:c.g.total.n])
		case courseCycle:
			if c.reason != iterate.Running && c.cycle == c.last {
				return nil
			}
			if !c.within {
				if s := c.look(); s != nil {
					return s
				}
				if c.stops() {
					return nil
				}
			}
			if s := c.method.next(c.limit()); s != nil {
				c.within = true
				return s
			}
			c.within = false
			cycles, work := c.method.done()
			c.cycle += cycles
			c.spent += work
			if cycles > 0 || !c.stops() {
				c.phase = courseCheck
			}
		}
	}
}

// limit is how many cycles there are to the next thing that has to be done between two.
func (c *course) limit() iterate.Iteration {
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
func (c *course) effect() iterate.Iteration {
	if c.final {
		return c.check
	}
	return c.pace.Effect(c.check)
}

// checks tells whether a check begins at the current iterate, and whether it measures.
func (c *course) checks() bool {
	if c.reason != iterate.Running || c.open || c.cycle != c.check {
		return false
	}
	c.measured = c.cycle >= c.due || c.cycle == c.pace.Max
	return true
}

// give gives the sums of the check; check 0 has that of the reference vector, too.
func (c *course) give() {
	t := &c.g.total
	for i := range t.sums {
		t.sums[i] = kernel.Sum{}
	}
	n := 0
	if c.measured && !c.known {
		n = c.method.sums(&t.sums)
	}
	if c.measured && c.asks {
		t.sums[n] = c.method.magnitudes()
		n++
	}
	if c.check == 0 {
		t.sums[n] = c.reference
		n++
	}
	t.give(n)
	c.open = true
}

// judge is what the totals of the open check mean; none where the method knows its own.
func (c *course) judge(totals []float64) {
	r, k := c.pace, c.check
	reason := iterate.Running
	if c.measured {
		n, m := len(totals)-1, 0.0
		asked := c.asks && k > 0
		if asked {
			m, totals = math.Sqrt(totals[n])/c.norm0, totals[:n]
		}
		if k == 0 {
			c.norm0, totals = c.g.config.Units.Reference(math.Sqrt(totals[n])), totals[:n]
		}
		tol := c.g.config.Tolerance
		c.residual, reason = r.Evaluate(k, math.Sqrt(c.method.judged(totals)), c.norm0, tol)
		if reason == iterate.Running && c.method.exhausted() {
			reason = iterate.ReachedSweeps
		}
		c.due = c.plan.Next(r, k, c.residual, tol)
		if c.asks = false; reason == iterate.Running {
			reason, c.asks = c.stagnant.Evaluate(k, c.residual, tol, iterate.StagnantChecks, asked, m)
		}
	}
	if reason == iterate.Running {
		reason = c.g.total.wish
	}
	if reason == iterate.Converged && c.cycle > k {
		// What was sweeps ago need not hold now: over-relaxation raises the residual at times.
		c.final, c.check, c.due = true, c.cycle, c.cycle
		return
	}
	if reason != iterate.Running {
		c.reason, c.last = reason, c.effect()
		return
	}
	c.final, c.check = false, r.After(k)
}

func (c *course) copyOut(dst []float64) { c.method.copyOut(dst) }
