package solver

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// pass is one run over the own block: a sweep, a sweep that measures, a group of
// sweeps, or a measurement of an array.
type pass struct {
	w       *Worker
	sweep   []step // planned once
	measure []step
	steps   []step // of the pass in progress; nil between passes
	at      int
	relaxes bool
	norms   []kernel.Norm // one a chunk
	gather  bool          // the pass measures
	ahead   bool          // all of its parts are relaxed, whatever is still to be asked for
	array   []float64     // what is read
	initial bool          // iterate 0 has yet to be sent
	current step
	run     func(i int) // bound once: a closure a call would allocate
	plane   kernel.Box
	group   group
}

func (p *pass) init(w *Worker) {
	p.w = w
	p.sweep = planSweep(w.block.layout, w.faces, w.config.Order)
	p.measure = planSweep(w.block.layout, nil, Jacobi)
	most := 1
	for _, steps := range [][]step{p.sweep, p.measure} {
		for _, s := range steps {
			most = max(most, s.chunks)
		}
	}
	p.norms = make([]kernel.Norm, most)
	p.run = p.runChunk
}

// begin is called when the run begins, or a time step.
func (p *pass) begin() {
	p.abandon()
	p.collect() // what a measurement half done has left
	p.at, p.initial = 0, inLockstep(p.w.config.Scheme)
}

func (p *pass) sweeping() bool { return p.steps != nil && p.relaxes }

func (p *pass) beginSweep(measure bool) {
	if !measure && p.group.begin(p.w) {
		p.steps, p.at, p.relaxes, p.gather = p.group.steps, 0, true, false
		return
	}
	p.steps, p.at, p.relaxes, p.gather, p.array, p.ahead = p.sweep, 0, true, measure, p.w.cur, false
	p.w.meter.begin()
}

func (p *pass) beginMeasure(array []float64) {
	p.steps, p.at, p.relaxes, p.gather, p.array, p.ahead = p.measure, 0, false, true, array, false
}

// abandon drops a pass half done; the current iterate is intact.
func (p *pass) abandon() {
	p.steps, p.array, p.gather, p.group.sweeps, p.w.unread = nil, nil, false, 0, false
}

// next is the next operation of the pass in progress.
func (p *pass) next(now time.Duration) (Op, bool) {
	w := p.w
	for p.initial && w.stepper != nil {
		// Lockstep: everyone needs iterate 0 of its neighbours; p.at counts the faces.
		if p.at == len(w.faces) {
			p.initial, p.at = false, 0
			break
		}
		p.at++
		if f := w.faces[p.at-1]; !f.opened {
			return w.send(now, f.channel, 0), true
		}
	}
	for p.steps != nil {
		if p.at == len(p.steps) {
			p.finish()
			break
		}
		s := &p.steps[p.at]
		if !s.send {
			w.meter.asked = now
			return Op{Kind: OpRelax, Part: s.part, Points: s.points}, true
		}
		p.at++
		if label := w.iterate + 1; !w.end.skipSend(label) {
			return w.send(now, w.channels[s.face], label), true
		}
	}
	return Op{}, false
}

// Relax does the part that Next asked for; any other op is ignored.
func (w *Worker) Relax(op Op) {
	p := &w.pass
	if op.Kind != OpRelax || p.at >= len(p.steps) || p.steps[p.at].send || p.steps[p.at].part != op.Part {
		return
	}
	w.readGhosts()
	p.current = p.steps[p.at]
	p.at++
	w.meter.relaxed = op.Points
	switch {
	case p.group.sweeps > 0:
		p.group.relax(w, p.current.part)
	case !p.ahead:
		p.relax()
	}
}

// RelaxAhead is Relax for a shell whose time is not the processor's: with the part that op
// asks for it relaxes all others of the pass, while the block is in the processor's caches.
// They are still asked for, and nothing that can be seen before they are is different.
func (w *Worker) RelaxAhead(op Op) {
	p := &w.pass
	if p.at == 0 && p.steps != nil && p.group.sweeps == 0 && !p.ahead {
		w.readGhosts()
		p.relaxAll()
	}
	w.Relax(op)
}

// relaxAll relaxes all parts of the pass, and packs faces whose values lie far apart. What is
// not measured needs no parts: rows are longer without them.
func (p *pass) relaxAll() {
	w := p.w
	p.ahead = true
	if p.relaxes && !p.gather && w.config.Order == Jacobi {
		w.stepper.Relax(w.next, w.cur, w.cur, w.block.layout.Interior())
	} else {
		for _, s := range p.steps {
			if !s.send {
				p.current = s
				p.relax()
			}
		}
	}
	for _, f := range w.faces {
		if p.relaxes && f.to.Axis == 0 {
			f.packAhead(packLabel(w.steps.at, f.age, w.iterate+1), w.next)
		}
	}
}

