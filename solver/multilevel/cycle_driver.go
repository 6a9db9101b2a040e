package multilevel

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// globalMethod is one peer's part of a method on the whole grid.
type globalMethod interface {
	// prepare prepares for a problem, or a time step, that the block was built for. Arrays of an earlier problem are
	// reused.
	prepare(p *problem.Problem, step bool) error
	// begin begins a run or a time step from the values of the block. warm: they are a starting iterate, not the
	// reference vector.
	begin(warm bool)
	// next returns the next stage of the cycle in progress, or nil if it is complete and the ghosts of the values
	// are up to date. The following call begins another cycle. At most limit cycles may be done at once.
	next(limit iterate.Iteration) *stage
	// done returns the number of cycles that were completed and their cost in sweeps over the own points. It
	// returns no cycles if the cycle was abandoned for an early end.
	done() (cycles iterate.Iteration, work float64)
	// exhausted reports whether MaxSweeps allows no more work.
	exhausted() bool
	// measured returns the squared residual of the current values if the cycle has measured it.
	measured() (squares float64, ok bool)
	// observe accepts the squared residual that a check has measured.
	observe(squares float64)
	// unstable reports whether the user has set a parameter with which the method may not converge.
	unstable() bool
	// damping describes how the method amplifies rounding errors.
	damping() iterate.Damping
	// resume continues from values that another method has changed.
	resume()
	// opening returns the exchanges that update the ghosts of values that the method begins with.
	opening() []stage
	name() string
	omega() float64   // see iterate.Progress
	describe() string // for reports
	iterate.State
}

// cycleDriver runs the cycles of a method and, between them, the checks of the residual, which take effect a
// fixed number of cycles later. All peers take the same sequence.
type cycleDriver struct {
	cycleState
	*ownBlock
	method         globalMethod   // one of methods
	methods        []globalMethod // the method of the run and, if there is one, MethodConfig.Next
	alternation    method.Alternation
	prepared       [2]bool           // methods for problem
	problem        *problem.Problem  // of the time step
	changedAt      iterate.Iteration // of the newest change of the method; 0: none
	changes        bool              // the method changes before the next cycle
	changeStage    stage
	interval       iterate.CheckInterval
	reference      kernel.Sum // squared residual of the own points with the reference vector
	spent          float64    // work of all steps
	awaitReduction stage
	best           iterate.BestIterate
	keep           iterate.KeepClock // of the root
}

// cycleState is the state of a cycleDriver in a run or a time step.
type cycleState struct {
	phase       driverPhase
	schedule    iterate.CheckSchedule
	before      iterate.Iteration // cycles of the runs that this one continues
	cycle       iterate.Iteration // completed cycles: the iterate
	check       iterate.Iteration // iterate of the open or next check
	measureFrom iterate.Iteration // checks from this iterate on measure the residual
	open        bool              // the check's sums have been contributed
	// the check is at the final iterate if it meets the tolerance: all peers wait for it
	final          bool
	measures       bool // the check includes the residual
	fromCycle      bool // which the cycle has already measured
	withMagnitudes bool // the check includes the magnitudes
	stagnant       iterate.Stagnation
	last           iterate.Iteration // final iterate, once reason is not Running
	residual       float64
	worked         [2]float64 // work of each method
	norm0          float64
	referenceNorm  float64 // ‖r‖ of the reference vector: norm0, or 0
	reason         iterate.Reason
	inCycle        bool              // a cycle is in progress
	stopCheckedAt  iterate.Iteration // iterate of the last check for an early end
	opened         int               // opening stages done
	keeps          bool              // the next iterate without an open check is kept
}

type driverPhase int

const (
	driverOpen  driverPhase = iota
	driverCheck             // between cycles: a check may begin
	driverContribute
	driverEffect // a check may take effect
	driverEvaluate
	driverCycle
	driverKept // all peers have kept the iterate
)

func (c *cycleDriver) init(g *peer) error {
	var names []string
	for _, name := range []string{g.config.Method.Name, g.config.Method.Next} {
		if name != "" {
			names = append(names, name)
		}
	}
	window := g.box
	if slices.Contains(names, problem.Multigrid) {
		window = multigridWindow(g)
	}
	var err error
	if c.ownBlock, err = newOwnBlock(g, window); err != nil {
		return err
	}
	for i, name := range names {
		if name == problem.Multigrid {
			c.alternation.SOR = 1 - i
			c.methods = append(c.methods, newMultigrid(g, c.ownBlock))
		} else {
			c.methods = append(c.methods, newRedBlack(g, c.ownBlock))
		}
	}
	c.use(0)
	c.awaitReduction = stage{kind: stageReduce}
	c.changeStage = stage{kind: stageDo, do: func() {
		if err := c.change(); err != nil {
			g.fault = err
		}
	}}
	if c.keep.Every = g.config.KeepEvery; len(g.channels) == 0 {
		c.keep.Every = 0 // there is no other peer
	}
	return nil
}

