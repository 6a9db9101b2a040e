package schwarz

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// schwarzPass is one relaxation of the Schwarz method, or a measurement: stages that
// follow each other.
type schwarzPass struct {
	w        *peer
	stage    schwarzPart
	relaxes  bool
	measures bool
	at       int  // patches sent
	first    bool // iterate 0 has yet to be sent
	cycles   int  // of the local solve, wanted
	done     int  // operations of the local solve done
	cost     float64
	partial  bool // flexible: values go out between two cycles
	news     bool // values of others are newer than in the relaxation before
	hasty    bool // the run is to end early: an iterate is made by as little work as there is

	chunks int
	axis   int
	norms  []kernel.Norm // one a chunk
	run    func(i int)   // bound once: a closure a call would allocate
}

type schwarzPart int

const (
	partIdle    schwarzPart = iota
	partSend                // values of a whole iterate, or of a part of the next one, go out
	partMeasure             // the residual of what was assembled
	partShare               // the own share of the coarse problem
	partAwait               // lockstep: for the correction
	partCoarse              // root: the coarse problem is solved
	partCorrect             // the correction is added
	partSolve               // a cycle of the local solve
)

func (p *schwarzPass) init(w *peer) {
	p.w = w
	p.chunks, p.axis = problem.Split(w.inside, problem.Jacobi, w.layout.Dim)
	p.norms = make([]kernel.Norm, p.chunks)
	p.run = func(i int) {
		w.sweep.Residual(&p.norms[i], w.work, problem.Chunk(w.inside, p.axis, i, p.chunks))
	}
}

// start is called when the run begins, or a time step.
func (p *schwarzPass) start() {
	p.abandon()
	p.first, p.hasty = true, false
	p.cost = 1
}

// Halt lets a local solve end with the cycle in progress. What comes before it is dropped:
// the measurement, and in lockstep the wait for a coarse correction.
func (w *peer) Halt() iterate.Iteration {
	p := &w.pass
	p.hasty = true
	switch {
	case p.stage == partSolve:
		p.cycles = min(p.cycles, p.done+1)
		return w.Iterate + 1
	case p.stage != partSend && p.stage != partIdle && w.config.Scheme.Lockstep():
		p.abandon()
	}
	return w.Iterate
}

// abandon drops a pass half done; the current iterate is intact.
func (p *schwarzPass) abandon() { p.stage, p.partial = partIdle, false }

// begin assembles the iterate and begins a pass.
func (p *schwarzPass) begin(g iterate.Action) {
	w := p.w
	p.news = w.assemble() || w.config.Scheme.Lockstep()
	p.relaxes, p.measures, p.done = g != iterate.ActionMeasure, g != iterate.ActionSweep, 0
	if p.relaxes {
		p.cycles = w.pace.cycles(p.news)
	}
	if p.hasty {
		p.cycles = 1
	}
	p.stage = partMeasure
	if !p.measures {
		p.next1()
	}
}

// beginFrozen measures what assembleFrozen has assembled.
func (p *schwarzPass) beginFrozen() { p.stage, p.relaxes, p.measures = partMeasure, false, true }

// next1 goes on after what was assembled has been measured.
func (p *schwarzPass) next1() {
	switch {
	case !p.relaxes:
		p.stage = partIdle
	case !p.hasty && p.w.coarse != nil && p.w.coarse.due(p.w):
		p.stage = partShare
	default:
		p.stage = partSolve
	}
}

// next is the next operation of the pass in progress.
func (p *schwarzPass) next(now time.Duration) (iterate.Op, bool) {
	w := p.w
	if p.first {
		p.first, p.stage, p.at = false, partSend, 0
	}
	for {
		switch p.stage {
		case partIdle:
			return iterate.Op{}, false
		case partSend:
			if p.at < len(w.patches) {
				p.at++
				if label := p.sending(); p.partial || !w.Rule.SkipSend(w.Iterate) {
					return w.SendOp(now, w.Halos[p.at-1], label), true
				}
				continue
			}
			p.stage = partIdle
			if p.partial {
				p.partial, p.stage = false, partSolve
			}
		case partAwait:
			switch {
			case w.coarse.solvable(w):
				p.stage = partCoarse
			case w.coarse.arrived(w):
				p.stage = partCorrect
			default:
				return w.Wait(now), true
			}
		default:
			return iterate.Op{Kind: iterate.OpRelax, Part: int(p.stage), Points: p.points()}, true
		}
	}
}

// sending is the label of what goes out.
func (p *schwarzPass) sending() iterate.Iteration {
	k := p.w.Iterate
	if !p.w.flexible() {
		return k
	}
	if k <<= partBits; p.partial {
		k += iterate.Iteration(min(p.done, 1<<partBits-1))
	}
	return k
}

// points is what the stage is worth, in points relaxed.
func (p *schwarzPass) points() int {
	switch p.stage {
	case partCoarse:
		return p.w.coarse.rootPoints()
	case partSolve:
		return max(1, int(p.cost*float64(p.w.layout.Points())))
	}
	return p.w.inside.Points()
}

// Relax does the part that Next asked for; any other op is ignored.
func (w *peer) Relax(op iterate.Op) {
	p := &w.pass
	if op.Kind != iterate.OpRelax || p.stage == partIdle || op.Part != int(p.stage) {
		return
	}
	switch p.stage {
	case partMeasure:
		w.exec.For(p.chunks, p.run)
		sum := p.collect()
		p.next1() // measured may end the run, and with it the pass
		w.Rule.Measured(&sum)
	case partShare:
		w.coarse.share(w)
		p.stage = partAwait
		if !w.config.Scheme.Lockstep() {
			p.stage = partSolve
			if w.coarse.solvable(w) {
				p.stage = partCoarse
			}
		}
	case partCoarse:
		w.coarse.solve(w)
		w.spent += float64(w.coarse.rootPoints()) / float64(w.ownPart.Points())
		p.stage = partAwait
		if !w.config.Scheme.Lockstep() {
			p.stage = partSolve // it counts from the next relaxation on
		}
	case partCorrect:
		w.coarse.apply(w)
		p.stage = partSolve
	case partSolve:
		p.solve()
	}
}

// solve does an operation of the local solve; the last one makes the next iterate.
func (p *schwarzPass) solve() {
	w := p.w
	if p.done == 0 {
		w.local.begin(w.work, p.cycles, p.news)
	}
	p.cost = w.local.step(w.work)
	if p.hasty {
		w.local.end(w.work)
	}
	w.spent += p.cost * float64(w.layout.Points()) / float64(w.ownPart.Points())
	p.done++
	if !w.local.over {
		if w.flexible() && w.local.sound {
			p.partial, p.stage, p.at = true, partSend, 0
		}
		return
	}
	w.pace.did = max(w.pace.did, p.done)
	room := w.room()
	w.takeOwn(room, w.work)
	w.cur, w.next = room, w.cur
	w.Iterate++
	if w.coarse != nil {
		w.coarse.in = w.coarse.at
	}
	p.stage, p.at, p.partial = partSend, 0, false
}

// collect merges and empties what the chunks measured.
func (p *schwarzPass) collect() kernel.Sum {
	var sum kernel.Sum
	for i := range p.norms {
		sum.Merge(&p.norms[i].Squares)
		p.norms[i].Reset()
	}
	return sum
}

// measureNow measures the residual of the working array at once.
func (p *schwarzPass) measureNow() kernel.Sum {
	p.w.exec.For(p.chunks, p.run)
	return p.collect()
}
