package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Walls are where the fine points in contact, at which a correction is 0, stand between
// two coarse points. Without them a coarse grid knows contact at its own points only, the
// place of the free boundary to half a spacing, and what it answers is wrong by that: a
// cycle then gains little, and in one dimension almost nothing. With them the arm of the
// stencil from a coarse point ends at the wall, at the part θ of the way, where it meets
// 0: the coefficient divided by θ stays on the diagonal and the neighbour behind the wall
// is not read. Along an axis this is the Galerkin product with interpolation cut off at
// points in contact (the truncation of Kornhuber, Numer. Math. 69, 1994).
//
// The arms of a point are one number, codes of 7 bits an arm, low axes and low sides
// first: 0 for a free arm, else 128·θ. An array of them is exchanged as others are.
const (
	wallBits  = 7
	wallScale = 1 << wallBits
)

// walled is a point that has a wall on some arm, with its row of the operator.
type walled struct {
	at     [3]int
	index  int // in padded arrays
	dense  int
	colour int
	center float64
	off    [2 * 3]float64 // of the neighbours; 0 behind a wall
}

// arm is the code of arm d (0 for West) of a point.
func arm(walls float64, d int) int {
	return int(uint64(walls)>>(wallBits*d)) & (wallScale - 1)
}

// wallCode is the code of θ, between 0 and 1.
func wallCode(theta float64) uint64 {
	return uint64(max(1, min(wallScale-1, math.Round(wallScale*theta))))
}

// inContact tells whether the own or ghost point p is in contact and stays: the residual
// presses on the obstacle. With a Residual that was marked, its sign of zero says so;
// otherwise p is an own point.
func (l *Level) inContact(p [3]int) bool {
	i := l.Part.Layout.Index(p[0], p[1], p[2])
	if l.Residual != nil {
		return l.Residual[i] == 0 && math.Signbit(l.Residual[i])
	}
	d := l.Part.Layout.Dense(p[0], p[1], p[2])
	u, lo, hi := l.Values[i], l.Lower.At(d), l.Upper.At(d)
	if lo < u && u < hi {
		return false
	}
	r := l.defect(i, d)
	return (u > lo || r >= 0) && (u < hi || r <= 0)
}

// mark gives the residual of points in contact that stay there a −0, and no other.
func (l *Level) mark(b kernel.Box) {
	layout := l.Part.Layout
	n := b.Hi[0] - b.Lo[0]
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i, d := layout.Index(b.Lo[0], y, z), layout.Dense(b.Lo[0], y, z)
			for x, r := range l.Residual[i : i+n] {
				if r != 0 {
					continue
				}
				l.Residual[i+x] = 0
				if u := l.Values[i+x]; !(l.Lower.At(d+x) < u && u < l.Upper.At(d+x)) {
					l.Residual[i+x] = math.Copysign(0, -1)
				}
			}
		}
	}
}

// wallsOf are the walls around point at of the next coarser grid, which lies on the fine
// point p.
func (l *Level) wallsOf(coarse *Level, at, p [3]int) float64 {
	var code uint64
	c := coarse.Part
	for a := range c.Layout.Dim {
		for side := range 2 {
			step := 2*side - 1
			end := l.nearest(coarse, a, at[a]+step)
			if theta := l.wallTowards(coarse, at[a], p, a, step, end); theta < 1 {
				code |= wallCode(theta) << (wallBits * (2*a + side))
			}
		}
	}
	return float64(code)
}

// wallTowards is the part of the way from coarse own index at, which lies on p or next to
// it, to the next coarse point along axis a, next to own index end, at which a wall stands;
// 1: there is none.
func (l *Level) wallTowards(coarse *Level, at int, p [3]int, a, step, end int) float64 {
	d := 2*a + (step+1)/2
	spacing := float64(l.Part.Global[a]+1) / float64(coarse.Part.Global[a]+1)
	from := float64(coarse.Part.Lo[a]+at+1)*spacing - float64(l.Part.Lo[a]+1) // exact where grids are nested
	for q := p; q[a] != end; q[a] += step {
		gone := (float64(q[a]) - from) * float64(step)
		if q != p && l.inContact(q) {
			return gone / spacing
		}
		if l.Walls != nil {
			if code := arm(l.Walls[l.Part.Layout.Index(q[0], q[1], q[2])], d); code > 0 {
				return (gone + float64(code)/wallScale) / spacing
			}
		}
	}
	return 1
}