// use sets the method of the next cycles.
func (c *cycleDriver) use(i int) {
	g := c.peer
	c.method = c.methods[i]
	c.interval = iterate.CheckInterval{Every: 1, Max: g.config.MaxSweeps, Fixed: true}
	if _, sor := c.method.(*redBlack); !sor {
		return
	}
	every, lag := iterate.Iteration(sorEvery), iterate.Iteration(sorLag)
	if given := g.config.CheckEvery; given > 0 {
		every, lag = given, min(lag, given)
	}
	if g.config.Lag > 0 {
		lag = min(g.config.Lag, every)
	}
	c.interval.Every, c.interval.Lag, c.interval.Fixed = every, lag, g.config.CheckEvery > 0
}

// prepare prepares a method for the problem or time step, unless it is prepared.
func (c *cycleDriver) prepare(i int) error {
	if c.prepared[i] {
		return nil
	}
	c.prepared[i] = true
	return c.methods[i].prepare(c.problem, c.peer.steps.Total > 0)
}

// settle returns the work in which the rate of the method in use shows: that in which SOR damps an error, several times.
func (c *cycleDriver) settle() float64 {
	const times = 4
	if omega := c.method.omega(); omega > 0 {
		return times / (2 - omega)
	}
	return 0
}

// change makes the next cycles those of the other method.
func (c *cycleDriver) change() error {
	i := c.alternation.Current()
	c.use(i)
	c.changes, c.changedAt = false, c.peer.steps.CompletedSweeps+c.cycle
	if err := c.prepare(i); err != nil {
		return err
	}
	c.method.resume()
	c.opened, c.check, c.measureFrom, c.schedule = 0, c.cycle, c.cycle, iterate.CheckSchedule{}
	return nil
}

// begin prepares for the run or a time step.
func (c *cycleDriver) begin(p *problem.Problem) error {
	g := c.peer
	var dt float64
	values := g.config.Initial
	if g.steps.Total > 0 {
		dt, values = g.config.Problem.Evolution.Step(), g.steps.Previous
	}
	if err := c.build(p, g.steps.Previous, dt); err != nil {
		return err
	}
	c.problem, c.prepared = p, [2]bool{}
	before := c.adopt()
	if err := c.prepare(c.alternation.Current()); err != nil {
		return err
	}
	g.runNow(&c.residualStage)
	c.reference = c.squares()
	if err := p.CheckReference(&c.reference); err != nil {
		return err
	}
	warm, err := c.block.Start(c.u, c.embed(values))
	if err != nil {
		return err
	}
	c.method.begin(warm)
	if g.config.MayDiverge() {
		c.best.Begin(len(c.u), g.config.NewArray)
	}
	g.config.Initial = nil
	crossing := 0 // sweeps in which a flow crosses the grid, before the residual falls
	if !p.Symmetric() {
		crossing = max(p.N[0], p.N[1], p.N[2])
	}
	c.alternation.Begin(c.spent, float64(crossing))
	c.cycleState = cycleState{residual: iterate.UnknownResidual(), norm0: iterate.UnknownResidual()}
	if before != nil && g.steps.Total == 0 {
		if err := c.resumeFrom(before); err != nil {
			return err
		}
	}
	if g.config.State == nil {
		return nil
	}
	c.keeps = c.keep.Every > 0 // again, since the peers may be others
	return iterate.DecodeState(g.config.State, c)
}

