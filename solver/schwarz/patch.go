package schwarz

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// patch is the exchange between two peers whose regions intersect: own points that the other peer reads, and
// its points that this one reads.
type patch struct {
	*iterate.Channel
	agreement *iterate.Channel // agreement session with that peer; nil: none
	send      kernel.Box       // in the own box's layout
	recv      kernel.Box       // in the region's layout, ghosts included
	// bytes before the values: the number of the last correction they include
	header int

	read         iterate.Iteration // label that the last relaxation read
	hasRead      bool              // a label was read in this step
	hasStepStart bool              // the values at the start of the time step have arrived
	values       []byte            // memory for values that arrive in pieces
}

// newPatch returns the patch between rank, whose region is g, and rank q, with header bytes before the values.
func newPatch(g *region, c *problem.Config, rank, q iterate.Rank, header int) *patch {
	theirs, reach, n := c.Partition.Box(q), c.Method.Overlap+1, c.Problem.N
	p := &patch{
		send:   intersection(g.own, grown(theirs, reach, n)).From(g.own.Lo),
		recv:   intersection(theirs, grown(g.own, reach, n)).From(g.ext.Lo),
		header: header,
	}
	// The slots of a session have one length: both directions use the longer one.
	p.Channel = iterate.NewChannel(q, header+8*max(p.send.Points(), p.recv.Points()), c.Scheme.Between(rank, q))
	return p
}

// begin discards the values of the previous step and keeps those of the new one.
func (p *patch) begin(step int) {
	p.Channel.Begin(step)
	p.hasRead, p.hasStepStart = false, false
}

// partBits is the number of bits of a label that count the cycles of a local solve in progress, for flexible
// exchange. The higher bits hold the iterate.
const partBits = 12

func (w *peer) patchOf(q iterate.Rank) *patch {
	if i := slices.IndexFunc(w.patches, func(p *patch) bool { return p.Rank == q }); i >= 0 {
		return w.patches[i]
	}
	return nil
}

// Halo records that the slot of (q, tag) holds data: the values, with label, of the peer's points that this one
// reads, [z][y][x], little endian (see iterate.Peer).
func (w *peer) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	c, s, err := w.HaloFrom(q, label, data, false)
	if c == nil {
		return err
	}
	return c.Store(tag, s, w.Steps.Parity)
}

// Pack writes the op.Bytes bytes of op, an OpSend, to dst.
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
	case label != k<<p.LabelShift: // of a local solve in progress
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

// assemble copies own points and the newest values of all peers to the working array. Readable must hold. It
// reports whether any value is newer than in the last relaxation.
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
		data := iterate.Contiguous(s.Data, &p.values)
		w.layout.Unpack(w.work, data[p.header:p.header+8*p.recv.Points()], p.recv)
		if p.header > 0 {
			w.coarse.catchUp(w, p.recv, binary.LittleEndian.Uint64(data))
		}
	}
	return news
}

// copyOwn copies the own points of src, an array of the own box, to an array of the region.
func (w *peer) copyOwn(dst, src []float64) {
	method.CopyBox(dst, w.layout, w.inside, src, w.ownPart, [3]int{})
}

// extractOwn is the inverse of copyOwn.
func (w *peer) extractOwn(dst, src []float64) {
	method.CopyBox(dst, w.ownPart, w.ownPart.Interior(), src, w.layout, w.inside.Lo)
}