// nearest is the fine own index on which point j of the next coarser block lies, or next
// to it; j may be a ghost.
func (l *Level) nearest(coarse *Level, a, j int) int {
	nf, nc := l.Part.Global[a], coarse.Part.Global[a]
	at := (coarse.Part.Lo[a] + j + 1) * (nf + 1)
	n := at/(nc+1) - 1 - l.Part.Lo[a]
	if 2*(at%(nc+1)) > nc+1 {
		n++
	}
	return n
}

// Wall makes the list of points that have walls from Walls, whole: after Restrict has
// written all of them, or after they have been brought from elsewhere.
func (l *Level) Wall() {
	l.walled = l.walled[:0]
	if l.Walls == nil {
		return
	}
	layout := l.Part.Layout
	for z := range layout.N[2] {
		for y := range layout.N[1] {
			i, d := layout.Index(0, y, z), layout.Dense(0, y, z)
			for x, code := range l.Walls[i : i+layout.N[0]] {
				if code != 0 {
					l.walled = append(l.walled, l.rowOf([3]int{x, y, z}, i+x, d+x, code))
				}
			}
		}
	}
}

// rowOf is the operator's row at a point with walls.
func (l *Level) rowOf(at [3]int, i, d int, code float64) walled {
	w := walled{at: at, index: i, dense: d, colour: (at[0] + at[1] + at[2] + l.parity) & 1, center: l.coefficient(kernel.Center, d)}
	for k := range 2 * l.Part.Layout.Dim {
		off := l.coefficient(kernel.West+k, d)
		if c := arm(code, k); c > 0 {
			w.center += off*wallScale/float64(c) - off
			continue
		}
		w.off[k] = off
	}
	return w
}

// coefficient is that of the operator in a direction at dense index d, of the diagonal for
// Center.
func (l *Level) coefficient(direction, d int) float64 {
	op := &l.operator
	switch {
	case op.Form == kernel.Constant:
		return op.Values[direction]
	case op.Form == kernel.Variable:
		return op.Arrays[direction][d]
	case direction == kernel.Center:
		return op.Diag
	}
	return op.Off
}

// neighbours is Σ coefficient·neighbour at a point with walls.
func (l *Level) neighbours(w *walled) float64 {
	u, i := l.Values, w.index
	stride := [3]int{1, l.Part.Layout.Row, l.Part.Layout.Plane}
	sum := 0.0
	for a := range l.Part.Layout.Dim {
		sum += float64(w.off[2*a]*u[i-stride[a]]) + float64(w.off[2*a+1]*u[i+stride[a]])
	}
	return sum
}

// relaxWalled relaxes the points of one colour in b that have walls, with factor 1: the
// kernels have taken them for ordinary ones.
func (l *Level) relaxWalled(colour int, b kernel.Box) {
	for i := range l.walled {
		w := &l.walled[i]
		if w.colour != colour || !holds(b, w.at) {
			continue
		}
		v := (l.neighbours(w) + l.Source.At(w.dense)) / w.center
		if lo := l.Lower.At(w.dense); lo > v {
			v = lo
		}
		if hi := l.Upper.At(w.dense); hi < v {
			v = hi
		}
		l.Values[w.index] = v
	}
}

// defectWalled writes the residual at points in b that have walls.
func (l *Level) defectWalled(b kernel.Box) {
	for i := range l.walled {
		w := &l.walled[i]
		if !holds(b, w.at) {
			continue
		}
		u := l.Values[w.index]
		r := (float64(w.center*u) - l.neighbours(w)) - l.Source.At(w.dense)
		if u <= l.Lower.At(w.dense) && r > 0 || u >= l.Upper.At(w.dense) && r < 0 {
			r = 0
		}
		l.Residual[w.index] = r
	}
}

