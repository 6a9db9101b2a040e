package kernel

// Restriction ascends the fine planes. Rows of each plane are summed along y and x into coarse rows, which are then
// added to the coarse planes whose support includes the fine plane. dst holds the partial sums.

// roomFloats is the size of a restriction's scratch memory on the stack. smallRoom suffices for small
// grids and avoids clearing the larger array.
const (
	roomFloats = 12 << 10
	smallRoom  = 1 << 10
)

// restriction is a restriction of u in progress.
type restriction struct {
	*Transfer
	dst, u []float64
	b      Box
}

// restrictFast restricts u by rows. It returns false, and does nothing, if the grids differ so much that
// a row does not fit the scratch memory.
func (t *Transfer) restrictFast(dst, u []float64, b Box) bool {
	return t.restrictSmall(dst, u, b) || t.restrictLarge(dst, u, b)
}

func (t *Transfer) restrictSmall(dst, u []float64, b Box) bool {
	var room [smallRoom]float64
	r := restriction{t, dst, u, b}
	return r.scratchFloats(b.Hi[0]-b.Lo[0], b.Hi[1]-b.Lo[1]) <= smallRoom && r.run(room[:])
}

func (t *Transfer) restrictLarge(dst, u []float64, b Box) bool {
	var room [roomFloats]float64
	r := restriction{t, dst, u, b}
	return r.run(room[:])
}

// run processes the box in chunks of columns and rows. It returns false, and does nothing, if not even one row fits.
func (r *restriction) run(room []float64) bool {
	nx, ny := r.b.Hi[0]-r.b.Lo[0], r.b.Hi[1]-r.b.Lo[1]
	for r.scratchFloats(nx, 1) > len(room) {
		if nx == 1 {
			return false
		}
		nx = (nx + 1) / 2
	}
	for ny > 1 && r.scratchFloats(nx, ny) > len(room) {
		ny = (ny + 1) / 2
	}
	for x := r.b.Lo[0]; x < r.b.Hi[0]; x += nx {
		for y := r.b.Lo[1]; y < r.b.Hi[1]; y += ny {
			c := r.b
			c.Lo[0], c.Hi[0] = x, min(x+nx, c.Hi[0])
			c.Lo[1], c.Hi[1] = y, min(y+ny, c.Hi[1])
			r.chunk(c, room)
		}
	}
	return true
}

// scratchFloats bounds the scratch values that a chunk of nx by ny coarse points needs: their sums and one
// row summed along y.
func (r *restriction) scratchFloats(nx, ny int) int { return nx*ny + r.axes[0].maxFinePoints(nx) }

// maxFinePoints bounds the length of the range of fine points that n coarse points read.
func (a *axis) maxFinePoints(n int) int { return (n+1)*(a.fineTotal+1)/(a.coarseTotal+1) + 2 }

// chunk restricts to a box whose sums fit the scratch memory.
func (r *restriction) chunk(c Box, room []float64) {
	nx, ny := c.Hi[0]-c.Lo[0], c.Hi[1]-c.Lo[1]
	sums, room := room[:nx*ny], room[nx*ny:]
	var all Box // fine points that the chunk reads
	for a := range c.Lo {
		all.Lo[a], all.Hi[a] = r.axes[a].fineRange(c.Lo[a], c.Hi[a])
	}
	z := c.Lo[2]
	r.clearEmpty(c)
	for fz := all.Lo[2]; fz < all.Hi[2]; fz++ {
		for z < c.Hi[2] && (r.axes[2].supports[z].count == 0 || r.axes[2].supports[z].end() <= fz) {
			z++
		}
		if z == c.Hi[2] || r.axes[2].supports[z].first > fz {
			continue // no coarse plane reads fz
		}
		fine := all
		fine.Lo[2], fine.Hi[2] = fz, fz+1
		l := &r.fine.Layout
		r.sumPlane(sums, r.u[l.Index(fine.Lo[0], fine.Lo[1], fz):], l.Row, room, c, fine)
		for at := z; at < c.Hi[2]; at++ {
			if s := r.axes[2].supports[at]; s.first <= fz && fz < s.end() {
				r.addPlane(sums, nx, c, at, fz)
			} else if s.count > 0 {
				break
			}
		}
	}
}

// clearEmpty clears the coarse planes that read no fine plane, which exist only if the grid is not coarser.
func (r *restriction) clearEmpty(c Box) {
	for z := c.Lo[2]; z < c.Hi[2]; z++ {
		for y := c.Lo[1]; y < c.Hi[1] && r.axes[2].supports[z].count == 0; y++ {
			clear(r.dst[r.coarse.Layout.Index(c.Lo[0], y, z):][:c.Hi[0]-c.Lo[0]])
		}
	}
}

