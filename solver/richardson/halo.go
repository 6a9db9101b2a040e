package richardson

import (
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Halo tells that the slot of (neighbour, tag) now holds data, the whole face as
// little-endian float64, of age label (its oldest segment). data is only read
// before the next call of Halo for the same slot: the shell keeps one buffer a
// slot and receives into it, and calls Halo before anything else afterwards. The
// error names q; the run cannot go on after one.
func (w *worker) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	c, s, err := w.HaloFrom(q, label, data, w.pass.sweeping())
	if c == nil {
		return err
	}
	w.readGhosts()
	return c.Store(tag, s, w.Steps.Parity)
}

// Expects returns the tag of the next face from q, and reports whether its slot may be written
// before the face is received: see exchange.Expecter. In lockstep iterates k and k+2 share a
// slot, and no other relaxation than k reads iterate k.
func (w *worker) Expects(q iterate.Rank) (tag uint32, ok bool) {
	f := w.faceOf(q)
	if f == nil {
		return 0, false
	}
	return w.Coordination.Expects(f.Channel, w.pass.sweeping() && !w.ghostsPending)
}

// Pack writes the face that op, an OpSend, asks for: op.Bytes bytes.
func (w *worker) Pack(op iterate.Op, dst []byte) {
	f := w.faceOf(op.To)
	if f == nil || op.Kind != iterate.OpSend {
		return
	}
	if op.Label == f.packedAs && len(f.packed) == len(dst) {
		copy(dst, f.packed)
		return
	}
	// The other array holds the newer iterate during a sweep, the older one
	// between two.
	src := w.cur
	if _, _, sweep := iterate.UnpackLabel(op.Label); sweep != w.Iterate {
		src = w.next
	}
	f.pack(dst, src)
}

// faceOf returns the face shared with a neighbour, nil if there is none.
func (w *worker) faceOf(q iterate.Rank) *face {
	for _, f := range w.faces {
		if f.Rank == q {
			return f
		}
	}
	return nil
}

// readGhosts does what Next has left to the relaxation that it asked for: its thread then has
// the block in its caches. It comes before anything that changes what is read.
func (w *worker) readGhosts() {
	if w.ghostsPending {
		w.ghostsPending = false
		w.unpackGhosts()
	}
}

// unpackGhosts brings the newest readable faces to the ghosts of the current
// iterate; readable must hold. Arrivals after that wait for the next sweep.
func (w *worker) unpackGhosts() {
	for _, f := range w.faces {
		if s := f.Pick(w.Iterate); s != nil {
			f.unpack(w.cur, s.Data)
		}
	}
}

// unpackFrozen brings the frozen faces of a snapshot to the ghosts of the frozen
// block. If that is the current iterate, the next sweep's unpackGhosts repairs it.
func (w *worker) unpackCaptured() {
	for _, f := range w.faces {
		f.unpack(w.captured, f.Agreed.Data)
	}
}
