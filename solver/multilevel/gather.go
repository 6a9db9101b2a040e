package multilevel

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// gather brings everyone's own part of some arrays of a grid over the tree to the root,
// which has the whole grid. A message is the own part, then those of the children with
// all below them, as they came.
type gather struct {
	peer     *peer
	local    []grid // arrays of this peer,
	own      kernel.Box
	global   []grid // the same of the whole grid, at the root
	place    kernel.Box
	subtrees []subtreeMessage // by child
	bytes    []byte           // what goes up; nil at the root
	at       int
	sent     bool
}

// bundle is what comes from a child: the boxes of all below, in the whole grid.
type subtreeMessage struct {
	boxes         []kernel.Box
	offset, bytes int // in what goes up
}

// order lists the ranks of a subtree as messages have them.
func subtreeOrder(c *problem.Config, r iterate.Rank, out []iterate.Rank) []iterate.Rank {
	out = append(out, r)
	for _, q := range problem.TreeOf(c.Partition, r).Children {
		out = subtreeOrder(c, q, out)
	}
	return out
}

// newGather prepares for a grid that is cut by part. At the root whole are the arrays to
// gather to.
func newGather(g *peer, part problem.Partition, own kernel.Box, local, global []grid) *gather {
	x := &gather{peer: g, local: local, own: own, global: global, place: within(part.Box(g.config.Rank), problem.Box{})}
	value := 8 * len(local)
	total := value * own.Points()
	for _, q := range g.tree.Children {
		b := subtreeMessage{offset: total}
		for _, r := range subtreeOrder(&g.config, q, nil) {
			box := within(part.Box(r), problem.Box{})
			b.boxes = append(b.boxes, box)
			b.bytes += value * box.Points()
		}
		total += b.bytes
		x.subtrees = append(x.subtrees, b)
	}
	if g.tree.Parent >= 0 {
		x.bytes = make([]byte, total)
	}
	return x
}

// proceed does the gather: an operation, none once it is complete.
func (x *gather) proceed() (op iterate.Op, more bool, err error) {
	for ; x.at < len(x.subtrees); x.at++ {
		w, b := x.peer.allReduce.children[x.at], &x.subtrees[x.at]
		data, came := w.next(payloadGather)
		if !came {
			return iterate.Op{Kind: iterate.OpWait}, true, nil
		}
		if len(data) != b.bytes {
			return op, false, fmt.Errorf("solver: rank %d sent %d bytes of a grid to be gathered where %d belong", w.to.Rank, len(data), b.bytes)
		}
		if x.bytes != nil {
			copy(x.bytes[b.offset:], data)
		} else {
			x.unpack(b, data)
		}
		w.consume(payloadGather)
	}
	if up := x.peer.allReduce.parent; up != nil && !x.sent {
		x.sent = true
		dst := x.bytes
		for i := range x.local {
			dst = x.local[i].pack(dst, x.own)
		}
		return x.peer.sendBytes(up, payloadGather, x.bytes), true, nil
	} else if up == nil {
		for i := range x.local {
			x.global[i].copy(x.place, &x.local[i], x.own)
		}
	}
	x.at, x.sent = 0, false
	return op, false, nil
}

func (x *gather) unpack(b *subtreeMessage, data []byte) {
	for _, box := range b.boxes {
		for i := range x.global {
			data = x.global[i].unpack(data, box)
		}
	}
}

// scatter brings an array of the whole grid, ghosts among it, from the root to everyone's
// own points and ghosts.
type scatter struct {
	peer   *peer
	local  grid
	room   kernel.Box // own points and ghosts in the local array
	global grid       // at the root
	extent kernel.Box // all that travels: the grid and its ghosts
	place  kernel.Box // room in it
	bytes  []byte     // root
	at     int
}

// newScatter prepares for a grid of n points that is cut by part; ghosts is how
// many layers of ghosts travel, too.
func newScatter(g *peer, part problem.Partition, n [3]int, dim int, own kernel.Box, ghosts int, local, global grid) *scatter {
	x := &scatter{peer: g, local: local, room: own, global: global, extent: kernel.Box{Hi: n}, place: within(part.Box(g.config.Rank), problem.Box{})}
	for _, b := range []*kernel.Box{&x.room, &x.extent, &x.place} {
		for a := range dim {
			b.Lo[a] -= ghosts
			b.Hi[a] += ghosts
		}
	}
	if g.tree.Parent < 0 {
		x.bytes = make([]byte, 8*x.extent.Points())
	}
	return x
}

// proceed does the scatter: an operation, none once it is complete.
func (x *scatter) proceed() (op iterate.Op, more bool, err error) {
	data, up := x.bytes, x.peer.allReduce.parent
	if up != nil {
		var came bool
		if data, came = up.next(payloadScatter); !came {
			return iterate.Op{Kind: iterate.OpWait}, true, nil
		}
		if len(data) != 8*x.extent.Points() {
			return op, false, fmt.Errorf("solver: rank %d sent %d bytes of a grid where %d belong", up.to.Rank, len(data), 8*x.extent.Points())
		}
	} else if x.at == 0 {
		x.global.pack(data, x.extent)
	}
	if x.at < len(x.peer.allReduce.children) {
		x.at++
		return x.peer.sendBytes(x.peer.allReduce.children[x.at-1], payloadScatter, data), true, nil
	}
	if x.at = 0; up == nil {
		x.local.copy(x.room, &x.global, x.place)
		return op, false, nil
	}
	x.local.unpackPart(data, x.extent, x.room, x.place)
	up.consume(payloadScatter)
	return op, false, nil
}