// relax does the current part.
func (p *pass) relax() {
	if p.relaxes && p.w.config.Order == InTurn {
		p.relaxInTurn()
		return
	}
	p.plane = p.current.box
	p.w.exec.For(p.current.chunks, p.run)
}

// relaxInTurn goes through a part's planes in ascending order; the executor
// shares out each.
func (p *pass) relaxInTurn() {
	slow := p.w.block.layout.Dim - 1
	b := p.current.box
	for z := b.Lo[slow]; z < b.Hi[slow]; z++ {
		p.plane = b
		p.plane.Lo[slow], p.plane.Hi[slow] = z, z+1
		p.w.exec.For(p.current.chunks, p.run)
	}
}

// runChunk does piece i of the current part.
func (p *pass) runChunk(i int) {
	w := p.w
	b := chunk(p.plane, p.current.axis, i, p.current.chunks)
	switch {
	case !p.relaxes:
		w.stepper.Residual(&p.norms[i], p.array, b)
	case w.config.Order == InTurn:
		below := w.next
		if b.Lo[w.block.layout.Dim-1] == 0 {
			below = w.cur // below the first plane are the neighbour's values
		}
		w.stepper.Relax(w.next, below, w.cur, b)
		if p.gather {
			w.stepper.Residual(&p.norms[i], w.cur, b)
		}
	case p.gather:
		w.stepper.RelaxResidual(&p.norms[i], w.next, w.cur, b)
	default:
		w.stepper.Relax(w.next, w.cur, w.cur, b)
	}
}

// collect merges and empties what the chunks measured.
func (p *pass) collect() kernel.Sum {
	var sum kernel.Sum
	for i := range p.norms {
		sum.Merge(&p.norms[i].Squares)
		p.norms[i].Reset()
	}
	return sum
}

// finish ends the pass: a sweep's result becomes the current iterate. An array
// that a snapshot froze is left alone, the third one takes its place.
func (p *pass) finish() {
	w := p.w
	w.measured = p.array
	p.steps, p.array = nil, nil
	if p.group.sweeps > 0 {
		p.group.finish(w)
		return
	}
	if p.relaxes {
		old := w.cur
		w.cur, w.iterate = w.next, w.iterate+1
		w.relaxed += uint64(w.block.layout.Points())
		w.meter.end(!p.gather || w.rhythm.every < meterSweeps)
		switch {
		case sameArray(old, w.frozen) && w.spare == nil:
			w.next = w.newArray()
		case sameArray(old, w.frozen):
			w.next, w.spare = w.spare, nil
		default:
			w.next = old
		}
	}
	if p.gather {
		p.gather = false
		sum := p.collect()
		w.end.measured(&sum)
	}
}

// measureNow measures the residual of an array at once.
func (p *pass) measureNow(array []float64) kernel.Sum {
	p.beginMeasure(array)
	for p.at < len(p.steps) {
		p.current = p.steps[p.at]
		p.at++
		p.plane = p.current.box
		p.w.exec.For(p.current.chunks, p.run)
	}
	p.steps, p.array, p.gather, p.at = nil, nil, false, 0
	return p.collect()
}

// freeze keeps the current iterate as the block of a snapshot, without copying.
func (w *Worker) freeze() {
	w.thaw()
	w.frozen, w.frozenAt = w.cur, w.iterate
}

// thaw gives the frozen block's array back.
func (w *Worker) thaw() {
	if w.frozen != nil && !sameArray(w.frozen, w.cur) {
		w.spare = w.frozen
	}
	w.frozen = nil
}

// halt lets the sweeps in progress finish.
func (w *Worker) halt() Iteration {
	switch {
	case w.pass.group.sweeps > 0:
		return w.iterate + Iteration(w.pass.group.sweeps)
	case w.pass.sweeping():
		return w.iterate + 1
	}
	return w.iterate
}

// magnitudes are those of the array that the last pass read: before the next one it holds
// the same values.
func (w *Worker) magnitudes() kernel.Sum {
	return w.block.magnitudes(w.measured, w.block.layout.Interior())
}

func (w *Worker) packFrozen(i int, dst []byte) { w.faces[i].pack(dst, w.frozen) }
