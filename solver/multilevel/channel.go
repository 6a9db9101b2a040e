package multilevel

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// cargo is what a message between two neighbours carries.
type payloadKind int

const (
	payloadGhosts  payloadKind = iota // values for the other's ghosts, both ways
	payloadSums                       // exact sums below, from a child in the tree to its parent
	payloadTotals                     // what they come to, from the parent
	payloadGather                     // values of a level, to the parent
	payloadScatter                    // that level's, from the parent
	payloadKinds
)

// wire is the traffic with one neighbour. Messages of each cargo are numbered from 0,
// which is their label, and message n goes under tag 2·cargo + n mod 2: since message
// n+1 is sent after message n of the other end was read (or answers it), a neighbour is
// one message ahead at most, and two slots are enough.
type channel struct {
	to   problem.Neighbour
	link iterate.Link
	sent [payloadKinds]uint64
	read [payloadKinds]uint64
	slot [payloadKinds][2]arrival
}

// arrival is a message that has come; data aliases the shell's buffer.
type arrival struct {
	valid bool
	data  []byte
}

// sumsBytes is more than sums, or their totals, take.
const sumsBytes = 2 + maxSums*(2+iterate.MaxSumBytes)

// levelLinks are the links of a rank to the peers it shares a face with. Both ends of one
// declare the same slots.
func linksOf(c *problem.Config, rank iterate.Rank) []iterate.Link {
	deep, gathered, arrays := [3]int{1, 1, 1}, 0, 1
	if c.Method.Name == problem.Multigrid {
		p := planLevels(c)
		arrays = 2 // the residual and the walls
		for a := range 3 {
			deep[a] = p.maxDepth(a)
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
func (g *peer) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	w := g.channelTo(q)
	if w == nil {
		return fmt.Errorf("solver: a message from rank %d, which is no neighbour of rank %d", q, g.config.Rank)
	}
	if int64(tag) >= int64(len(w.link.Slots)) || len(data) > w.link.Slots[tag] {
		return fmt.Errorf("solver: a message of %d bytes from rank %d under tag %d: do both peers use the same partition and method?", len(data), q, tag)
	}
	kind := payloadKind(tag / 2)
	upward, downward := kind == payloadSums || kind == payloadGather, kind == payloadTotals || kind == payloadScatter
	if upward && g.tree.Child(q) < 0 || downward && g.tree.Parent != q {
		return fmt.Errorf("solver: rank %d sent cargo %d, which goes the other way in the tree", q, kind)
	}
	if label%2 != uint64(tag%2) || label < w.read[kind] || label > w.read[kind]+1 || w.slot[kind][label%2].valid {
		return fmt.Errorf("solver: rank %d sent message %d of cargo %d while number %d is due", q, label, kind, w.read[kind])
	}
	w.slot[kind][label%2] = arrival{valid: true, data: data}
	return nil
}

func (g *peer) channelTo(q iterate.Rank) *channel {
	for _, w := range g.channels {
		if w.to.Rank == q {
			return w
		}
	}
	return nil
}

// next is the message that is due, false while it has not come.
func (w *channel) next(k payloadKind) ([]byte, bool) {
	a := w.slot[k][w.read[k]%2]
	return a.data, a.valid
}

// taken says that the message that was due has been read.
func (w *channel) consume(k payloadKind) {
	w.slot[k][w.read[k]%2].valid = false
	w.read[k]++
}

// send is the operation that sends a cargo.
func (w *channel) sendOp(k payloadKind, bytes int) iterate.Op {
	n := w.sent[k]
	w.sent[k]++
	return iterate.Op{Kind: iterate.OpSend, To: w.to.Rank, Tag: uint32(2*int(k)) + uint32(n%2), Label: n, Bytes: bytes}
}

// packing is what the next Pack writes: a leg of an exchange, or bytes.
type packTask struct {
	x     *exchange
	index int
	bytes []byte
}

// Pack writes what op, an OpSend, asks for.
func (g *peer) Pack(op iterate.Op, dst []byte) {
	if op.Kind != iterate.OpSend {
		return
	}
	if g.packing.x != nil {
		g.packing.x.pack(dst, g.packing.index)
		return
	}
	copy(dst, g.packing.bytes)
}

func (g *peer) sendExchange(x *exchange, index int) iterate.Op {
	l := &x.neighbours[index]
	g.packing = packTask{x: x, index: index}
	return l.channel.sendOp(payloadGhosts, l.sendBytes)
}

func (g *peer) sendBytes(w *channel, k payloadKind, data []byte) iterate.Op {
	g.packing = packTask{bytes: data}
	return w.sendOp(k, len(data))
}
