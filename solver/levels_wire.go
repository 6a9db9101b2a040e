package solver

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// cargo is what a message between two neighbours carries.
type cargo int

const (
	cargoGhosts cargo = iota // values for the other's ghosts, both ways
	cargoSums                // exact sums below, from a child in the tree to its parent
	cargoTotal               // what they come to, from the parent
	cargoGather              // values of a level, to the parent
	cargoSpread              // that level's, from the parent
	cargoKinds
)

// wire is the traffic with one neighbour. Messages of each cargo are numbered from 0,
// which is their label, and message n goes under tag 2·cargo + n mod 2: since message
// n+1 is sent after message n of the other end was read (or answers it), a neighbour is
// one message ahead at most, and two slots are enough.
type wire struct {
	to   Neighbour
	link Link
	sent [cargoKinds]uint64
	read [cargoKinds]uint64
	slot [cargoKinds][2]arrival
}

// arrival is a message that has come; data aliases the shell's buffer.
type arrival struct {
	have bool
	data []byte
}

// sumsBytes is more than sums, or their totals, take.
const sumsBytes = 2 + maxSums*(2+maxSumBytes)

// ghostBytes is at least what an exchange sends to a neighbour.
func (c *Config) ghostBytes(n Neighbour) int { return n.FaceBytes }

// gatherBytes is at least what a gathered level takes; 0: none is.
func (c *Config) gatherBytes() int { return 0 }

// wire is the link between two neighbours. Both ends declare the same slots.
func (c *Config) wire(rank Rank, n Neighbour) Link {
	lengths := []int{c.ghostBytes(n)}
	if parentOf(c.Partition, rank) == n.Rank || parentOf(c.Partition, n.Rank) == rank {
		lengths = append(lengths, sumsBytes, sumsBytes)
		if gathered := c.gatherBytes(); gathered > 0 {
			lengths = append(lengths, gathered, gathered)
		}
	}
	l := Link{Rank: n.Rank}
	for _, b := range lengths {
		l.Slots = append(l.Slots, b, b)
	}
	l.Sent = l.Slots
	return l
}

// Halo takes a message in; see Peer.
func (g *Levels) Halo(_ time.Duration, q Rank, tag uint32, label uint64, data []byte) error {
	w := g.wireOf(q)
	if w == nil {
		return fmt.Errorf("solver: a message from rank %d, which is no neighbour of rank %d", q, g.config.Rank)
	}
	if int64(tag) >= int64(len(w.link.Slots)) || len(data) > w.link.Slots[tag] {
		return fmt.Errorf("solver: a message of %d bytes from rank %d under tag %d: do both peers use the same partition and method?", len(data), q, tag)
	}
	kind := cargo(tag / 2)
	upward, downward := kind == cargoSums || kind == cargoGather, kind == cargoTotal || kind == cargoSpread
	if upward && g.tree.child(q) < 0 || downward && g.tree.parent != q {
		return fmt.Errorf("solver: rank %d sent cargo %d, which goes the other way in the tree", q, kind)
	}
	if label%2 != uint64(tag%2) || label < w.read[kind] || label > w.read[kind]+1 || w.slot[kind][label%2].have {
		return fmt.Errorf("solver: rank %d sent message %d of cargo %d while number %d is due", q, label, kind, w.read[kind])
	}
	w.slot[kind][label%2] = arrival{have: true, data: data}
	return nil
}

func (g *Levels) wireOf(q Rank) *wire {
	for _, w := range g.wires {
		if w.to.Rank == q {
			return w
		}
	}
	return nil
}

// next is the message that is due, false while it has not come.
func (w *wire) next(k cargo) ([]byte, bool) {
	a := w.slot[k][w.read[k]%2]
	return a.data, a.have
}

// taken says that the message that was due has been read.
func (w *wire) taken(k cargo) {
	w.slot[k][w.read[k]%2].have = false
	w.read[k]++
}

// send is the operation that sends a cargo.
func (w *wire) send(k cargo, bytes int) Op {
	n := w.sent[k]
	w.sent[k]++
	return Op{Kind: OpSend, To: w.to.Rank, Tag: uint32(2*int(k)) + uint32(n%2), Label: n, Bytes: bytes}
}

