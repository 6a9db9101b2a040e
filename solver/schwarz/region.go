package schwarz

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// region is where a peer solves: its own box, extended by the overlap where there are neighbours.
type region struct {
	own, ext problem.Box   // in the grid
	inside   kernel.Box    // own box within ext
	layout   kernel.Layout // of ext
	ownPart  kernel.Layout // of own
}

func newRegion(c *problem.Config, r iterate.Rank) (region, error) {
	g := region{own: c.Partition.Box(r)}
	g.ext = grown(g.own, c.Method.Overlap, c.Problem.N)
	g.inside = g.own.From(g.ext.Lo)
	var err error
	if g.layout, err = kernel.NewLayout(c.Problem.Dimension, g.ext.Size()); err != nil {
		return g, err
	}
	g.ownPart, err = kernel.NewLayout(c.Problem.Dimension, g.own.Size())
	return g, err
}

// grown extends a box by layers within a grid of n points.
func grown(b problem.Box, layers int, n [3]int) problem.Box {
	for a := range 3 {
		b.Lo[a], b.Hi[a] = max(0, b.Lo[a]-layers), min(n[a], b.Hi[a]+layers)
	}
	return b
}

func intersection(a, b problem.Box) problem.Box {
	for i := range 3 {
		a.Lo[i], a.Hi[i] = max(a.Lo[i], b.Lo[i]), min(a.Hi[i], b.Hi[i])
	}
	return a
}

// layersBetween returns the number of layers from part i of an axis to the nearest point of part j, or 0 if
// they are the same part.
func layersBetween(cuts []int, i, j int) int {
	switch {
	case j > i:
		return cuts[j] - cuts[i+1] + 1
	case j < i:
		return cuts[i] - cuts[j+1] + 1
	}
	return 0
}

// overlapPeers returns, in ascending order, the peers whose boxes intersect rank r's box extended by overlap,
// or its face ghosts. The relation is symmetric.
func overlapPeers(p problem.Partition, r iterate.Rank, overlap int) []iterate.Rank {
	place, parts := p.Position(r), p.Parts()
	var lo, hi [3]int
	for a, cuts := range p.Cuts {
		lo[a], hi[a] = place[a], place[a]+1
		for lo[a] > 0 && layersBetween(cuts, place[a], lo[a]-1) <= overlap+1 {
			lo[a]--
		}
		for hi[a] < parts[a] && layersBetween(cuts, place[a], hi[a]) <= overlap+1 {
			hi[a]++
		}
	}
	var out []iterate.Rank
	eachPoint(kernel.Box{Lo: lo, Hi: hi}, func(x, y, z int) {
		farthest := 0
		for a, at := range [3]int{x, y, z} {
			if layersBetween(p.Cuts[a], place[a], at) > overlap {
				farthest++
			}
		}
		if q := iterate.Rank(x + parts[0]*(y+parts[1]*z)); q != r && farthest <= 1 {
			out = append(out, q)
		}
	})
	return out
}
