package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// gather collects every peer's part of some arrays of a grid over the tree at the root, which holds the whole
// grid. A message contains the own part followed by the messages of the children.
type gather struct {
	peer     *peer
	local    []grid // arrays of this peer
	own      kernel.Box
	global   []grid // the same of the whole grid, at the root
	place    kernel.Box
	subtrees []subtreeMessage // per child
	bytes    []byte           // message to the parent; nil at the root
	at       int
	sent     bool
}

// subtreeMessage describes a child's message: the boxes of all peers in its subtree.
type subtreeMessage struct {
	boxes         []kernel.Box
	offset, bytes int // in the message to the parent
}

// subtreeOrder appends the ranks of a subtree in the order of its message.
func subtreeOrder(c *problem.Config, r iterate.Rank, out []iterate.Rank) []iterate.Rank {
	out = append(out, r)
	for _, q := range problem.TreeOf(c.Partition, r).Children {
		out = subtreeOrder(c, q, out)
	}
	return out
}

// newGather prepares a gather of the gathered grid. At the root, global holds the target arrays.
func newGather(m *multigrid, own kernel.Box, local, global []grid) *gather {
	g, part := m.peer, m.plan.parts[m.plan.gathered]
	x := &gather{peer: g, local: local, own: own, global: global, place: part.Box(g.config.Rank)}
	value := 8 * len(local)
	total := value * own.Points()
	for _, q := range g.tree.Children {
		b := subtreeMessage{offset: total}
		for _, r := range subtreeOrder(&g.config, q, nil) {
			box := part.Box(r)
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

func (x *gather) proceed() (op iterate.Op, more bool, err error) {
	for ; x.at < len(x.subtrees); x.at++ {
		w, b := x.peer.allReduce.children[x.at], &x.subtrees[x.at]
		data, came := w.next(payloadGather)
		if !came {
			return iterate.Op{Kind: iterate.OpWait}, true, nil
		}
		if len(data) != b.bytes {
			return op, false, w.refuse("%d bytes of a gathered grid; want %d", len(data), b.bytes)
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
			to, from := &x.global[i], &x.local[i]
			method.CopyBox(to.array, to.layout, x.place, from.array, from.layout, x.own.Lo)
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

// scatter sends an array of the whole grid, ghosts included, from the root to the own points and ghosts of
// every peer.
type scatter struct {
	peer   *peer
	local  grid
	room   kernel.Box // own points and ghosts in the local array
	global grid       // at the root
	extent kernel.Box // everything that is sent: the grid and its ghosts
	place  kernel.Box // room in extent
	bytes  []byte     // at the root
	at     int
}

// newScatter prepares a scatter of the gathered grid with a layer of ghosts.
func newScatter(m *multigrid, own kernel.Box, local, global grid) *scatter {
	g, n, part := m.peer, m.plan.hierarchy.Grids[m.plan.gathered], m.plan.parts[m.plan.gathered]
	x := &scatter{
		peer: g, local: local, room: own, global: global,
		extent: kernel.Box{Hi: n}, place: part.Box(g.config.Rank),
	}
	for _, b := range []*kernel.Box{&x.room, &x.extent, &x.place} {
		for a := range m.plan.hierarchy.Dim {
			b.Lo[a]--
			b.Hi[a]++
		}
	}
	if g.tree.Parent < 0 {
		x.bytes = make([]byte, 8*x.extent.Points())
	}
	return x
}

func (x *scatter) proceed() (op iterate.Op, more bool, err error) {
	data, up := x.bytes, x.peer.allReduce.parent
	if up != nil {
		var came bool
		if data, came = up.next(payloadScatter); !came {
			return iterate.Op{Kind: iterate.OpWait}, true, nil
		}
		if len(data) != 8*x.extent.Points() {
			return op, false, up.refuse("%d bytes of a scattered grid; want %d", len(data), 8*x.extent.Points())
		}
	} else if x.at == 0 {
		x.global.pack(data, x.extent)
	}
	if x.at < len(x.peer.allReduce.children) {
		x.at++
		return x.peer.sendBytes(x.peer.allReduce.children[x.at-1], payloadScatter, data), true, nil
	}
	if x.at = 0; up == nil {
		method.CopyBox(x.local.array, x.local.layout, x.room, x.global.array, x.global.layout, x.place.Lo)
		return op, false, nil
	}
	x.local.unpackPart(data, x.extent, x.room, x.place)
	up.consume(payloadScatter)
	return op, false, nil
}