// packing is what the next Pack writes: a leg of an exchange, or bytes.
type packing struct {
	x     *exchange
	leg   int
	bytes []byte
}

// Pack writes what op, an OpSend, asks for.
func (g *Levels) Pack(op Op, dst []byte) {
	if op.Kind != OpSend {
		return
	}
	if g.packs.x != nil {
		g.packs.x.pack(dst, g.packs.leg)
		return
	}
	copy(dst, g.packs.bytes)
}

// sendLeg sends a leg, if there is anything to send.
func (g *Levels) sendLeg(x *exchange, leg int) (Op, bool) {
	l := &x.legs[leg]
	if l.sendBytes == 0 {
		return Op{}, false
	}
	g.packs = packing{x: x, leg: leg}
	return l.wire.send(cargoGhosts, l.sendBytes), true
}

func (g *Levels) sendBytes(w *wire, k cargo, data []byte) Op {
	g.packs = packing{bytes: data}
	return w.send(k, len(data))
}

// exchange brings own values of some arrays to the neighbours that read them as ghosts.
type exchange struct {
	grids []grid
	legs  []leg
}

// grid is an array of an exchange: index (x, y, z), own or ghost, lies where layout
// says; only points of a colour travel, all if it is negative.
type grid struct {
	array  []float64
	layout kernel.Layout
	parity int
	colour int
}

// leg is an exchange with one neighbour: for each grid what goes and what comes.
type leg struct {
	wire                 *wire
	send, receive        []kernel.Box
	sendBytes, readBytes int
}

// close counts the bytes of the legs once they are complete.
func (x *exchange) close() {
	for i := range x.legs {
		l := &x.legs[i]
		l.sendBytes, l.readBytes = 0, 0
		for k := range x.grids {
			l.sendBytes += 8 * x.grids[k].count(l.send[k])
			l.readBytes += 8 * x.grids[k].count(l.receive[k])
		}
	}
}

func (x *exchange) pack(dst []byte, leg int) {
	for k := range x.grids {
		dst = x.grids[k].pack(dst, x.legs[leg].send[k])
	}
}

// read brings what a neighbour sent to the ghosts, false while it has not come.
func (x *exchange) read(leg int) (bool, error) {
	l := &x.legs[leg]
	if l.readBytes == 0 {
		return true, nil
	}
	data, came := l.wire.next(cargoGhosts)
	if !came {
		return false, nil
	}
	if len(data) != l.readBytes {
		return false, fmt.Errorf("solver: rank %d sent %d bytes of ghosts where %d belong: do both peers use the same partition and method?",
			l.wire.to.Rank, len(data), l.readBytes)
	}
	for k := range x.grids {
		data = x.grids[k].unpack(data, l.receive[k])
	}
	l.wire.taken(cargoGhosts)
	return true, nil
}

// first is where a row begins, and how far apart its points are.
func (g *grid) first(x, y, z int) (from, stride int) {
	switch {
	case g.colour < 0:
		return x, 1
	case (x+y+z+g.parity)&1 == g.colour:
		return x, 2
	}
	return x + 1, 2
}

func (g *grid) count(b kernel.Box) int {
	n := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			n += max(0, (b.Hi[0]-from+stride-1)/stride)
		}
	}
	return n
}

func (g *grid) pack(dst []byte, b kernel.Box) []byte {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			at := g.layout.Index(from, y, z)
			for x := from; x < b.Hi[0]; x += stride {
				binary.LittleEndian.PutUint64(dst, math.Float64bits(g.array[at]))
				dst = dst[8:]
				at += stride
			}
		}
	}
	return dst
}

func (g *grid) unpack(data []byte, b kernel.Box) []byte {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			from, stride := g.first(b.Lo[0], y, z)
			at := g.layout.Index(from, y, z)
			for x := from; x < b.Hi[0]; x += stride {
				g.array[at] = math.Float64frombits(binary.LittleEndian.Uint64(data))
				data = data[8:]
				at += stride
			}
		}
	}
	return data
}
