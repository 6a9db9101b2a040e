package method

import "github.com/p2pdc/p2pdc/internal/kernel"

// weights holds the weights of interpolation that follows the diffusion, to the own points of a block and
// the points around it. Restriction is the transpose, scaled so that it preserves the mean.
type weights struct {
	fine, coarse kernel.Layout
	corners      int
	lo, size     [3]int // box of fine points with weights, in own indices
	values       []float32
	coarseBase   [3][]int32    // coarse own index at or before each of these fine points
	support      [3][][2]int32 // range of fine own points of each own coarse point, within the grid
	scale        float64
}

// SetEdges sets the diffusion e between the points of the whole grid. The arms of the level's points, which the
// next finer level truncates, are then encoded by resistance. Corrections of a coarser level, if Connect has connected
// one, follow the diffusion: prolongation and restriction use weights that vary from point to point. The coarser level
// needs its edges before the first Restrict. With e = nil interpolation is linear.
func (l *Level) SetEdges(e *Edges) {
	l.edges, l.weights = e, nil
	if e == nil || l.coarser == nil {
		return
	}
	fine, under := l.Part, l.coarser.Part
	t := newInterpolation(e, under.Global)
	w := &weights{fine: fine.Layout, coarse: under.Layout, corners: 1 << e.Dim, scale: 1, size: [3]int{1, 1, 1}}
	for a := range e.Dim {
		w.lo[a] = max(-1, -fine.Lo[a])
		w.size[a] = min(fine.Layout.N[a]+1, fine.Global[a]-fine.Lo[a]) - w.lo[a]
		w.scale *= float64(under.Global[a]+1) / float64(fine.Global[a]+1)
	}
	for a := range 3 {
		w.coarseBase[a] = make([]int32, w.size[a])
		for i := range w.coarseBase[a] {
			at, _ := t.coarseIndex(a, fine.Lo[a]+w.lo[a]+i)
			w.coarseBase[a][i] = int32(at - under.Lo[a])
		}
		w.support[a] = make([][2]int32, under.Layout.N[a])
		for j := range w.support[a] {
			lo, hi := t.support(a, under.Lo[a]+j)
			w.support[a][j] = [2]int32{int32(lo - fine.Lo[a]), int32(hi - fine.Lo[a])}
		}
	}
	w.values = make([]float32, w.corners*w.size[0]*w.size[1]*w.size[2])
	i := 0
	var parts [8]float64
	var first, end [3]int
	for a := range 3 {
		first[a] = fine.Lo[a] + w.lo[a]
		end[a] = first[a] + w.size[a]
	}
	eachPoint(first, end, func(p [3]int) {
		t.weights(p, 0, &parts)
		for _, v := range parts[:w.corners] {
			w.values[i] = float32(v)
			i++
		}
	})
	l.weights = w
	if l.Residual == nil {
		l.Residual = l.allocate(l.Part.Layout.Len())
	}
}

// CanFuse reports whether a stage of this level can be fused with adjacent stages (see Fuse).
// Stages with variable weights cannot, because they read the whole residual or correction.
func (l *Level) CanFuse(s Stage) bool {
	return l.weights == nil || s.Kind != Restrict && s.Kind != Prolong
}

// row returns the weights of fine own points from x on.
func (w *weights) row(x, y, z int) []float32 {
	return w.values[w.corners*(x-w.lo[0]+w.size[0]*(y-w.lo[1]+w.size[1]*(z-w.lo[2]))):]
}

// weight returns the weight of a coarse point at a fine point.
func (w *weights) weight(c, q [3]int) float64 {
	corner := 0
	for a := range 3 {
		switch c[a] - int(w.coarseBase[a][q[a]-w.lo[a]]) {
		case 0:
		case 1:
			corner |= 1 << a
		default:
			return 0
		}
	}
	return float64(w.row(q[0], q[1], q[2])[corner])
}

// prolongWeighted is Level.Prolong with variable weights.
func (l *Level) prolongWeighted(coarse *Level, keep []float64, b kernel.Box) {
	if keep != nil {
		copyPoints(l.Part.Layout, keep, l.Values, b)
	}
	l.weights.interpolate(coarse.Values, b, func(i, d int, e float64) {
		if u, lo, hi := l.Values[i], l.Lower.At(d), l.Upper.At(d); lo < u && u < hi {
			l.Values[i] = min(max(u+e, lo), hi)
		}
	})
}

// interpolate calls f with the interpolated values at the fine points of b, their padded and their dense indices.
func (w *weights) interpolate(e []float64, b kernel.Box, f func(i, d int, v float64)) {
	c := w.coarse
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i, d, of := w.fine.Index(b.Lo[0], y, z), w.fine.Dense(b.Lo[0], y, z), w.row(b.Lo[0], y, z)
			at := c.Index(0, int(w.coarseBase[1][y-w.lo[1]]), int(w.coarseBase[2][z-w.lo[2]]))
			for x, base := range w.coarseBase[0][b.Lo[0]-w.lo[0] : b.Hi[0]-w.lo[0]] {
				v := 0.0
				for corner, part := range of[w.corners*x:][:w.corners] {
					if part == 0 {
						continue // the value it would read may not exist
					}
					j := at + int(base) + corner&1
					if corner&2 != 0 {
						j += c.Row
					}
					if corner&4 != 0 {
						j += c.Plane
					}
					v += float64(float64(part) * e[j])
				}
				f(i+x, d+x, v)
			}
		}
	}
}

// restrict writes the restriction of r, padded, to the coarse points of b.
func (w *weights) restrict(dst, r []float64, b kernel.Box) {
	eachPoint(b.Lo, b.Hi, func(p [3]int) {
		dst[w.coarse.Index(p[0], p[1], p[2])] = float64(w.scale * w.sum(r, p))
	})
}

// sum returns the residual around a coarse point, weighted by its weights there.
func (w *weights) sum(r []float64, c [3]int) float64 {
	v := 0.0
	for fz := w.support[2][c[2]][0]; fz < w.support[2][c[2]][1]; fz++ {
		high := 4 * (c[2] - int(w.coarseBase[2][int(fz)-w.lo[2]]))
		for fy := w.support[1][c[1]][0]; fy < w.support[1][c[1]][1]; fy++ {
			corner := high + 2*(c[1]-int(w.coarseBase[1][int(fy)-w.lo[1]]))
			lo, hi := int(w.support[0][c[0]][0]), int(w.support[0][c[0]][1])
			of := w.row(lo, int(fy), int(fz))
			row := r[w.fine.Index(lo, int(fy), int(fz)):][:hi-lo]
			for i, residual := range row {
				k := corner + c[0] - int(w.coarseBase[0][lo+i-w.lo[0]])
				v += float64(float64(of[w.corners*i+k]) * residual)
			}
		}
	}
	return v
}
