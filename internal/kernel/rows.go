package kernel

import "math"

// instructionSet selects the implementation of a variant's loops.
type instructionSet int

const (
	byPoint instructionSet = iota // the reference loops
	plain
	vectorGo
	avx2
	avx512
)

// simple is the isotropic form with a constant source and no upper obstacle.
const simple = Variable + 1

// constantRows are rows that replace absent arrays, so that the loops read rows only. The neighbours along unused
// axes are rows of −0: adding −0 changes no bit, hence one loop serves 1-D, 2-D and 3-D.
type constantRows struct {
	source, lower, upper     []float64
	negativeZero             []float64             // −0
	positiveZero, notANumber []float64             // +0; NaN, which no value touches as an obstacle
	unusedCoefficients       []float64             // coefficients of unused axes
	values                   [Directions]float64   // coefficients, 0 on unused axes
	arrays                   [Directions][]float64 // coefficient arrays; nil on unused axes
	form                     Form                  // that of the operator, or simple
}

func newConstantRows(s *Sweep) constantRows {
	m := s.layout.N[0]
	fill := func(f Field) []float64 {
		if f.Array != nil {
			return nil
		}
		return filled(m, f.Value)
	}
	r := constantRows{
		source:       fill(s.source),
		lower:        fill(s.lower),
		upper:        fill(s.upper),
		negativeZero: filled(m, math.Copysign(0, -1)),
		positiveZero: filled(m, 0),
		notANumber:   filled(m, math.NaN()),
	}
	used := 1 + 2*s.layout.Dim
	copy(r.values[:used], s.operator.Values[:used])
	if s.operator.Form == Variable {
		r.unusedCoefficients = r.positiveZero
		copy(r.arrays[:used], s.operator.Arrays[:used])
	}
	r.form = s.operator.Form
	if r.form == Isotropic && s.source.Array == nil && s.upper.Array == nil && math.IsInf(s.upper.Value, 1) {
		r.form = simple
	}
	return r
}

func filled(m int, v float64) []float64 {
	row := make([]float64, m)
	for i := range row {
		row[i] = v
	}
	return row
}

// residualBatch is the number of residual values that are computed before they are added, so that
// they are still in the first-level cache.
const residualBatch = 1024

// rowSweep returns a sweep over the rows of a box, in tiles of rows that keep the planes above and
// below in the second-level cache.
func rowSweep(isa instructionSet) func(*Sweep, *Norm, []float64, []float64, []float64, Box) {
	return func(s *Sweep, n *Norm, dst, below, src []float64, b Box) {
		jacobi := &below[0] == &src[0]
		if s.layout.Dim == 1 && !jacobi {
			// Every point reads the value just written at the point before it.
			referenceSweep(s, n, dst, below, src, b)
			return
		}
		batch := s.tile // rows per call
		if n != nil {
			batch = min(batch, max(1, residualBatch/(b.Hi[0]-b.Lo[0])))
		}
		stream := jacobi && s.streams
		x0, x1 := b.Lo[0], b.Hi[0]
		for first := b.Lo[1]; first < b.Hi[1]; first += s.tile {
			end := min(first+s.tile, b.Hi[1])
			for z := b.Lo[2]; z < b.Hi[2]; z++ {
				for lo := first; lo < end; lo += batch {
					hi := min(lo+batch, end)
					if isa == plain || isa == vectorGo {
						s.plainTile(isa, n, dst, below, src, x0, x1, lo, hi, z)
					} else {
						s.vectorTile(isa, stream, n, dst, below, src, x0, x1, lo, hi, z)
					}
				}
			}
		}
		if stream && dst != nil && isa >= avx2 {
			fence()
		}
	}
}

// plainTile processes rows [lo, hi) of a plane in plain Go.
func (s *Sweep) plainTile(isa instructionSet, n *Norm, dst, below, src []float64, x0, x1, lo, hi, z int) {
	if n == nil && s.rows.form == simple && s.layout.Dim == 3 && s.lower.Array != nil {
		if isa == vectorGo {
			s.relaxSimpleVector(dst, below, src, x0, x1, lo, hi, z)
		} else {
			s.relaxSimple(dst, below, src, x0, x1, lo, hi, z)
		}
		return
	}
	for y := lo; y < hi; y++ {
		l := s.line(dst, below, src, x0, x1, y, z)
		if n != nil {
			r := n.scratch(x1 - x0)
			s.defect(r, &l)
			clampRow(r, &l)
			n.addRow(r)
		}
		if dst != nil {
			s.defect(l.dst, &l)
			project(&l, s.step)
		}
	}
}

// line holds the slices of one row of a box. c has one more value on either side; all others have
// the length of the row.
type line struct {
	dst, c, s, n, b, t []float64
	f, phi, psi        []float64
	at                 int // dense index of the row's first point
}

// line returns the slices of one row.
func (s *Sweep) line(dst, below, src []float64, x0, x1, y, z int) line {
	l, m := &s.layout, x1-x0
	i, at := l.Index(x0, y, z), l.Dense(x0, y, z)
	r := line{c: src[i-1:][: m+2 : m+2], at: at}
	unused := s.rows.negativeZero[:m]
	r.s, r.n = unused, unused
	r.b, r.t = unused, unused
	switch l.Dim {
	case 2:
		r.s, r.n = below[i-l.Row:][:m], src[i+l.Row:][:m]
	case 3:
		r.s, r.n = src[i-l.Row:][:m], src[i+l.Row:][:m]
		r.b, r.t = below[i-l.Plane:][:m], src[i+l.Plane:][:m]
	}
	if dst != nil {
		r.dst = dst[i:][:m]
	}
	r.f = part(s.source.Array, s.rows.source, at, m)
	r.phi = part(s.lower.Array, s.rows.lower, at, m)
	r.psi = part(s.upper.Array, s.rows.upper, at, m)
	return r
}

// part returns the row's part of a field's array, or of the row that replaces it.
func part(array, constant []float64, at, m int) []float64 {
	if array != nil {
		return array[at:][:m]
	}
	return constant[:m]
}

// coefficient returns the row's part of a coefficient array.
func (s *Sweep) coefficient(direction int, l *line) []float64 {
	return part(s.rows.arrays[direction], s.rows.unusedCoefficients, l.at, len(l.s))
}
