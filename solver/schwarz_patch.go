package solver

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// patch is what two peers whose regions meet exchange: own points that the other one
// reads, and its points that this one reads.
type patch struct {
	rank   Rank
	edge   *face // the agreement session with that peer; nil: there is none
	scheme Scheme
	send   kernel.Box // in the own box's layout
	recv   kernel.Box // in the region's, ghosts among them
	header int        // bytes before the values: the number of the last correction in them
	slots  []slot
	step   int // time step in progress

	lastSent    time.Duration
	sent        bool // something was sent, so there is something to repeat
	repeatOlder bool // lockstep over a lossy channel: the older values come next

	read  Iteration // label that the last relaxation read
	known bool      // one has been read in this step
	past  bool      // what the time step starts from has come
}

// newPatch is the patch between the peer of region g and peer q, in a grid of n points.
func newPatch(g *region, part Partition, q Rank, overlap int, n [3]int, s Scheme) *patch {
	theirs := part.Box(q)
	return &patch{
		rank: q, scheme: s, slots: make([]slot, s.Slots()),
		send: shifted(overlapping(g.own, grow(theirs, overlap+1, n)), g.own.Lo),
		recv: g.within(overlapping(theirs, grow(g.own, overlap+1, n))),
	}
}

// bytes is the length of a message, the same both ways, as the slots of a session are: what
// the longer one needs.
func (p *patch) bytes() int { return p.header + 8*max(p.send.Points(), p.recv.Points()) }

// begin forgets the values of the step before; what has come of the new one stays.
func (p *patch) begin(step int) {
	p.step, p.sent, p.repeatOlder, p.known, p.past = step, false, false, false, false
}

// pick is the newest slot that relaxation k may read, nil if none has come.
func (p *patch) pick(k Iteration, flexible bool) *slot {
	var best *slot
	for i := range p.slots {
		s := &p.slots[i]
		if s.have && s.step == p.step && p.scheme.Admit(k, iterateOf(s.label, flexible), p.rank) && (best == nil || s.label > best.label) {
			best = s
		}
	}
	return best
}

// partBits of a label count the cycles of a local solve where values are sent while it
// is going on; the iterate is above them.
const partBits = 12

// whole is the iterate of a label.
func iterateOf(label Iteration, flexible bool) Iteration {
	if flexible {
		return label >> partBits
	}
	return label
}

func (w *schwarz) patchOf(q Rank) *patch {
	for _, p := range w.patches {
		if p.rank == q {
			return p
		}
	}
	return nil
}

// Halo tells that the slot of (q, tag) now holds data: the values of the peer's points
// that this one reads, [z][y][x], little endian, of age label. The rules are those of
// Worker.Halo.
func (w *schwarz) Halo(_ time.Duration, q Rank, tag uint32, label uint64, data []byte) error {
	p := w.patchOf(q)
	if p == nil {
		return fmt.Errorf("solver: values from rank %d, whose box rank %d does not reach", q, w.config.Rank)
	}
	step, age, at := unpackLabel(label)
	if age != 0 {
		return fmt.Errorf("solver: values from rank %d belong to a cut that has moved, which this method's do not", q)
	}
	if step < w.steps.at {
		w.steps.stale++
		return nil
	}
	reach := w.iterate + 1 // it needs iterate k of this peer to make k+1
	if step > w.steps.at {
		reach = 0
	}
	if step > min(w.steps.at+1, w.steps.of) || inLockstep(p.scheme) && at > reach {
		return fmt.Errorf("solver: values from rank %d: iterate %d of step %d, which it cannot have made: this peer is at %d of step %d",
			q, at, step, w.iterate, w.steps.at)
	}
	if int64(tag) >= int64(len(p.slots)) {
		return fmt.Errorf("solver: values of rank %d came under tag %d; there are %d slots", q, tag, len(p.slots))
	}
	if len(data) != p.bytes() {
		return fmt.Errorf("solver: rank %d sent %d bytes; they must be %d: do both peers use the same partition, overlap and method?",
			q, len(data), p.bytes())
	}
	if step == p.step && w.tagOf(at, p) != tag {
		return fmt.Errorf("solver: rank %d sent iterate %d under tag %d of %d", q, at, tag, len(p.slots))
	}
	if old := &p.slots[tag]; inLockstep(p.scheme) && old.have && (step < old.step || step == old.step && at < old.label) {
		return fmt.Errorf("solver: rank %d sent iterate %d after %d", q, at, old.label)
	}
	p.slots[tag] = slot{have: true, step: step, label: at, data: data}
	return nil
}

