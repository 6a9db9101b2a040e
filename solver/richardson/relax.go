package richardson

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pass is one pass over the block: a sweep, a sweep that measures, several sweeps in time tiles, or a
// measurement of an array.
type pass struct {
	w            *worker
	sweep        []problem.SweepStep // planned once
	measure      []problem.SweepStep
	steps        []problem.SweepStep // of the pass in progress; nil between passes
	at           int
	relaxes      bool
	norms        []kernel.Norm // one a chunk
	measures     bool          // the pass measures
	relaxedAhead bool          // all of its parts are relaxed, before Next has returned operations for them
	array        []float64     // what is read
	initial      bool          // iterate 0 has yet to be sent
	current      problem.SweepStep
	run          func(i int) // bound once, because a closure in every call would allocate
	plane        kernel.Box
	tiled        tiledPass
}

func (p *pass) init(w *worker) {
	p.w = w
	p.sweep = planSweep(w.block.Layout, w.faces, w.config.Order, w.config.Late)
	p.measure = planSweep(w.block.Layout, nil, problem.Jacobi, false)
	most := 1
	for _, s := range slices.Concat(p.sweep, p.measure) {
		most = max(most, s.Chunks)
	}
	p.norms = make([]kernel.Norm, most)
	p.run = p.runChunk
}

// begin is called at the beginning of the run or of a time step.
func (p *pass) begin() {
	p.abandon()
	p.collect() // discard an unfinished measurement
	p.at, p.initial = 0, p.w.config.Scheme.Lockstep()
}

func (p *pass) sweeping() bool { return p.steps != nil && p.relaxes }

func (p *pass) beginSweep(measure bool) {
	if !measure && p.tiled.begin(p.w) {
		p.steps, p.at = p.tiled.steps, 0
		p.relaxes, p.measures = true, false
		return
	}
	p.steps, p.at = p.sweep, 0
	p.relaxes, p.measures = true, measure
	p.array, p.relaxedAhead = p.w.cur, false
	p.w.speed.begin()
}

func (p *pass) beginMeasure(array []float64) {
	p.steps, p.at = p.measure, 0
	p.relaxes, p.measures = false, true
	p.array, p.relaxedAhead = array, false
}

// abandon drops an unfinished pass. The current iterate is intact.
func (p *pass) abandon() {
	p.steps, p.array = nil, nil
	p.measures = false
	p.tiled.sweeps = 0
	p.w.ghostsPending = false
}

// next returns the next operation of the pass in progress, false if there is none.
func (p *pass) next(now time.Duration) (iterate.Op, bool) {
	w := p.w
	for p.initial && w.stepper != nil {
		// In lockstep every peer needs the first iterate of its neighbours. p.at counts the halos sent.
		if p.at == len(w.faces) {
			p.initial, p.at = false, 0
			break
		}
		p.at++
		if f := w.faces[p.at-1]; !f.Opened {
			return w.SendOp(now, f.Channel, w.Iterate), true
		}
	}
	for p.steps != nil {
		if p.at == len(p.steps) {
			p.finish()
			break
		}
		s := &p.steps[p.at]
		if !s.Send {
			w.speed.requestedAt = now
			return iterate.Op{Kind: iterate.OpRelax, Part: s.Part, Points: s.Points}, true
		}
		p.at++
		if label := w.Iterate + 1; !w.Rule.SkipSend(label) {
			return w.SendOp(now, w.Channels[s.Face], label), true
		}
	}
	return iterate.Op{}, false
}

// Relax carries out an OpRelax; see iterate.Peer.
func (w *worker) Relax(op iterate.Op) {
	p := &w.pass
	if op.Kind != iterate.OpRelax || p.at >= len(p.steps) || p.steps[p.at].Send || p.steps[p.at].Part != op.Part {
		return
	}
	w.readGhosts()
	p.current = p.steps[p.at]
	p.at++
	w.speed.pendingPoints = op.Points
	switch {
	case p.tiled.sweeps > 0:
		p.tiled.relax(w, p.current.Part)
	case !p.relaxedAhead:
		p.relax()
	}
}

// RelaxAhead is Relax for a caller in virtual time. With the first part of a pass it relaxes all others, while the
// block is in the processor's caches. Next still returns an operation for every part, and the caller observes
// no difference.
func (w *worker) RelaxAhead(op iterate.Op) {
	p := &w.pass
	if p.at == 0 && p.steps != nil && p.tiled.sweeps == 0 && !p.relaxedAhead {
		w.readGhosts()
		p.relaxAll()
	}
	w.Relax(op)
}

