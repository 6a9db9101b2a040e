package fas

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// rows finds the points of level l at and around those of level l+1.
type rows struct {
	fine, coarse *part
	low          [3][]int     // by own point of level l+1: the own point of level l at or before it
	next         [3][]float64 // weight of the point after that; 0: the points coincide
}

func newRows(g *plan, l int, fine, coarse *part) rows {
	t := rows{fine: fine, coarse: coarse}
	for a := range 3 {
		for i := range coarse.Layout.N[a] {
			low, next := g.between(l, a, coarse.Lo[a]+i)
			t.low[a], t.next[a] = append(t.low[a], low-fine.Lo[a]), append(t.next[a], next)
		}
	}
	return t
}

// row is a row of n points of level l+1, and the lines of level l at and around it.
type row struct {
	n         int
	grid      [3]int // first point on level l+1, in the indices of the grid
	at, dense int    // its padded and its dense index
	low       []int
	next      []float64
	lines     [4]line
	count     int  // of lines
	near      line // nearest to the row
}

// line is a line of points along the first axis of level l.
type line struct {
	first  [3]int // own indices
	at     int    // padded index of first
	weight float64
}

// eachRow calls f for the rows of a box of level l+1.
func (v *levels) eachRow(l int, b kernel.Box, f func(r *row)) {
	t := &v.rows[l]
	r := row{n: b.Hi[0] - b.Lo[0], low: t.low[0][b.Lo[0]:], next: t.next[0][b.Lo[0]:]}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			at := [3]int{b.Lo[0], y, z}
			for a := range 3 {
				r.grid[a] = at[a] + t.coarse.Lo[a]
			}
			r.at, r.dense = t.coarse.Layout.Index(at[0], y, z), t.coarse.Layout.Dense(at[0], y, z)
			r.count, r.near.weight = 0, 0
			for up, wz := range [2]float64{1 - t.next[2][z], t.next[2][z]} {
				for along, wy := range [2]float64{1 - t.next[1][y], t.next[1][y]} {
					if w := wz * wy; w > 0 {
						q := [3]int{0, t.low[1][y] + along, t.low[2][z] + up}
						r.lines[r.count] = line{q, t.fine.Layout.Index(q[0], q[1], q[2]), w}
						if r.lines[r.count].weight > r.near.weight {
							r.near = r.lines[r.count]
						}
						r.count++
					}
				}
			}
			f(&r)
		}
	}
}

// mean returns the value of u, a padded array of level l, at point x of the row.
func (r *row) mean(x int, u []float64) float64 {
	i, next, sum := r.low[x], r.next[x], 0.0
	for _, k := range r.lines[:r.count] {
		v := u[k.at+i]
		if next > 0 {
			v = float64((1-next)*v) + float64(next*u[k.at+i+1])
		}
		sum += float64(k.weight * v)
	}
	return sum
}

// nearest returns the own point of level l nearest to point x of the row along the first axis.
func (r *row) nearest(x int) int {
	if r.next[x] > 0.5 {
		return r.low[x] + 1
	}
	return r.low[x]
}

// held reports whether the point of level l nearest to point x of the row is in contact, as the residual marks it.
func (r *row) held(x int, residual []float64) bool {
	v := residual[r.near.at+r.nearest(x)]
	return v == 0 && math.Signbit(v)
}

// inject computes the values at the points of level l+1 from those of level l: means of the values around it, but no farther
// from an obstacle than nearGap times the nearest point. Contact then has the same extent on both levels, which means alone
// would reduce to points all around which are in contact. The values are continuous in those of level l, so that peers
// whose values differ little agree.
func (v *levels) inject(l int, dst []float64) {
	fine, coarse := v.grids[l], v.grids[l+1]
	layout := v.parts[l].Layout
	v.eachRow(l, v.parts[l+1].Layout.Interior(), func(r *row) {
		dense := layout.Dense(0, r.near.first[1], r.near.first[2])
		for x := range r.n {
			u := r.mean(x, fine.Values)
			if r.next[x] > 0 || r.count > 1 {
				i := r.nearest(x)
				near, d, e := fine.Values[r.near.at+i], dense+i, r.dense+x
				u = limit(u, coarse.Lower.At(e), coarse.Upper.At(e), near-fine.Lower.At(d), fine.Upper.At(d)-near)
			}
			dst[r.at+x] = u
		}
	})
}

// limit returns the value closest to u whose distances from both obstacles are at most nearGap times the given ones. Where
// there is none, because the gap between the obstacles is much wider than at the nearest point, it divides that part of the
// gap in the same ratio. The result is continuous, and the obstacle where a given distance is 0.
func limit(u, lower, upper, below, above float64) float64 {
	most, least := math.Inf(1), math.Inf(-1)
	if !math.IsInf(below, 1) {
		most = lower + float64(nearGap*below)
	}
	if !math.IsInf(above, 1) {
		least = upper - float64(nearGap*above)
	}
	switch {
	case least <= most:
		return max(least, min(most, u))
	case below+above <= 0:
		return u
	}
	return most + float64((least-most)*(below/(below+above)))
}

// nearGap is the largest ratio of the distances from an obstacle of a point of a level and of the nearest point of the finer
// one.
const nearGap = 4

// extrapolate sets the ghosts of a padded array that lie in the domain to the values of the ring. Points of a finer level,
// whose ring may lie outside, are interpolated from them.
func (p *part) extrapolate(u []float64) {
	l := p.Layout
	b, stride := l.Interior(), [3]int{1, l.Row, l.Plane}
	for a := range l.Dim {
		for side := range 2 {
			at, inward := -1, stride[a]
			if side == 1 {
				at, inward = l.N[a], -stride[a]
			}
			if p.Lo[a]+at < 0 || p.Lo[a]+at >= p.Global[a] {
				continue // the boundary
			}
			plane := b
			plane.Lo[a], plane.Hi[a] = at, at+1
			for z := plane.Lo[2]; z < plane.Hi[2]; z++ {
				for y := plane.Lo[1]; y < plane.Hi[1]; y++ {
					for x := plane.Lo[0]; x < plane.Hi[0]; x++ {
						i := l.Index(x, y, z)
						u[i] = u[i+inward]
					}
				}
			}
		}
		b.Lo[a], b.Hi[a] = -1, l.N[a]+1
	}
}
