package richardson

import (
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Halo passes in a halo, the values of the neighbour's outermost layer as little-endian float64; see
// iterate.Peer.
func (w *worker) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	c, s, err := w.HaloFrom(q, label, data, w.pass.sweeping())
	if c == nil {
		return err
	}
	w.readGhosts()
	return c.Store(tag, s, w.Steps.Parity)
}

// Pack writes the halo of an OpSend; see iterate.Peer.
func (w *worker) Pack(op iterate.Op, dst []byte) {
	f := w.faceOf(op.To)
	if f == nil || op.Kind != iterate.OpSend {
		return
	}
	if op.Label == f.packedAs && len(f.packed) == len(dst) {
		copy(dst, f.packed)
		return
	}
	// The other array holds the newer iterate during a sweep and the older one between two sweeps.
	src := w.cur
	if _, _, sweep := iterate.UnpackLabel(op.Label); sweep != w.Iterate {
		src = w.next
	}
	f.pack(dst, src, f.base)
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

// readGhosts reads the halos of the pass in progress unless that is done. Next leaves this to the first
// relaxation, whose thread then has the block in its caches. It must precede any change of the slots.
func (w *worker) readGhosts() {
	if w.ghostsPending {
		w.ghostsPending = false
		w.unpackGhosts()
	}
}

// unpackGhosts copies the newest readable halos to the ghosts of the current iterate. Later arrivals are
// read by the next sweep.
func (w *worker) unpackGhosts() {
	for _, f := range w.faces {
		if s := f.Pick(w.Iterate); s != nil {
			f.unpack(w.cur, s.Data, f.ghost)
		}
	}
}

// unpackCaptured copies the captured halos of a snapshot to the ghosts of the captured block. If that is the
// current iterate, unpackGhosts of the next sweep overwrites them.
func (w *worker) unpackCaptured() {
	for _, f := range w.faces {
		f.unpack(w.captured, f.Agreed.Data, f.ghost)
	}
}
