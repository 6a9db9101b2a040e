package multilevel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// payloadKind is the kind of a message between two neighbours.
type payloadKind int

const (
	payloadGhosts  payloadKind = iota // ghost values, in both directions
	payloadSums                       // exact sums of a subtree, to the parent
	payloadTotals                     // totals, from the parent
	payloadGather                     // values of a level, to the parent
	payloadScatter                    // values of that level, from the parent
	payloadKinds
)

// channel holds the messages exchanged with one neighbour. Messages of each payload kind are numbered from 0;
// the number is the label. Message n has tag 2·kind + n mod 2. A peer sends message n+1 only after it has read
// message n of the other end, or in reply to it, so a neighbour is at most one message ahead and two slots
// suffice.
type channel struct {
	to   problem.Neighbour
	link iterate.Link
	sent [payloadKinds]uint64
	read [payloadKinds]uint64
	slot [payloadKinds][2]arrival

	screen kernel.Screen // of what the neighbour sends; bounds may be infinite, and flags are packed into numbers
	ghosts kernel.Screen // of its ghost values, on all grids
}

// arrival is a received message. data aliases the shell's buffer, or memory if the message came in pieces.
type arrival struct {
	valid  bool
	data   []byte
	memory []byte
}

// sumsBytes is an upper bound of the length of encoded sums and totals.
const sumsBytes = 2 + maxSums*(2+iterate.MaxSumBytes)

// linksOf returns the links of a rank to the peers that it shares a face with. Both ends declare equal slots.
func linksOf(c *problem.Config, rank iterate.Rank) []iterate.Link {
	deep, gathered, arrays := [3]int{1, 1, 1}, 0, 1
	if c.Method.Name == problem.Multigrid || c.Method.Next == problem.Multigrid {
		p := planLevels(c)
		arrays = 2 // the residual and the truncation
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

// Halo accepts a message from a neighbour (see iterate.Peer).
func (g *peer) Halo(_ time.Duration, q iterate.Rank, tag uint32, label uint64, pieces ...[]byte) error {
	w := g.channelTo(q)
	if w == nil {
		return fmt.Errorf("multilevel: message from rank %d, which is not a neighbour of rank %d", q, g.config.Rank)
	}
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	if int64(tag) >= int64(len(w.link.Slots)) || length > w.link.Slots[tag] {
		return fmt.Errorf("multilevel: invalid message of %d bytes from rank %d with tag %d; "+
			"do both peers use the same partition and method?", length, q, tag)
	}
	kind := payloadKind(tag / 2)
	upward, downward := kind == payloadSums || kind == payloadGather, kind == payloadTotals || kind == payloadScatter
	if upward && g.tree.Child(q) < 0 || downward && g.tree.Parent != q {
		return fmt.Errorf("multilevel: rank %d sent payload kind %d in the wrong direction of the tree", q, kind)
	}
	if label%2 != uint64(tag%2) || label < w.read[kind] || label > w.read[kind]+1 || w.slot[kind][label%2].valid {
		return fmt.Errorf("multilevel: rank %d sent message %d of payload kind %d; number %d is due",
			q, label, kind, w.read[kind])
	}
	a := &w.slot[kind][label%2]
	a.data = iterate.Contiguous(pieces, &a.memory)
	err := w.check(kind, a.data)
	a.valid = err == nil
	return err
}

// refuse returns the error of a message that the neighbour must not send. format describes the message.
func (w *channel) refuse(format string, a ...any) error {
	return &iterate.Refusal{
		From: w.to.Rank, Err: fmt.Errorf("multilevel: rank %d sent "+format, append([]any{w.to.Rank}, a...)...),
	}
}

// check returns an error for a message that no peer of the run sends.
func (w *channel) check(kind payloadKind, data []byte) error {
	switch kind {
	case payloadSums:
		var sums [maxSums]kernel.Sum
		_, n, err := decodeSums(data, &sums)
		for i := range n {
			err = cmp.Or(err, w.screen.CheckSum(sums[i].Float64()))
		}
		return err
	case payloadTotals:
		_, _, data, err := decodeHeader(data, keepFlag)
		for ; err == nil && len(data) >= 8; data = data[8:] {
			err = w.screen.CheckSum(iterate.ReadFloat(data))
		}
		return err
	}
	if kind == payloadGhosts {
		return w.ghosts.Check(data)
	}
	return w.screen.Check(data)
}

func (g *peer) channelTo(q iterate.Rank) *channel {
	if i := slices.IndexFunc(g.channels, func(w *channel) bool { return w.to.Rank == q }); i >= 0 {
		return g.channels[i]
	}
	return nil
}

// next returns the message that is due, or false if it has not arrived.
func (w *channel) next(k payloadKind) ([]byte, bool) {
	a := w.slot[k][w.read[k]%2]
	return a.data, a.valid
}

// consume marks the message that is due as read.
func (w *channel) consume(k payloadKind) {
	w.slot[k][w.read[k]%2].valid = false
	w.read[k]++
}

// sendOp returns the operation that sends a message of the given kind.
func (w *channel) sendOp(k payloadKind, bytes int) iterate.Op {
	n := w.sent[k]
	w.sent[k]++
	return iterate.Op{Kind: iterate.OpSend, To: w.to.Rank, Tag: uint32(2*int(k)) + uint32(n%2), Label: n, Bytes: bytes}
}

// packTask is what the next Pack writes: one neighbour's part of an exchange, or bytes.
type packTask struct {
	x     *exchange
	index int
	bytes []byte
}

// Pack writes the message of op, an OpSend, to dst.
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
