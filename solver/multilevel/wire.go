package multilevel

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// cargo is what a message between two neighbours carries.
type cargo int

const (
	cargoGhosts  cargo = iota // values for the other's ghosts, both ways
	cargoSums                 // exact sums below, from a child in the tree to its parent
	cargoTotal                // what they come to, from the parent
	cargoGather               // values of a level, to the parent
	cargoScatter              // that level's, from the parent
	cargoKinds
)

// wire is the traffic with one neighbour. Messages of each cargo are numbered from 0,
// which is their label, and message n goes under tag 2·cargo + n mod 2: since message
// n+1 is sent after message n of the other end was read (or answers it), a neighbour is
// one message ahead at most, and two slots are enough.
type wire struct {
	to   problem.Neighbour
	link iterate.Link
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
const sumsBytes = 2 + maxSums*(2+iterate.MaxSumBytes)

// levelLinks are the links of a rank to the peers it shares a face with. Both ends of one
// declare the same slots.
func levelLinks(c *problem.Config, rank iterate.Rank) []iterate.Link {
	deep, gathered, arrays := [3]int{1, 1, 1}, 0, 1
	if c.Method.Name == problem.Multigrid {
		p := planLevels(c)
		arrays = 2 // the residual and the walls
		for a := range 3 {
			deep[a] = p.deepest(a)
		}
		gathered = p.gatherBytes()
	}
	var out []iterate.Link
	size := c.Partition.Box(rank).Size()
	for _, n := range c.Partition.Neighbours(rank) {
		ghosts := 8 * arrays * deep[n.Axis]
		for a := range c.Problem.Dimension {
			if a != n.Axis {
				ghosts *= size[a] + 2*deep[a]
			}
		}
		lengths := []int{ghosts}
		if problem.ParentOf(c.Partition, rank) == n.Rank || problem.ParentOf(c.Partition, n.Rank) == rank {
			lengths = append(lengths, sumsBytes, sumsBytes)
			if gathered > 0 {
				lengths = append(lengths, gathered, gathered)
			}
		}
		l := iterate.Link{Rank: n.Rank}
		for _, b := range lengths {
			l.Slots = append(l.Slots, b, b)
		}
		l.Sent = l.Slots
		out = append(out, l)
	}
	return out
}

// Halo takes a message in; see Peer.
func (g *Levels) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	w := g.wireOf(q)
	if w == nil {
		return fmt.Errorf("solver: a message from rank %d, which is no neighbour of rank %d", q, g.config.Rank)
	}
	if int64(tag) >= int64(len(w.link.Slots)) || len(data) > w.link.Slots[tag] {
		return fmt.Errorf("solver: a message of %d bytes from rank %d under tag %d: do both peers use the same partition and method?", len(data), q, tag)
	}
	kind := cargo(tag / 2)
	upward, downward := kind == cargoSums || kind == cargoGather, kind == cargoTotal || kind == cargoScatter
	if upward && g.tree.Child(q) < 0 || downward && g.tree.Parent != q {
		return fmt.Errorf("solver: rank %d sent cargo %d, which goes the other way in the tree", q, kind)
	}
	if label%2 != uint64(tag%2) || label < w.read[kind] || label > w.read[kind]+1 || w.slot[kind][label%2].have {
		return fmt.Errorf("solver: rank %d sent message %d of cargo %d while number %d is due", q, label, kind, w.read[kind])
	}
	w.slot[kind][label%2] = arrival{have: true, data: data}
	return nil
}

func (g *Levels) wireOf(q iterate.Rank) *wire {
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
func (w *wire) send(k cargo, bytes int) iterate.Op {
	n := w.sent[k]
	w.sent[k]++
	return iterate.Op{Kind: iterate.OpSend, To: w.to.Rank, Tag: uint32(2*int(k)) + uint32(n%2), Label: n, Bytes: bytes}
}

// packing is what the next Pack writes: a leg of an exchange, or bytes.
type packing struct {
	x     *exchange
	leg   int
	bytes []byte
}

// Pack writes what op, an OpSend, asks for.
func (g *Levels) Pack(op iterate.Op, dst []byte) {
	if op.Kind != iterate.OpSend {
		return
	}
	if g.packs.x != nil {
		g.packs.x.pack(dst, g.packs.leg)
		return
	}
	copy(dst, g.packs.bytes)
}

func (g *Levels) sendLeg(x *exchange, leg int) iterate.Op {
	l := &x.legs[leg]
	g.packs = packing{x: x, leg: leg}
	return l.wire.send(cargoGhosts, l.sendBytes)
}

func (g *Levels) sendBytes(w *wire, k cargo, data []byte) iterate.Op {
	g.packs = packing{bytes: data}
	return w.send(k, len(data))
}