// relaxAll relaxes all parts of the pass and packs faces whose values are far apart in memory. A pass that does
// not measure is not divided into parts, which makes rows longer.
func (p *pass) relaxAll() {
	w := p.w
	p.relaxedAhead = true
	if p.relaxes && !p.measures && w.config.Order == problem.Jacobi {
		w.stepper.Relax(w.next, w.cur, w.cur, w.block.Layout.Interior())
	} else {
		for _, s := range p.steps {
			if !s.Send {
				p.current = s
				p.relax()
			}
		}
	}
	for _, f := range w.faces {
		if p.relaxes && f.to.Axis == 0 {
			f.packAhead(iterate.PackLabel(w.Steps.Current, f.BoundaryMoves, w.Iterate+1), w.next)
		}
	}
}

// relax relaxes or measures the current part. In the order in-turn it relaxes planes in ascending order, and the
// executor divides each plane.
func (p *pass) relax() {
	b := p.current.Box
	p.plane = b
	if !p.relaxes || p.w.config.Order != problem.InTurn {
		p.w.exec.For(p.current.Chunks, p.run)
		return
	}
	slow := p.w.block.Layout.Dim - 1
	for z := b.Lo[slow]; z < b.Hi[slow]; z++ {
		p.plane.Lo[slow], p.plane.Hi[slow] = z, z+1
		p.w.exec.For(p.current.Chunks, p.run)
	}
}

// runChunk relaxes or measures chunk i of the current part.
func (p *pass) runChunk(i int) {
	w := p.w
	b := problem.Chunk(p.plane, p.current.Axis, i, p.current.Chunks)
	switch {
	case !p.relaxes:
		w.stepper.Residual(&p.norms[i], p.array, b)
	case w.config.Order == problem.InTurn:
		below := w.next
		if b.Lo[w.block.Layout.Dim-1] == 0 {
			below = w.cur // the values below the first plane are the neighbour's
		}
		w.stepper.Relax(w.next, below, w.cur, b)
		if p.measures {
			w.stepper.Residual(&p.norms[i], w.cur, b)
		}
	case p.measures:
		w.stepper.RelaxResidual(&p.norms[i], w.next, w.cur, b)
	default:
		w.stepper.Relax(w.next, w.cur, w.cur, b)
	}
}

// collect returns the sum of the measurements of all chunks and resets them.
func (p *pass) collect() kernel.Sum {
	var sum kernel.Sum
	for i := range p.norms {
		sum.Merge(&p.norms[i].Squares)
		p.norms[i].Reset()
	}
	return sum
}

// finish ends the pass: the result of a sweep becomes the current iterate. If a snapshot holds the old array, the
// third one takes its place.
func (p *pass) finish() {
	w := p.w
	w.measured = p.array
	p.steps, p.array = nil, nil
	if p.tiled.sweeps > 0 {
		p.tiled.finish(w)
		return
	}
	if p.relaxes {
		old := w.cur
		w.cur, w.Iterate = w.next, w.Iterate+1
		w.relaxedPoints += uint64(w.block.Layout.Points())
		w.speed.end(!p.measures || w.Checks.Every < windowSweeps)
		switch {
		case problem.SameArray(old, w.captured) && w.spare == nil:
			w.next = w.newArray()
		case problem.SameArray(old, w.captured):
			w.next, w.spare = w.spare, nil
		default:
			w.next = old
		}
	}
	if p.measures {
		p.measures = false
		sum := p.collect()
		w.Rule.Measured(&sum)
	}
}

// measureNow measures the residual of an array at once.
func (p *pass) measureNow(array []float64) kernel.Sum {
	p.beginMeasure(array)
	for _, p.current = range p.steps {
		p.relax()
	}
	p.abandon()
	return p.collect()
}

// Capture implements iterate.SnapshotSource without copying: it keeps the current array.
func (w *worker) Capture() {
	w.Release()
	w.captured, w.CapturedAt = w.cur, w.Iterate
}

// Release implements iterate.SnapshotSource: the captured array can be used again.
func (w *worker) Release() {
	if w.captured != nil && !problem.SameArray(w.captured, w.cur) {
		w.spare = w.captured
	}
	w.captured = nil
}

// Halt implements iterate.SnapshotSource: sweeps in progress are finished.
func (w *worker) Halt() iterate.Iteration {
	switch {
	case w.pass.tiled.sweeps > 0:
		return w.Iterate + iterate.Iteration(w.pass.tiled.sweeps)
	case w.pass.sweeping():
		return w.Iterate + 1
	}
	return w.Iterate
}

// Magnitudes implements iterate.SnapshotSource for the array that the last pass read, which is unchanged until
// the next pass.
func (w *worker) Magnitudes() kernel.Sum {
	return w.block.Magnitudes(w.measured, w.block.Layout.Interior())
}

// PackCaptured implements iterate.SnapshotSource.
func (w *worker) PackCaptured(i int, dst []byte) { w.faces[i].pack(dst, w.captured, w.faces[i].base) }
