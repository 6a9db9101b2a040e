package schwarz

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseGrid is the grid of the coarse correction: n points an axis, boundary to
// boundary, in any ratio to the fine one. Interpolation between the two is linear per
// axis; restriction is its transpose, scaled so that it keeps the mean.
type coarseGrid struct {
	dim     int
	fine, n [3]int
	layout  kernel.Layout
	axes    [3]coarseAxis
	scale   float64
}

// coarseAxis is where the points of one grid lie in the other, by index.
type coarseAxis struct {
	low     []int     // the coarse point before a fine one, −1: the boundary
	part    []float64 // how far behind it the fine point lies, of an interval
	nearest []int     // the fine point nearest to a coarse one
}

// coarsePart is at most how much of the fine grid's points the coarse grid has.
const minCoarsening = 64

// peerPoints is how many points a peer the coarse grid has at most, out of lockstep: it
// is smooth errors that outlast the way of a correction, and the root is late with a
// larger one.
const pointsPerPeer = 8

// coarseSize is the number of points an axis of the grid of a run's coarse correction.
func coarseGridOf(c *problem.Config) (n [3]int, ok bool) {
	most, peers := c.Method.Coarse, c.Partition.Peers()
	if most == 0 && !c.Scheme.Lockstep() {
		if contrast(c.Problem) > maxContrast {
			return n, false
		}
		most = max(1, min(c.Problem.Points()/minCoarsening, pointsPerPeer*peers))
	}
	return coarseSize(c.Problem, peers, most)
}

// mostContrast is the contrast of the diffusion up to which peers out of lockstep have a coarse
// correction where none was asked for. Its linear interpolation cannot follow a larger jump:
// corrections are taken back, and what others have read of them outlasts hundreds of solves.
const maxContrast = 200

// contrastPoints per axis are looked at for contrast, by dimension.
var contrastPoints = [4]int{0, 1025, 65, 21}

// contrast is the ratio of the largest diffusion to the smallest, over points of a grid of its own.
func contrast(p *problem.Problem) float64 {
	if p.Diffusion.Constant() {
		return 1
	}
	q := *p
	for a := range p.Dimension {
		q.N[a] = contrastPoints[p.Dimension]
	}
	low, high := math.Inf(1), 0.0
	problem.Box{Hi: q.N}.Each(func(_ int, idx [3]int) bool {
		v := p.Diffusion.Of(q.At(idx[0], idx[1], idx[2]))
		low, high = math.Min(low, v), math.Max(high, v)
		return true
	})
	return high / low
}

// coarseSize is the number of points an axis of the coarse grid; ok is false when there
// is no use in one. most is the bound on its points; 0: 1/coarsePart of the fine grid's.
func coarseSize(p *problem.Problem, peers, most int) (n [3]int, ok bool) {
	if peers < 2 || most < 0 {
		return n, false
	}
	limit := float64(most)
	if most == 0 {
		limit = math.Max(1, float64(p.Points())/minCoarsening)
	}
	// The ratio of spacings, from a first guess up until it fits.
	ratio := math.Max(1, math.Pow(float64(p.Points())/limit, 1/float64(p.Dimension)))
	for {
		points := 1
		for a := range 3 {
			n[a] = 1
			if a < p.Dimension {
				n[a] = min(p.N[a], max(1, int(float64(p.N[a]+1)/ratio)-1))
				if f := int(math.Round(float64(p.N[a]) / ratio)); f > n[a] {
					n[a] = min(f, p.N[a])
				}
			}
			points *= n[a]
		}
		if float64(points) <= limit || points == 1 {
			return n, points < p.Points()
		}
		ratio *= 1.02
	}
}

func newCoarseGrid(p *problem.Problem, n [3]int) (*coarseGrid, error) {
	g := &coarseGrid{dim: p.Dimension, fine: p.N, n: n, scale: 1}
	var err error
	if g.layout, err = kernel.NewLayout(p.Dimension, n); err != nil {
		return nil, err
	}
	for a := range 3 {
		g.axes[a] = newCoarseAxis(p.N[a], n[a])
		g.scale *= float64(n[a]+1) / float64(p.N[a]+1)
	}
	return g, nil
}