// defect is A·u − f at an own point, padded index i, without walls: the kernels' bits.
func (l *Level) defect(i, d int) float64 {
	u, stride := l.Values, [3]int{1, l.Part.Layout.Row, l.Part.Layout.Plane}
	isotropic := l.operator.Form == kernel.Isotropic
	sum := 0.0
	for a := range l.Part.Layout.Dim {
		low, high := u[i-stride[a]], u[i+stride[a]]
		if !isotropic {
			low, high = float64(l.coefficient(kernel.West+2*a, d)*low), float64(l.coefficient(kernel.East+2*a, d)*high)
		}
		if a == 0 {
			sum = low + high
			continue
		}
		sum += low + high
	}
	if isotropic {
		sum = float64(l.operator.Off * sum)
	}
	return (float64(l.coefficient(kernel.Center, d)*u[i]) - sum) - l.Source.At(d)
}

// span is where in a row the first and the last point in contact, or with walls, lie;
// first > last: there is none.
type span struct{ first, last int32 }

var nowhere = span{math.MaxInt32 >> 1, -1 << 30}

// Contacts notes where the rows of b, whole but for their ghosts, are in contact or have
// walls, so that Restrict looks for walls only there. b may hold ghosts of the other axes,
// if the marked Residual and Walls were brought there.
func (l *Level) Contacts(b kernel.Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			l.spans[l.rowIndex(y, z)] = l.spanOf(y, z)
		}
	}
}

func (l *Level) rowIndex(y, z int) int { return y + 1 + (l.Part.Layout.N[1]+2)*(z+1) }

// spanOf is the span of a row.
func (l *Level) spanOf(y, z int) span {
	layout := l.Part.Layout
	n, i := layout.N[0], layout.Index(0, y, z)
	s := nowhere
	if l.Residual != nil {
		for x, r := range l.Residual[i-1 : i+n+1] {
			if math.Float64bits(r) == 1<<63 {
				s.add(x - 1)
			}
		}
	} else {
		d := layout.Dense(0, y, z)
		s = touches(l.Values[i:i+n], l.Lower, d, 1)
		if t := touches(l.Values[i:i+n], l.Upper, d, -1); t.first <= t.last {
			s.add(int(t.first))
			s.add(int(t.last))
		}
	}
	if l.Walls != nil {
		for x, w := range l.Walls[i-1 : i+n+1] {
			if w != 0 {
				s.add(x - 1)
			}
		}
	}
	return s
}

func (s *span) add(x int) { s.first, s.last = min(s.first, int32(x)), max(s.last, int32(x)) }

// touches is where a row touches an obstacle whose row begins at dense index d: a lower
// one (side 1) or an upper one (side −1).
func touches(row []float64, f kernel.Field, d int, side float64) span {
	if f.Array == nil && math.IsInf(f.Value, 0) {
		return nowhere
	}
	touch := func(x int) bool { return side*(row[x]-f.At(d+x)) <= 0 }
	first := 0
	if f.Array != nil && side > 0 {
		for o := f.Array[d : d+len(row)]; first < len(o) && row[first] > o[first]; {
			first++
		}
	} else {
		for first < len(row) && !touch(first) {
			first++
		}
	}
	if first == len(row) {
		return nowhere
	}
	last := len(row) - 1
	for !touch(last) {
		last--
	}
	return span{int32(first), int32(last)}
}

// around is the span of the rows that the arms of row (y, z) of the next coarser grid pass.
func (l *Level) around(coarse *Level, y, z int) span {
	if l.spans == nil {
		return span{math.MinInt32 >> 1, math.MaxInt32 >> 1}
	}
	fy, fz := l.near[1][y].nearest, l.near[2][z].nearest
	s := nowhere
	join := func(t span) { s.first, s.last = min(s.first, t.first), max(s.last, t.last) }
	for a := l.nearest(coarse, 1, y-1) + 1; a < l.nearest(coarse, 1, y+1); a++ {
		join(l.spans[l.rowIndex(a, fz)])
	}
	for a := l.nearest(coarse, 2, z-1) + 1; a < l.nearest(coarse, 2, z+1); a++ {
		join(l.spans[l.rowIndex(fy, a)])
	}
	return s
}

func holds(b kernel.Box, p [3]int) bool {
	for a := range p {
		if p[a] < b.Lo[a] || p[a] >= b.Hi[a] {
			return false
		}
	}
	return true
}
