package schwarz

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// subtreeBox returns the box of coarse points that rank r and its subtree read. In a tensor product partition
// their union is a box.
func (g *coarseGrid) subtreeBox(run *problem.Config, r iterate.Rank) kernel.Box {
	part, overlap := run.Partition, run.Method.Overlap
	b := part.Box(r)
	for _, q := range coarseSubtree(run, r) {
		c := part.Box(q)
		for a := range 3 {
			b.Lo[a], b.Hi[a] = min(b.Lo[a], c.Lo[a]), max(b.Hi[a], c.Hi[a])
		}
	}
	return g.coarseBox(grown(b, overlap+1, g.fine))
}

// messageBytes returns the length of the longest message between rank r and its parent.
func (g *coarseGrid) messageBytes(run *problem.Config, r iterate.Rank) int {
	up := 0
	for _, q := range coarseSubtree(run, r) {
		up += shareBytes(g.coarseBox(grown(run.Partition.Box(q), 1, g.fine)))
	}
	return iterate.MessageHeader + 8 + max(up, 8*g.subtreeBox(run, r).Points())
}

// subtreeRanks returns rank r and the ranks below it in the tree, in ascending order.
func subtreeRanks(p problem.Partition, r iterate.Rank) []iterate.Rank {
	parts, place := p.Parts(), p.Position(r)
	// Parents lie towards z = 0 first, then y = 0, then x = 0.
	hi := [3]int{place[0] + 1, place[1] + 1, parts[2]}
	if place[2] == 0 {
		hi[1] = parts[1]
		if place[1] == 0 {
			hi[0] = parts[0]
		}
	}
	var out []iterate.Rank
	eachPoint(kernel.Box{Lo: place, Hi: hi}, func(x, y, z int) {
		out = append(out, iterate.Rank(x+parts[0]*(y+parts[1]*z)))
	})
	return out
}

// encode encodes the values at a part of subtreeBox.
func (c *correction) encode(values []float64, part kernel.Box) []byte {
	out := make([]byte, 0, 8*part.Points())
	eachPoint(part, func(x, y, z int) { out = iterate.AppendFloat(out, values[denseIn(c.subtreeBox, x, y, z)]) })
	return out
}

func eachPoint(b kernel.Box, f func(x, y, z int)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(x, y, z)
			}
		}
	}
}

// denseIn returns the index of point (x, y, z) in a dense array of box b.
func denseIn(b kernel.Box, x, y, z int) int {
	return x - b.Lo[0] + (b.Hi[0]-b.Lo[0])*(y-b.Lo[1]+(b.Hi[1]-b.Lo[1])*(z-b.Lo[2]))
}

// readValues decodes len(dst) values, which must be finite.
func readValues(dst []float64, data []byte) error {
	for i := range dst {
		if dst[i] = iterate.ReadFloat(data[8*i:]); !kernel.Finite(dst[i]) {
			return fmt.Errorf("coarse correction with the value %v", dst[i])
		}
	}
	return nil
}

// add adds the interpolation of e, dense over subtreeBox, to the points of a box of the region that are not in
// contact, and projects.
func (c *correction) add(w *peer, b kernel.Box, e []float64) {
	n := b.Hi[0] - b.Lo[0]
	buffer := c.buffer[:n]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			c.grid.interpolateRow(buffer, e, c.subtreeBox, b.Lo[0]+w.ext.Lo[0], y+w.ext.Lo[1], z+w.ext.Lo[2], c.line)
			at := w.layout.Index(b.Lo[0], y, z)
			for i, v := range buffer {
				lo, hi := math.Inf(-1), math.Inf(1)
				if c.lower != nil {
					lo = c.lower[at+i]
				}
				if c.upper != nil {
					hi = c.upper[at+i]
				}
				if u := w.work[at+i]; lo < u && u < hi {
					w.work[at+i] = problem.Clamp(u+v, lo, hi)
				}
			}
		}
	}
}