func newCoarseAxis(fine, coarse int) coarseAxis {
	x := coarseAxis{low: make([]int, fine), part: make([]float64, fine), nearest: make([]int, coarse)}
	for i := range fine {
		at := (i + 1) * (coarse + 1)
		x.low[i], x.part[i] = at/(fine+1)-1, float64(at%(fine+1))/float64(fine+1)
	}
	for j := range coarse {
		at := 2 * (j + 1) * (fine + 1)
		x.nearest[j] = min(fine-1, (at+coarse+1)/(2*(coarse+1))-1)
	}
	return x
}

// piece is the box of coarse points whose interpolation touches points of a fine box.
func (g *coarseGrid) coarseBox(b problem.Box) kernel.Box {
	var out kernel.Box
	for a := range 3 {
		x := &g.axes[a]
		out.Lo[a] = max(0, x.low[b.Lo[a]])
		out.Hi[a] = min(g.n[a], x.low[b.Hi[a]-1]+2)
	}
	return out
}

// restrict adds the restriction of r, a padded array of a region that begins at origin,
// at the points of box b of the grid, to dst, dense over piece.
func (g *coarseGrid) restrict(dst []float64, piece kernel.Box, r []float64, l kernel.Layout, origin [3]int, b problem.Box, line []float64) {
	size := [3]int{piece.Hi[0] - piece.Lo[0], piece.Hi[1] - piece.Lo[1], piece.Hi[2] - piece.Lo[2]}
	x := &g.axes[0]
	line = line[:size[0]]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			clear(line)
			row := r[l.Index(b.Lo[0]-origin[0], y-origin[1], z-origin[2]):][:b.Hi[0]-b.Lo[0]]
			for i, v := range row {
				low, t := x.low[b.Lo[0]+i]-piece.Lo[0], x.part[b.Lo[0]+i]
				if low >= 0 {
					line[low] += (1 - t) * v
				}
				if low+1 < size[0] {
					line[low+1] += t * v
				}
			}
			g.eachRow(piece, y, z, func(at int, w float64) {
				for i, v := range line {
					dst[at+i] += w * g.scale * v
				}
			})
		}
	}
}

// eachRow calls f for the rows of a piece that the fine row (y, z) touches: where the row
// begins in a dense array of the piece, and its weight.
func (g *coarseGrid) eachRow(piece kernel.Box, y, z int, f func(at int, w float64)) {
	var size [3]int
	for a := range 3 {
		size[a] = piece.Hi[a] - piece.Lo[a]
	}
	for sz := range 2 {
		cz, wz := g.axes[2].side(z, sz)
		if cz < piece.Lo[2] || cz >= piece.Hi[2] || wz == 0 {
			continue
		}
		for sy := range 2 {
			cy, wy := g.axes[1].side(y, sy)
			if cy < piece.Lo[1] || cy >= piece.Hi[1] || wy == 0 {
				continue
			}
			f(size[0]*(cy-piece.Lo[1]+size[1]*(cz-piece.Lo[2])), wy*wz)
		}
	}
}

// side is the coarse point before (0) or behind (1) fine point i, and its weight.
func (x *coarseAxis) side(i, side int) (int, float64) {
	if side == 0 {
		return x.low[i], 1 - x.part[i]
	}
	return x.low[i] + 1, x.part[i]
}

// row writes the interpolation of e, dense over piece, at the fine points from lo on of
// row (y, z) to dst. Beyond the piece e counts as 0. line is room for a row of the piece.
func (g *coarseGrid) interpolateRow(dst []float64, e []float64, piece kernel.Box, lo, y, z int, line []float64) {
	n := piece.Hi[0] - piece.Lo[0]
	line = line[:n]
	clear(line)
	g.eachRow(piece, y, z, func(at int, w float64) {
		for i := range line {
			line[i] += w * e[at+i]
		}
	})
	x := &g.axes[0]
	for i := range dst {
		low, t := x.low[lo+i]-piece.Lo[0], x.part[lo+i]
		v := 0.0
		if low >= 0 && low < n {
			v = (1 - t) * line[low]
		}
		if low+1 >= 0 && low+1 < n {
			v += t * line[low+1]
		}
		dst[i] = v
	}
}
