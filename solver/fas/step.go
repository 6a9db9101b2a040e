package fas

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// step is a step of the method, or a measurement, as a sequence of stages.
type step struct {
	w        *peer
	stage    stage
	relaxes  bool
	measures bool
	at       int  // exchanges that were sent to
	rests    bool // the step does without corrections

	chunks int
	axis   int
	norms  []kernel.Norm // one per chunk
	run    func(i int)   // bound once: a closure per call would allocate
}

type stage int

const (
	stageIdle    stage = iota
	stageStart         // computing the starting values
	stageMeasure       // measuring the residual of the assembled values
	stageDown          // relaxing and restricting the region
	stageTau           // sending the right-hand side of the replicated grid
	stageAwait         // waiting for those that the scheme requires
	stageUp            // solving the replicated grid and correcting the region
	stageRing          // sending the new iterate
)

// restricted reports whether the right-hand side of the step in progress is complete.
func (s stage) restricted() bool { return s == stageTau || s == stageAwait || s == stageUp }

func (p *step) init(w *peer) {
	p.w, p.stage = w, stageStart
	p.chunks, p.axis = problem.Split(w.inside, problem.Jacobi, w.layout.Dim)
	p.norms = make([]kernel.Norm, p.chunks)
	p.run = func(i int) {
		w.measure.Residual(&p.norms[i], w.work, problem.Chunk(w.inside, p.axis, i, p.chunks))
	}
}

// begin begins a step or a measurement.
func (p *step) begin(action iterate.Action) {
	p.relaxes, p.measures = action != iterate.ActionMeasure, action != iterate.ActionSweep
	p.stage = stageDown
	if p.measures {
		p.w.assemble()
		p.stage = stageMeasure
	}
}

// beginCaptured measures the captured values, which were assembled.
func (p *step) beginCaptured() { p.stage, p.relaxes, p.measures = stageMeasure, false, true }

// Halt returns the iterate at which the peer can end. In lockstep, a measurement is abandoned.
func (w *peer) Halt() iterate.Iteration {
	p := &w.step
	switch {
	case p.stage.restricted():
		return w.Iterate + 1
	case (p.stage == stageMeasure || p.stage == stageDown) && w.config.Scheme.Lockstep():
		p.stage = stageIdle
	}
	return w.Iterate
}

// next returns the next operation of the step in progress.
func (p *step) next(now time.Duration) (iterate.Op, bool) {
	w := p.w
	for {
		switch p.stage {
		case stageIdle:
			return iterate.Op{}, false
		case stageTau, stageRing:
			kind, label := kindTau, w.Iterate
			if p.stage == stageRing {
				kind = kindRing
			}
			if p.at == len(w.exchanges) {
				p.at = 0
				if p.stage++; p.stage > stageRing {
					p.stage = stageIdle
				}
				continue
			}
			x := w.exchanges[p.at]
			p.at++
			if kind < len(x.channels()) && (kind == kindTau || !w.Rule.SkipSend(label)) {
				return w.sendOp(now, x, kind, label), true
			}
		case stageAwait:
			if !w.readable(kindTau) {
				return w.wait(now), true
			}
			p.stage = stageUp
		default:
			return iterate.Op{Kind: iterate.OpRelax, Part: int(p.stage), Points: p.points()}, true
		}
	}
}

// points returns the cost of the stage in point relaxations.
func (p *step) points() int {
	g := p.w.grids
	switch p.stage {
	case stageStart:
		if p.w.Steps.Total > 0 {
			return p.w.layout.Points()
		}
		return g.startWork()
	case stageDown:
		return g.downWork()
	case stageUp:
		if p.rests {
			return g.restWork()
		}
		return g.upWork()
	}
	return p.w.inside.Points()
}

// Relax carries out the stage that Next requested and ignores any other operation.
func (w *peer) Relax(op iterate.Op) {
	p := &w.step
	if op.Kind != iterate.OpRelax || p.stage == stageIdle || op.Part != int(p.stage) {
		return
	}
	own := float64(w.ownPart.Points())
	switch p.stage {
	case stageStart:
		w.Fault = w.start()
		w.Spent += float64(p.points()) / own
		p.stage = stageRing
	case stageMeasure:
		w.config.Executor.For(p.chunks, p.run)
		sum := method.TakeSquares(p.norms)
		if p.stage = stageIdle; p.relaxes {
			p.stage = stageDown
		}
		w.Rule.Measured(&sum) // may end the run
	case stageDown:
		travel, silent := w.readRings()
		w.grids.phaseDown()
		p.rests = w.guard.observe(w.grids.residual(w.inside), travel, silent)
		w.keepTau(w.Iterate)
		w.Spent += float64(p.points()) / own
		p.stage, p.at = stageTau, 0
	case stageUp:
		if w.readTaus(); p.rests {
			w.grids.relaxOnly()
		} else {
			w.grids.theta = w.guard.factor()
			w.grids.phaseUp()
		}
		w.Spent += float64(p.points()) / own
		w.complete()
		p.stage, p.at = stageRing, 0
	}
}
