package schwarz

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseGrid is the grid of the coarse correction: n points per axis from boundary to boundary, with any ratio
// to the fine grid. Interpolation is linear per axis. Restriction is its transpose, scaled to preserve the
// mean.
type coarseGrid struct {
	fine, n [3]int
	layout  kernel.Layout
	axes    [3]coarseAxis
	scale   float64
}

// coarseAxis relates the points of the two grids along one axis, by index.
type coarseAxis struct {
	low     []int     // the coarse point before a fine one; −1: the boundary
	part    []float64 // distance of the fine point from it, relative to the interval
	nearest []int     // the fine point nearest to a coarse one
}

// minCoarsening is the least ratio of the numbers of fine and coarse points.
const minCoarsening = 64

// pointsPerPeer bounds the coarse points per peer outside lockstep. Only smooth errors outlast the latency of a
// correction, and the root needs longer for a larger grid.
const pointsPerPeer = 8

// coarseGridOf returns the number of points per axis of the grid of a run's coarse correction, and whether
// there is one.
func coarseGridOf(c *problem.Config) (n [3]int, ok bool) {
	most, peers := c.Method.Coarse, c.Partition.Peers()
	if most == 0 {
		if largestJump(c.Problem) > maxJump {
			return n, false
		}
		if !c.Scheme.Lockstep() {
			most = max(1, min(c.Problem.Points()/minCoarsening, pointsPerPeer*peers))
		}
	}
	return coarseSize(c.Problem, peers, most)
}

// maxJump is the jump of the diffusion up to which there is a coarse correction by default. Its linear interpolation cannot represent
// larger ones: corrections then lower the residual and raise the error, and most are taken back. A diffusion that varies smoothly by
// far larger factors gains by it.
const maxJump = 30

// jumpPoints is the number of points per axis at which largestJump samples the diffusion, by dimension.
var jumpPoints = [4]int{0, 1025, 65, 21}

// largestJump returns the largest ratio of the diffusion at two neighbouring points of a sampling grid.
func largestJump(p *problem.Problem) float64 {
	if p.Diffusion.Constant() {
		return 1
	}
	q := *p
	for a := range p.Dimension {
		q.N[a] = jumpPoints[p.Dimension]
	}
	values, largest := make([]float64, 0, q.Points()), 1.0
	strides := [3]int{1, q.N[0], q.N[0] * q.N[1]}
	for _, idx := range (problem.Box{Hi: q.N}).Each {
		v := p.Diffusion.Of(q.At(idx[0], idx[1], idx[2]))
		for a, i := range idx {
			if i > 1 {
				before := values[len(values)-strides[a]]
				largest = math.Max(largest, math.Max(v/before, before/v))
			}
		}
		values = append(values, v)
	}
	return largest
}

// coarseSize returns the number of points per axis of the coarse grid. ok is false if a coarse grid is of no
// use. most bounds its points; 0: 1/minCoarsening of the fine points.
func coarseSize(p *problem.Problem, peers, most int) (n [3]int, ok bool) {
	if peers < 2 || most < 0 {
		return n, false
	}
	limit := float64(most)
	if most == 0 {
		limit = math.Max(1, float64(p.Points())/minCoarsening)
	}
	// Increase the ratio of spacings from an estimate until the grid fits.
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
	g := &coarseGrid{fine: p.N, n: n, scale: 1}
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

// nearestFine returns the fine point nearest to a coarse point.
func (g *coarseGrid) nearestFine(x, y, z int) [3]int {
	return [3]int{g.axes[0].nearest[x], g.axes[1].nearest[y], g.axes[2].nearest[z]}
}

// coarseBox returns the box of coarse points whose interpolation affects points of a fine box.
func (g *coarseGrid) coarseBox(b problem.Box) kernel.Box {
	var out kernel.Box
	for a := range 3 {
		x := &g.axes[a]
		out.Lo[a] = max(0, x.low[b.Lo[a]])
		out.Hi[a] = min(g.n[a], x.low[b.Hi[a]-1]+2)
	}
	return out
}

// restrict adds the restriction of r at the points of box b of the grid to dst, dense over piece. r is a padded
// array of a region that begins at origin.
func (g *coarseGrid) restrict(
	dst []float64, piece kernel.Box, r []float64, l kernel.Layout, origin [3]int, b problem.Box, line []float64,
) {
	n, x := piece.Hi[0]-piece.Lo[0], &g.axes[0]
	line = line[:n]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			clear(line)
			row := r[l.Index(b.Lo[0]-origin[0], y-origin[1], z-origin[2]):][:b.Hi[0]-b.Lo[0]]
			for i, v := range row {
				low, t := x.low[b.Lo[0]+i]-piece.Lo[0], x.part[b.Lo[0]+i]
				if low >= 0 {
					line[low] += (1 - t) * v
				}
				if low+1 < n {
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

// eachRow calls f for the rows of a piece that interpolate to the fine row (y, z): the offset in a dense array
// of the piece, and the weight.
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

// side returns the coarse point before (0) or behind (1) fine point i, and its weight.
func (x *coarseAxis) side(i, side int) (int, float64) {
	if side == 0 {
		return x.low[i], 1 - x.part[i]
	}
	return x.low[i] + 1, x.part[i]
}

// interpolateRow writes the interpolation of e, dense over piece, to dst at the fine points of row (y, z) from
// lo on. Outside the piece e is 0. line is a work array for a row of the piece.
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