// tagOf is the slot that values of a label travel in.
func (w *schwarz) tagOf(label Iteration, p *patch) uint32 {
	return uint32(uint64(w.steps.parity+iterateOf(label, w.flexible())) % uint64(len(p.slots)))
}

// sendOp is the operation that sends values of a label: an iterate, or a part of the
// next one.
func (w *schwarz) sendOp(now time.Duration, p *patch, label Iteration) Op {
	p.lastSent, p.sent = now, true
	return Op{Kind: OpSend, To: p.rank, Bytes: p.bytes(), Label: packLabel(w.steps.at, 0, label), Tag: w.tagOf(label, p)}
}

// label is that of a whole iterate.
func (w *schwarz) label(k Iteration) Iteration {
	if w.flexible() {
		return k << partBits
	}
	return k
}

// Pack writes what op, an OpSend, asks for: op.Bytes bytes.
func (w *schwarz) Pack(op Op, dst []byte) {
	p := w.patchOf(op.To)
	if p == nil || op.Kind != OpSend {
		return
	}
	if p.header > 0 {
		binary.LittleEndian.PutUint64(dst, w.coarse.in)
	}
	_, _, label := unpackLabel(op.Label)
	values := dst[p.header : p.header+8*p.send.Points()]
	clear(dst[len(values)+p.header:])
	switch k := iterateOf(label, w.flexible()); {
	case label != w.label(k): // of a local solve that is going on
		if p.header > 0 {
			binary.LittleEndian.PutUint64(dst, w.coarse.at)
		}
		b := p.send
		for a := range 3 {
			b.Lo[a], b.Hi[a] = b.Lo[a]+w.inside.Lo[a], b.Hi[a]+w.inside.Lo[a]
		}
		w.layout.Pack(values, w.work, b)
	case k == w.iterate:
		w.ownPart.Pack(values, w.cur, p.send)
	default:
		w.ownPart.Pack(values, w.next, p.send) // the older one
	}
}

// readable tells whether relaxation iterate may read something of every peer.
func (w *schwarz) readable() bool {
	for _, p := range w.patches {
		if p.pick(w.iterate, w.flexible()) == nil {
			return false
		}
	}
	return true
}

// wait repeats the newest values when they are due (asynchronous sessions lose), and
// otherwise waits, at most until that is so.
func (w *schwarz) wait(now time.Duration) Op {
	until := time.Duration(0)
	for _, p := range w.patches {
		if !p.scheme.Asynchronous() {
			continue
		}
		if p.repeatOlder {
			p.repeatOlder = false
			return w.sendOp(now, p, w.label(w.iterate-1))
		}
		if !p.sent {
			continue
		}
		due := p.lastSent + w.config.Repeat
		if now >= due {
			// In lockstep the other peer may still need the iterate before.
			p.repeatOlder = w.iterate > 0 && inLockstep(p.scheme)
			return w.sendOp(now, p, w.label(w.iterate))
		}
		if until == 0 || due < until {
			until = due
		}
	}
	return Op{Kind: OpWait, Until: until}
}

// assemble brings own points and the newest values of all peers together in the working
// array; readable must hold. It tells whether anything is newer than what the last
// relaxation read.
func (w *schwarz) assemble() (news bool) {
	w.copyOwn(w.work, w.cur)
	if w.patchHeader() > 0 {
		w.coarse.at = w.coarse.newest
		w.coarse.catchUpOwn(w)
	}
	for _, p := range w.patches {
		s := p.pick(w.iterate, w.flexible())
		news = news || !p.known || s.label > p.read
		p.known, p.read = true, s.label
		w.layout.Unpack(w.work, s.data[p.header:p.header+8*p.recv.Points()], p.recv)
		if p.header > 0 {
			w.coarse.catchUp(w, p.recv, binary.LittleEndian.Uint64(s.data))
		}
	}
	return news
}

// copyOwn writes the own points of src, an array of the own box, to an array of the
// region.
func (w *schwarz) copyOwn(dst, src []float64) {
	n, lo := w.ownPart.N, w.inside.Lo
	for z := range n[2] {
		for y := range n[1] {
			from := w.ownPart.Index(0, y, z)
			copy(dst[w.layout.Index(lo[0], lo[1]+y, lo[2]+z):], src[from:from+n[0]])
		}
	}
}

// takeOwn is the inverse of copyOwn.
func (w *schwarz) takeOwn(dst, src []float64) {
	n, lo := w.ownPart.N, w.inside.Lo
	for z := range n[2] {
		for y := range n[1] {
			from := w.layout.Index(lo[0], lo[1]+y, lo[2]+z)
			copy(dst[w.ownPart.Index(0, y, z):], src[from:from+n[0]])
		}
	}
}
