package schwarz

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// relaxation is one relaxation of the Schwarz method, or a measurement, as a sequence of stages.
type relaxation struct {
	w         *peer
	stage     relaxationStage
	relaxes   bool
	measures  bool
	at        int  // patches sent
	first     bool // iterate 0 is not yet sent
	cycles    int  // of the local solve
	done      int  // operations of the local solve done
	cost      float64
	partial   bool // flexible: values are sent between two cycles
	newValues bool // values of other peers have changed since the last relaxation
	stopping  bool // the run ends early: an iterate takes minimal work

	chunks int
	axis   int
	norms  []kernel.Norm // one per chunk
	run    func(i int)   // bound once: a closure per call would allocate
}

type relaxationStage int

const (
	stageIdle        relaxationStage = iota
	stageSend                        // sending a whole iterate, or a part of the next one
	stageMeasure                     // measuring the residual of the assembled values
	stageShare                       // computing the own share of the coarse problem
	stageAwait                       // lockstep: waiting for the correction
	stageCoarseSolve                 // root: solving the coarse problem
	stageCorrect                     // adding the correction
	stageSolve                       // a cycle of the local solve
)

func (p *relaxation) init(w *peer) {
	p.w = w
	p.chunks, p.axis = problem.Split(w.inside, problem.Jacobi, w.layout.Dim)
	p.norms = make([]kernel.Norm, p.chunks)
	p.run = func(i int) {
		w.sweep.Residual(&p.norms[i], w.work, problem.Chunk(w.inside, p.axis, i, p.chunks))
	}
}

// start resets the relaxation for a run or a time step.
func (p *relaxation) start() {
	p.abandon()
	p.first, p.stopping = true, false
	p.cost = 1
}

// Halt makes a local solve end with the cycle in progress and returns the iterate at which the peer can end.
// Earlier stages are abandoned: the measurement, and in lockstep the wait for a coarse correction.
func (w *peer) Halt() iterate.Iteration {
	p := &w.relaxation
	p.stopping = true
	switch {
	case p.stage == stageSolve:
		p.cycles = min(p.cycles, p.done+1)
		return w.Iterate + 1
	case p.stage != stageSend && p.stage != stageIdle && w.config.Scheme.Lockstep():
		p.abandon()
	}
	return w.Iterate
}

// abandon discards an incomplete relaxation. The current iterate is intact.
func (p *relaxation) abandon() { p.stage, p.partial = stageIdle, false }

// begin assembles the iterate and begins a relaxation or a measurement.
func (p *relaxation) begin(action iterate.Action) {
	w := p.w
	p.newValues = w.assemble() || w.config.Scheme.Lockstep()
	p.relaxes = action != iterate.ActionMeasure
	p.measures = action != iterate.ActionSweep
	p.done = 0
	if p.relaxes {
		p.cycles = w.choice.cycles(p.newValues)
	}
	if p.stopping {
		p.cycles = 1
	}
	p.stage = stageMeasure
	if !p.measures {
		p.afterMeasure()
	}
}

// beginCaptured measures the values that assembleCaptured has assembled.
func (p *relaxation) beginCaptured() {
	p.stage = stageMeasure
	p.relaxes = false
	p.measures = true
}

// afterMeasure selects the stage after the measurement.
func (p *relaxation) afterMeasure() {
	switch {
	case !p.relaxes:
		p.stage = stageIdle
	case !p.stopping && p.w.coarse != nil && p.w.coarse.due(p.w):
		p.stage = stageShare
	default:
		p.stage = stageSolve
	}
}

// next returns the next operation of the relaxation in progress.
func (p *relaxation) next(now time.Duration) (iterate.Op, bool) {
	w := p.w
	if p.first {
		p.first = false
		p.stage = stageSend
		p.at = 0
	}
	for {
		switch p.stage {
		case stageIdle:
			return iterate.Op{}, false
		case stageSend:
			if p.at < len(w.patches) {
				p.at++
				if label := p.label(); p.partial || !w.Rule.SkipSend(w.Iterate) {
					return w.SendOp(now, w.Halos[p.at-1], label), true
				}
				continue
			}
			p.stage = stageIdle
			if p.partial {
				p.partial, p.stage = false, stageSolve
			}
		case stageAwait:
			switch {
			case w.coarse.solvable(w):
				p.stage = stageCoarseSolve
			case w.coarse.known && w.coarse.number == w.Iterate:
				p.stage = stageCorrect
			default:
				return w.Wait(now), true
			}
		default:
			return iterate.Op{Kind: iterate.OpRelax, Part: int(p.stage), Points: p.points()}, true
		}
	}
}

// label returns the label of the values to send.
func (p *relaxation) label() iterate.Iteration {
	k := p.w.Iterate
	if !p.w.config.Method.Flexible {
		return k
	}
	if k <<= partBits; p.partial {
		k += iterate.Iteration(min(p.done, 1<<partBits-1))
	}
	return k
}

// points returns the cost of the stage in point relaxations.
func (p *relaxation) points() int {
	switch p.stage {
	case stageCoarseSolve:
		return p.w.coarse.solver.workPoints()
	case stageSolve:
		return max(1, int(p.cost*float64(p.w.layout.Points())))
	}
	return p.w.inside.Points()
}

// Relax computes the stage that Next requested and ignores any other op.
func (w *peer) Relax(op iterate.Op) {
	p := &w.relaxation
	if op.Kind != iterate.OpRelax || p.stage == stageIdle || op.Part != int(p.stage) {
		return
	}
	switch p.stage {
	case stageMeasure:
		sum := p.measureNow()
		p.afterMeasure() // Measured may end the run and abandon the relaxation
		w.Rule.Measured(&sum)
	case stageShare:
		w.coarse.own.measure(w)
		w.coarse.forwardShares(w)
		p.stage = stageAwait
		if !w.config.Scheme.Lockstep() {
			p.stage = stageSolve
			if w.coarse.solvable(w) {
				p.stage = stageCoarseSolve
			}
		}
	case stageCoarseSolve:
		w.coarse.solve(w)
		w.Spent += float64(w.coarse.solver.workPoints()) / float64(w.ownPart.Points())
		p.stage = stageAwait
		if !w.config.Scheme.Lockstep() {
			p.stage = stageSolve // it is added in the next relaxation
		}
	case stageCorrect:
		w.coarse.apply(w)
		p.stage = stageSolve
	case stageSolve:
		p.solve()
	}
}

// solve runs an operation of the local solve. The last one completes the next iterate.
func (p *relaxation) solve() {
	w := p.w
	if p.done == 0 {
		w.local.begin(w.work, p.cycles, p.newValues)
	}
	p.cost = w.local.step(w.work)
	if p.stopping {
		w.local.end(w.work)
	}
	w.Spent += p.cost * float64(w.layout.Points()) / float64(w.ownPart.Points())
	p.done++
	if !w.local.complete {
		if w.config.Method.Flexible && w.local.readable {
			p.partial = true
			p.stage = stageSend
			p.at = 0
		}
		return
	}
	w.choice.cyclesDone = max(w.choice.cyclesDone, p.done)
	room := w.freeBuffer()
	w.extractOwn(room, w.work)
	w.cur, w.next = room, w.cur
	w.Iterate++
	if w.coarse != nil {
		w.coarse.inIterate = w.coarse.inWork
	}
	p.stage = stageSend
	p.at = 0
	p.partial = false
}

// measureNow measures the squared residual of the working array.
func (p *relaxation) measureNow() kernel.Sum {
	p.w.config.Executor.For(p.chunks, p.run)
	return method.TakeSquares(p.norms)
}
