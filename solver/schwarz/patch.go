package schwarz

import (
	"encoding/binary"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// patch is what two peers whose regions meet exchange: own points that the other one
// reads, and its points that this one reads.
type patch struct {
	*iterate.Channel
	agreement *iterate.Channel // the agreement session with that peer; nil: there is none
	send      kernel.Box       // in the own box's layout
	recv      kernel.Box       // in the region's, ghosts among them
	header    int              // bytes before the values: the number of the last correction in them

	read         iterate.Iteration // label that the last relaxation read
	hasRead      bool              // one has been read in this step
	hasStepStart bool              // what the time step starts from has come
}

// newPatch is the patch between the peer of region g and peer q, in a grid of n points. header bytes stand before
// the values.
func newPatch(g *region, part problem.Partition, q iterate.Rank, overlap int, n [3]int, s iterate.Scheme, header int) *patch {
	theirs := part.Box(q)
	p := &patch{
		send:   shifted(intersection(g.own, grown(theirs, overlap+1, n)), g.own.Lo),
		recv:   g.within(intersection(theirs, grown(g.own, overlap+1, n))),
		header: header,
	}
	// Both ways have the same length, as the slots of a session do: what the longer one needs.
	p.Channel = iterate.NewChannel(q, header+8*max(p.send.Points(), p.recv.Points()), s)
	return p
}

// begin forgets the values of the step before; what has come of the new one stays.
func (p *patch) begin(step int) {
	p.Channel.Begin(step)
	p.hasRead, p.hasStepStart = false, false
}

// partBits of a label count the cycles of a local solve where values are sent while it
// is going on; the iterate is above them.
const partBits = 12

func (w *peer) patchOf(q iterate.Rank) *patch {
	for _, p := range w.patches {
		if p.Rank == q {
			return p
		}
	}
	return nil
}

// Halo tells that the slot of (q, tag) now holds data: the values of the peer's points
// that this one reads, [z][y][x], little endian, of age label. The rules are those of
// Worker.Halo.
func (w *peer) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	c, s, err := w.HaloFrom(q, label, data, false)
	if c == nil {
		return err
	}
	return c.Store(tag, s, w.Steps.Parity)
}

// Pack writes what op, an OpSend, asks for: op.Bytes bytes.
func (w *peer) Pack(op iterate.Op, dst []byte) {
	p := w.patchOf(op.To)
	if p == nil || op.Kind != iterate.OpSend {
		return
	}
	if p.header > 0 {
		binary.LittleEndian.PutUint64(dst, w.coarse.inIterate)
	}
	_, _, label := iterate.UnpackLabel(op.Label)
	values := dst[p.header : p.header+8*p.send.Points()]
	clear(dst[len(values)+p.header:])
	switch k := label >> p.LabelShift; {
	case label != k<<p.LabelShift: // of a local solve that is going on
		if p.header > 0 {
			binary.LittleEndian.PutUint64(dst, w.coarse.inWork)
		}
		b := p.send
		for a := range 3 {
			b.Lo[a], b.Hi[a] = b.Lo[a]+w.inside.Lo[a], b.Hi[a]+w.inside.Lo[a]
		}
		w.layout.Pack(values, w.work, b)
	case k == w.Iterate:
		w.ownPart.Pack(values, w.cur, p.send)
	default:
		w.ownPart.Pack(values, w.next, p.send) // the older one
	}
}

// assemble brings own points and the newest values of all peers together in the working
// array; readable must hold. It tells whether anything is newer than what the last
// relaxation read.
func (w *peer) assemble() (news bool) {
	w.copyOwn(w.work, w.cur)
	if w.patchHeader() > 0 {
		w.coarse.inWork = w.coarse.newest
		w.coarse.catchUpOwn(w)
	}
	for _, p := range w.patches {
		s := p.Pick(w.Iterate)
		news = news || !p.hasRead || s.Label > p.read
		p.hasRead, p.read = true, s.Label
		w.layout.Unpack(w.work, s.Data[p.header:p.header+8*p.recv.Points()], p.recv)
		if p.header > 0 {
			w.coarse.catchUp(w, p.recv, binary.LittleEndian.Uint64(s.Data))
		}
	}
	return news
}

// copyOwn writes the own points of src, an array of the own box, to an array of the
// region.
func (w *peer) copyOwn(dst, src []float64) {
	n, lo := w.ownPart.N, w.inside.Lo
	for z := range n[2] {
		for y := range n[1] {
			from := w.ownPart.Index(0, y, z)
			copy(dst[w.layout.Index(lo[0], lo[1]+y, lo[2]+z):], src[from:from+n[0]])
		}
	}
}

// takeOwn is the inverse of copyOwn.
func (w *peer) extractOwn(dst, src []float64) {
	n, lo := w.ownPart.N, w.inside.Lo
	for z := range n[2] {
		for y := range n[1] {
			from := w.layout.Index(lo[0], lo[1]+y, lo[2]+z)
			copy(dst[w.ownPart.Index(0, y, z):], src[from:from+n[0]])
		}
	}
}
