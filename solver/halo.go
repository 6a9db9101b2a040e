package solver

import (
	"fmt"
	"time"
)

// Halo tells that the slot of (neighbour, tag) now holds data, the whole face as
// little-endian float64, of age label (its oldest segment). data is only read
// before the next call of Halo for the same slot: the shell keeps one buffer a
// slot and receives into it, and calls Halo before anything else afterwards. The
// error names q; the run cannot go on after one.
func (w *Worker) Halo(_ time.Duration, q Rank, tag uint32, label uint64, data []byte) error {
	f := w.faceOf(q)
	if f == nil {
		return fmt.Errorf("solver: a face from rank %d, which is no neighbour of rank %d", q, w.config.Rank)
	}
	step, age, sweep := unpackLabel(label)
	if step < w.steps.at {
		w.steps.stale++
		return nil
	}
	if step > min(w.steps.at+1, w.steps.of) || inLockstep(f.scheme) && sweep > w.reach(step) {
		return fmt.Errorf("solver: a face from rank %d: iterate %d of step %d, which it cannot have made: this peer is at %d of step %d",
			q, sweep, step, w.iterate, w.steps.at)
	}
	if step == w.steps.at && age > f.age+1 {
		return fmt.Errorf("solver: a face from rank %d beyond %d moves of the cut; there have been %d", q, age, f.age)
	}
	w.readGhosts()
	return f.arrived(tag, slot{step: step, age: age, label: sweep, data: data}, w.steps.parity)
}

// reach is the newest iterate of a time step that a neighbour in lockstep can have
// made: to make iterate k+1 it needs iterate k of this peer, which leaves before the
// sweep that makes it has ended.
func (w *Worker) reach(step int) Iteration {
	switch {
	case step > w.steps.at:
		return 0
	case w.pass.sweeping():
		return w.iterate + 2
	}
	return w.iterate + 1
}

// A halo's label holds the iterate of a time step, above it how often the cut between
// the two peers had moved in that step, and on top the step, 0 in a stationary run. So
// a face that is put together from several is as old as the oldest of them.
const (
	sweepBits = 36
	ageBits   = 7
	mostAge   = 1<<ageBits - 1
)

func packLabel(step, age int, sweep Iteration) uint64 {
	return uint64(step)<<(sweepBits+ageBits) | uint64(age)<<sweepBits | uint64(sweep)
}

func unpackLabel(label uint64) (step, age int, sweep Iteration) {
	return int(label >> (sweepBits + ageBits)), int(label>>sweepBits) & mostAge, Iteration(label & (1<<sweepBits - 1))
}

// Expects returns the tag of the next face from q, and reports whether its slot may be written
// before the face is received: see exchange.Expecter. In lockstep iterates k and k+2 share a
// slot, and no other relaxation than k reads iterate k.
func (w *Worker) Expects(q Rank) (tag uint32, ok bool) {
	f := w.faceOf(q)
	if f == nil || f.scheme.Asynchronous() || len(f.slots) != 2 || f.step != w.steps.at {
		return 0, false
	}
	newest, next := &f.slots[0], &f.slots[1]
	if next.have && newest.older(next) || !newest.have {
		newest, next, tag = next, newest, 0
	} else {
		tag = 1
	}
	if !newest.have || newest.step != w.steps.at {
		return 0, false
	}
	read := !next.have || next.label < w.iterate || next.label == w.iterate && w.pass.sweeping() && !w.unread
	return tag, read
}

// Pack writes the face that op, an OpSend, asks for: op.Bytes bytes.
func (w *Worker) Pack(op Op, dst []byte) {
	f := w.faceOf(op.To)
	if f == nil || op.Kind != OpSend {
		return
	}
	if op.Label == f.packedAs && len(f.packed) == len(dst) {
		copy(dst, f.packed)
		return
	}
	// The other array holds the newer iterate during a sweep, the older one
	// between two.
	src := w.cur
	if _, _, sweep := unpackLabel(op.Label); sweep != w.iterate {
		src = w.next
	}
	f.pack(dst, src)
}

// sendOp is the operation that sends iterate label of a face.
func (w *Worker) sendOp(now time.Duration, f *face, label Iteration) Op {
	f.lastSent, f.sent = now, true
	return Op{
		Kind: OpSend, To: f.to.Rank, Bytes: f.to.FaceBytes, Label: packLabel(w.steps.at, f.age, label),
		Tag: uint32(uint64(w.steps.parity+label) % uint64(len(f.slots))),
	}
}

// readable tells whether relaxation iterate may read something of every neighbour.
func (w *Worker) readable() bool {
	for _, f := range w.faces {
		if f.pick(w.iterate) == nil {
			return false
		}
	}
	return true
}

// readGhosts does what Next has left to the relaxation that it asked for: its thread then has
// the block in its caches. It comes before anything that changes what is read.
func (w *Worker) readGhosts() {
	if w.unread {
		w.unread = false
		w.unpackGhosts()
	}
}

// unpackGhosts brings the newest readable faces to the ghosts of the current
// iterate; readable must hold. Arrivals after that wait for the next sweep.
func (w *Worker) unpackGhosts() {
	for _, f := range w.faces {
		if s := f.pick(w.iterate); s != nil {
			f.unpack(w.cur, s.data)
		}
	}
}

// unpackFrozen brings the frozen faces of a snapshot to the ghosts of the frozen
// block. If that is the current iterate, the next sweep's unpackGhosts repairs it.
func (w *Worker) unpackFrozen() {
	for _, f := range w.faces {
		f.unpack(w.frozen, f.agreed.data)
	}
}

// wait repeats the newest faces when they are due (asynchronous sessions lose),
// and otherwise waits, at most until that is so.
func (w *Worker) wait(now time.Duration) Op {
	until := time.Duration(0)
	for _, f := range w.faces {
		if !f.scheme.Asynchronous() {
			continue
		}
		if f.repeatOlder {
			f.repeatOlder = false
			return w.sendOp(now, f, w.iterate-1)
		}
		if !f.sent {
			continue
		}
		due := f.lastSent + w.config.Repeat
		if now >= due {
			// In lockstep the neighbour may still need the iterate before, unless the cut
			// has moved since: then it was there.
			f.repeatOlder = w.iterate > f.movedAt && inLockstep(f.scheme)
			return w.sendOp(now, f, w.iterate)
		}
		if until == 0 || due < until {
			until = due
		}
	}
	return Op{Kind: OpWait, Until: until}
}