// sumPlane sums the fine rows of a plane along y and x. Consecutive rows are stride values apart.
func (r *restriction) sumPlane(sums, rows []float64, stride int, room []float64, c, fine Box) {
	nx := c.Hi[0] - c.Lo[0]
	if r.axes[0].nested && r.axes[1].nested {
		r.kernel.loops.restrict(sums, rows, stride, nx, c.Hi[1]-c.Lo[1])
		return
	}
	width := fine.Hi[0] - fine.Lo[0]
	for y := c.Lo[1]; y < c.Hi[1]; y++ {
		sum, s := sums[(y-c.Lo[1])*nx:][:nx], r.axes[1].supports[y]
		row := room[:width]
		if s.count == 0 {
			clear(row)
		}
		for i, w := range r.axes[1].weights[s.firstWeight:][:s.count] {
			in, acc := rows[(s.first+i-fine.Lo[1])*stride:][:width], row
			if i == 0 {
				acc = r.negativeZero[:width]
			}
			r.kernel.loops.addRows(row, 0, acc, 0, in, 0, width, 1, w, 1)
		}
		r.axes[0].gatherRow(sum, row, c.Lo[0], fine.Lo[0])
	}
}

// gatherRow sums a row along x. The first value of dst belongs to coarse point x, the first value
// of row to fine point first.
func (a *axis) gatherRow(dst, row []float64, x, first int) {
	for i, s := range a.supports[x:][:len(dst)] {
		w := a.weights[s.firstWeight:][:s.count]
		in := row[max(0, s.first-first):]
		switch len(w) {
		case 0:
			dst[i] = 0
		case 3: // the usual case: about two fine points per coarse point
			in = in[:3]
			dst[i] = (float64(w[0]*in[0]) + float64(w[1]*in[1])) + float64(w[2]*in[2])
		case 4:
			in = in[:4]
			dst[i] = ((float64(w[0]*in[0]) + float64(w[1]*in[1])) + float64(w[2]*in[2])) + float64(w[3]*in[3])
		default:
			v := float64(w[0] * in[0])
			for j := 1; j < len(w); j++ {
				v += float64(w[j] * in[j])
			}
			dst[i] = v
		}
	}
}

// addPlane adds the sums of fine plane fz to coarse plane z. Consecutive rows of sums are stride values apart.
func (r *restriction) addPlane(sums []float64, stride int, c Box, z, fz int) {
	l, s, nx := r.coarse.Layout, r.axes[2].supports[z], c.Hi[0]-c.Lo[0]
	w, scale := r.axes[2].weights[s.firstWeight+fz-s.first], 1.0
	if fz == s.end()-1 {
		scale = r.scale
	}
	out := r.dst[l.Index(c.Lo[0], c.Lo[1], z):]
	acc, step := out, l.Row
	if fz == s.first {
		acc, step = r.negativeZero, 0
	}
	r.kernel.loops.addRows(out, l.Row, acc, step, sums, stride, nx, c.Hi[1]-c.Lo[1], w, scale)
}

// addRowsPlain sets ny rows of nx values of out to scale·(acc + w·in). The steps are distances
// between rows in values, 0 for an array of a single row.
func addRowsPlain(out []float64, outStep int, acc []float64, accStep int, in []float64, inStep, nx, ny int, w,
	scale float64) {
	for y := range ny {
		o, a, b := out[y*outStep:][:nx], acc[y*accStep:][:nx], in[y*inStep:][:nx]
		for i := range o {
			o[i] = float64(scale * (a[i] + float64(w*b[i])))
		}
	}
}

// restrictRowsPlain applies the weights 1, 2, 1 along y and then x to ny rows of nx coarse points.
func restrictRowsPlain(out, rows []float64, stride, nx, ny int) {
	for y := range ny {
		dst := out[y*nx:][:nx]
		s, c, n := rows[2*y*stride:][:2*nx+1], rows[(2*y+1)*stride:][:2*nx+1], rows[(2*y+2)*stride:][:2*nx+1]
		west := (s[0] + 2*c[0]) + n[0]
		for x := range dst {
			i := 2*x + 1
			mid := (s[i] + 2*c[i]) + n[i]
			east := (s[i+1] + 2*c[i+1]) + n[i+1]
			dst[x] = (west + 2*mid) + east
			west = east
		}
	}
}
