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
	g       *Levels
	local   []grid // arrays of this peer,
	own     kernel.Box
	whole   []grid // the same of the whole grid, at the root
	place   kernel.Box
	bundles []bundle // by child
	bytes   []byte   // what goes up; nil at the root
	at      int
	sent    bool
}

// bundle is what comes from a child: the boxes of all below, in the whole grid.
type bundle struct {
	boxes         []kernel.Box
	offset, bytes int // in what goes up
}

// order lists the ranks of a subtree as messages have them.
func order(c *problem.Config, r iterate.Rank, out []iterate.Rank) []iterate.Rank {
	out = append(out, r)
	for _, q := range problem.TreeOf(c.Partition, r).Children {
		out = order(c, q, out)
	}
	return out
}

// newGather prepares for a grid that is cut by part. At the root whole are the arrays to
// gather to.
func newGather(g *Levels, part problem.Partition, own kernel.Box, local, whole []grid) *gather {
	x := &gather{g: g, local: local, own: own, whole: whole, place: within(part.Box(g.config.Rank), problem.Box{})}
	value := 8 * len(local)
	total := value * own.Points()
	for _, q := range g.tree.Children {
		b := bundle{offset: total}
		for _, r := range order(&g.config, q, nil) {
			box := within(part.Box(r), problem.Box{})
			b.boxes = append(b.boxes, box)
			b.bytes += value * box.Points()
		}
		total += b.bytes
		x.bundles = append(x.bundles, b)
	}
	if g.tree.Parent >= 0 {
		x.bytes = make([]byte, total)
	}
	return x
}

// proceed does the gather: an operation, none once it is complete.
func (x *gather) proceed() (op iterate.Op, more bool, err error) {
	for ; x.at < len(x.bundles); x.at++ {
		w, b := x.g.total.down[x.at], &x.bundles[x.at]
		data, came := w.next(cargoGather)
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
		w.taken(cargoGather)
	}
	if up := x.g.total.up; up != nil && !x.sent {
		x.sent = true
		dst := x.bytes
		for i := range x.local {
			dst = x.local[i].pack(dst, x.own)
		}
		return x.g.sendBytes(up, cargoGather, x.bytes), true, nil
	} else if up == nil {
		for i := range x.local {
			x.whole[i].copy(x.place, &x.local[i], x.own)
		}
	}
	x.at, x.sent = 0, false
	return op, false, nil
}

func (x *gather) unpack(b *bundle, data []byte) {
	for _, box := range b.boxes {
		for i := range x.whole {
			data = x.whole[i].unpack(data, box)
		}
	}
}

// scatter brings an array of the whole grid, ghosts among it, from the root to everyone's
// own points and ghosts.
type scatter struct {
	g      *Levels
	local  grid
	room   kernel.Box // own points and ghosts in the local array
	whole  grid       // at the root
	extent kernel.Box // all that travels: the grid and its ghosts
	place  kernel.Box // room in it
	bytes  []byte     // root
	at     int
}

// newScatter prepares for a grid of n points that is cut by part; ghosts is how
// many layers of ghosts travel, too.
func newScatter(g *Levels, part problem.Partition, n [3]int, dim int, own kernel.Box, ghosts int, local, whole grid) *scatter {
	x := &scatter{g: g, local: local, room: own, whole: whole, extent: kernel.Box{Hi: n}, place: within(part.Box(g.config.Rank), problem.Box{})}
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
	data, up := x.bytes, x.g.total.up
	if up != nil {
		var came bool
		if data, came = up.next(cargoScatter); !came {
			return iterate.Op{Kind: iterate.OpWait}, true, nil
		}
		if len(data) != 8*x.extent.Points() {
			return op, false, fmt.Errorf("solver: rank %d sent %d bytes of a grid where %d belong", up.to.Rank, len(data), 8*x.extent.Points())
		}
	} else if x.at == 0 {
		x.whole.pack(data, x.extent)
	}
	if x.at < len(x.g.total.down) {
		x.at++
		return x.g.sendBytes(x.g.total.down[x.at-1], cargoScatter, data), true, nil
	}
	if x.at = 0; up == nil {
		x.local.copy(x.room, &x.whole, x.place)
		return op, false, nil
	}
	x.local.unpackPart(data, x.extent, x.room, x.place)
	up.taken(cargoScatter)
	return op, false, nil
}