// next returns the next stage, or nil at the end of the run or time step.
func (c *cycleDriver) next() *stage {
	for {
		switch c.phase {
		case driverOpen:
			if list := c.method.opening(); c.opened < len(list) {
				c.opened++
				return &list[c.opened-1]
			}
			c.phase = driverCheck
		case driverCheck:
			if c.changes {
				c.phase = driverOpen
				return &c.changeStage
			}
			if c.keeps && !c.open && c.reason == iterate.Running {
				c.phase = driverKept
				return c.beginKeep()
			}
			c.phase = driverEffect
			if !c.beginsCheck() {
				break
			}
			c.phase = driverContribute
			if !c.measures {
				break
			}
			if _, c.fromCycle = c.method.measured(); !c.fromCycle && !c.atReference {
				return &c.residualStage
			}
			if c.fromCycle && !c.withMagnitudes {
				c.phase = driverCheck
				copy(c.best.Offer(c.residual), c.u)
				c.evaluate(nil)
			}
		case driverContribute:
			c.phase = driverEffect
			c.contribute()
		case driverEffect:
			c.phase = driverCycle
			if c.open && c.cycle == c.effect() {
				c.phase = driverEvaluate
				return &c.awaitReduction
			}
		case driverKept:
			c.phase = driverCheck
			c.keep.End(c.peer.now)
			c.peer.ops = append(c.peer.ops, iterate.Op{Kind: iterate.OpKept, Label: uint64(c.cycle)})
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
			c.worked[c.alternation.Current()] += work
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

// beginsCheck reports whether a check begins at the current iterate, and sets measures.
func (c *cycleDriver) beginsCheck() bool {
	if c.reason != iterate.Running || c.open || c.cycle != c.check {
		return false
	}
	c.measures = c.cycle >= c.measureFrom || c.cycle == c.interval.Max
	return true
}

// contribute contributes the sums of the check. Check 0 includes the reference vector's.
func (c *cycleDriver) contribute() {
	t := &c.peer.allReduce
	n := 0
	if c.measures {
		copy(c.best.Offer(c.residual), c.u)
	}
	if c.measures && !c.fromCycle {
		if t.sums[0] = c.squares(); c.atReference {
			t.sums[0] = c.reference
		}
		n++
	}
	if c.measures && c.withMagnitudes {
		t.sums[n] = c.block.Magnitudes(c.u, c.own)
		n++
	}
	if c.check == 0 {
		t.sums[n] = c.reference
		n++
	}
	t.contribute(n)
	c.open = true
}

// evaluate evaluates the totals of the open check. Without other totals it is empty if the cycle has measured the
// residual.
func (c *cycleDriver) evaluate(totals []float64) {
	r, k := c.interval, c.check
	reason := iterate.Running
	if c.measures {
		n, m := len(totals)-1, 0.0
		asked := c.withMagnitudes && k > 0
		if asked {
			m, totals = math.Sqrt(totals[n])/c.norm0, totals[:n]
		}
		if k == 0 {
			c.referenceNorm, totals = math.Sqrt(totals[n]), totals[:n]
			c.norm0 = c.peer.config.Units.Reference(c.referenceNorm)
		}
		squares, _ := c.method.measured()
		if !c.fromCycle {
			squares = totals[0]
			c.method.observe(squares)
		}
		tol := c.peer.config.Tolerance
		c.residual, reason = r.Evaluate(k, math.Sqrt(squares), c.norm0, tol)
		c.best.Measured(k, c.residual)
		switch {
		case reason != iterate.Running:
		case c.method.exhausted():
			reason = iterate.ReachedSweeps
		}
		c.measureFrom = c.schedule.Next(r, k, c.residual, tol)
		if c.withMagnitudes = false; reason == iterate.Running {
			c.stagnant.MayDiverge = c.method.unstable() || c.problem.MayDiverge()
			c.stagnant.Damping = c.method.damping()
			c.stagnant.Given = len(c.methods) == 1 && c.method.omega() > 0 && c.peer.config.Method.Omega > 0
			reason, c.withMagnitudes = c.stagnant.Evaluate(c.before+k, c.standing(), c.residual, tol,
				iterate.StagnantChecks, asked, m)
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
	if len(c.methods) > 1 {
		c.changes = c.measures && c.alternation.Observe(c.spent, c.residual, c.peer.config.Tolerance, c.settle())
		if left := math.Ceil(c.alternation.Left(c.spent)); left < float64(c.measureFrom-c.cycle) && !c.interval.Fixed {
			c.measureFrom = c.cycle + iterate.Iteration(max(0, left)) // of sor
		}
	}
}

// checkOfAll returns the iterate of the open or next check, counted from the first start of the run.
func (c *cycleDriver) checkOfAll() int { return int(c.before + c.check) }

// standing returns the work that counts against a standstill. Of two methods it is twice that of the method with less: the
// run goes on until each has had its share without progress.
func (c *cycleDriver) standing() float64 {
	n := len(c.methods)
	return float64(n) * slices.Min(c.worked[:n])
}

// beginKeep keeps the present iterate: the reduction that it returns is complete when every peer has stored its copy.
func (c *cycleDriver) beginKeep() *stage {
	c.keeps = false
	c.keep.Begin(c.peer.now)
	c.peer.ops = append(c.peer.ops,
		iterate.Op{Kind: iterate.OpKeep, Label: uint64(c.cycle), Message: iterate.EncodeState(c)})
	c.peer.allReduce.contribute(0)
	return &c.awaitReduction
}

// Fields implements iterate.State, between two cycles and without an open check.
func (c *cycleDriver) Fields(visit func(field any)) {
	for _, k := range []*iterate.Iteration{&c.before, &c.cycle, &c.check, &c.measureFrom, &c.stopCheckedAt} {
		visit(k)
	}
	visit(&c.residual)
	visit(&c.norm0)
	visit(&c.referenceNorm)
	visit(&c.spent)
	visit(&c.worked[0])
	visit(&c.worked[1])
	visit(&c.withMagnitudes)
	visit(&c.final)
	visit(&c.changedAt)
	c.alternation.Fields(visit)
	c.schedule.Fields(visit)
	c.stagnant.Fields(visit)
	for i, m := range c.methods {
		used := c.prepared[i]
		if visit(&used); !used {
			continue
		}
		if err := c.prepare(i); err != nil {
			c.peer.fault = err
		}
		m.Fields(visit)
	}
	if i := c.alternation.Current(); i < len(c.methods) {
		c.use(i)
	}
}
