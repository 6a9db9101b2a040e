package kernel

import "math"

// instructions names the instruction set of a variant's row loops.
type instructions int

const (
	plain instructions = iota
	avx2
	avx512
)

// line is one row of a box: where to read and write. c holds one more value on
// either side; the others are as long as the row. Neighbours of unused axes are
// rows of −0: adding −0 changes no bit, so one loop serves 1-D, 2-D and 3-D.
type line struct {
	dst, c, s, n, b, t []float64
	f, phi, psi        []float64
	at                 int // dense index of the row's first point
}

// constantRows stand for fields without an array, so that row loops read rows
// only.
type constantRows struct {
	source, lower, upper []float64
	none                 []float64             // −0
	zero                 []float64             // coefficients of unused axes
	values               [Directions]float64   // coefficients, 0 on unused axes
	arrays               [Directions][]float64 // coefficient arrays; nil on unused axes
	simple               bool                  // isotropic 3-D, constant source, no upper obstacle
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
		source: fill(s.source), lower: fill(s.lower), upper: fill(s.upper),
		none: filled(m, math.Copysign(0, -1)),
	}
	used := 1 + 2*s.layout.Dim
	copy(r.values[:used], s.operator.Values[:used])
	if s.operator.Form == Variable {
		r.zero = filled(m, 0)
		copy(r.arrays[:used], s.operator.Arrays[:used])
	}
	r.simple = s.operator.Form == Isotropic && s.layout.Dim == 3 && s.source.Array == nil &&
		s.upper.Array == nil && math.IsInf(s.upper.Value, 1)
	return r
}

func filled(m int, v float64) []float64 {
	row := make([]float64, m)
	for i := range row {
		row[i] = v
	}
	return row
}

// rowSweep goes through a box by rows, in tiles of rows that keep the planes
// above and below in the second-level cache.
func rowSweep(isa instructions) func(*Sweep, *Norm, []float64, []float64, []float64, Box) {
	return func(s *Sweep, n *Norm, dst, below, src []float64, b Box) {
		if s.layout.Dim == 1 && &below[0] != &src[0] {
			// Point after point: each reads the one just written.
			referenceSweep(s, n, dst, below, src, b)
			return
		}
		stream := isa != plain && dst != nil && &below[0] == &src[0] && s.streams(b)
		for lo := b.Lo[1]; lo < b.Hi[1]; lo += s.tile {
			hi := min(lo+s.tile, b.Hi[1])
			for z := b.Lo[2]; z < b.Hi[2]; z++ {
				for y := lo; y < hi; y++ {
					l := s.line(dst, below, src, b.Lo[0], b.Hi[0], y, z)
					if n != nil {
						r := n.scratch(b.Hi[0] - b.Lo[0])
						s.residualLine(isa, r, &l)
						n.addRow(r)
					}
					if dst != nil {
						s.relaxLine(isa, &l, stream)
					}
				}
			}
		}
		if stream {
			fence()
		}
	}
}

// line gathers the slices of one row, each cut to its length.
func (s *Sweep) line(dst, below, src []float64, lo, hi, y, z int) line {
	l, m := &s.layout, hi-lo
	i := l.Index(lo, y, z)
	at := l.Dense(lo, y, z)
	r := line{c: src[i-1:][: m+2 : m+2], at: at}
	none := s.rows.none[:m]
	r.s, r.n, r.b, r.t = none, none, none, none
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

// part is the row's part of a field, or of the row that stands for a constant.
func part(array, constant []float64, at, m int) []float64 {
	if array != nil {
		return array[at:][:m]
	}
	return constant[:m]
}

// coefficient is the row's part of a coefficient array.
func (s *Sweep) coefficient(direction int, l *line) []float64 {
	return part(s.rows.arrays[direction], s.rows.zero, l.at, len(l.s))
}

func (s *Sweep) relaxLine(isa instructions, l *line, stream bool) {
	switch {
	case isa != plain:
		s.relaxVector(isa, l, stream)
	case s.rows.simple:
		relaxSimple(l, s.operator.Diag, s.operator.Off, s.step, s.source.Value)
	case s.operator.Form == Isotropic:
		relaxIsotropic(l, s.operator.Diag, s.operator.Off, s.step)
	case s.operator.Form == Constant:
		relaxConstant(l, &s.rows.values, s.step)
	default:
		s.relaxVariable(l)
	}
}

func (s *Sweep) residualLine(isa instructions, r []float64, l *line) {
	if isa != plain {
		s.residualVector(isa, r, l)
		return
	}
	switch s.operator.Form {
	case Isotropic:
		defectIsotropic(r, l, s.operator.Diag, s.operator.Off)
	case Constant:
		defectConstant(r, l, &s.rows.values)
	default:
		s.defectVariable(r, l)
	}
	clampRow(r, l)
}

// streams tells whether a box is so large that what is written now will have left
// the caches before it is read: then stores that pass the caches save the read
// of every line written.
func (s *Sweep) streams(b Box) bool {
	const lastLevelBytes = 32 << 20
	return b.Points() >= lastLevelBytes/8
}
