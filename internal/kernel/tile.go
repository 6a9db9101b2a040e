package kernel

import "unsafe"

// tile is the argument of the assembly loops: some rows of one plane. The generator knows the offsets of its fields.
// The steps are the distances between rows in bytes; a step of 0 repeats a row that holds a constant.
type tile struct {
	out              *float64 // new values, or the residual
	c                *float64 // west neighbour of the first point
	s, n, b, t       *float64 // neighbours in y and z; rows of −0 for unused axes
	f, phi, psi      *float64
	count, rows      int // points of a row; rows, counted down
	outStep          int
	rowStep          int // of c, s, n
	planeStep        int // of b, t
	fStep            int
	phiStep, psiStep int
	step, source     float64
	k                [Directions]float64 // coefficients; k[Center] and k[West] if isotropic
	// p are addresses of rows of coefficients. The assembly advances them in the tile, finally past the end
	// of the arrays, where a Go pointer must not point. The Sweep keeps the arrays alive.
	p            [Directions]uintptr
	xStep        int // of p along x and at the center
	yStep, zStep int // of p along y and z; 0 on unused axes
	odd          int // in place: offset, 0 or 1, of the first point of the colour in the first row
}

// setTile sets the pointers of the tile to rows [lo, hi) of plane z, points [x0, x1). The caller sets out.
func (s *Sweep) setTile(t *tile, below, src []float64, x0, x1, lo, hi, z int) {
	l := &s.layout
	i, at := l.Index(x0, lo, z), l.Dense(x0, lo, z)
	t.count, t.rows = x1-x0, hi-lo
	t.rowStep = 8 * l.Row
	t.c = &src[i-1]
	unused := &s.rows.negativeZero[0]
	t.s, t.n = unused, unused
	t.b, t.t = unused, unused
	switch l.Dim {
	case 2:
		t.s, t.n = &below[i-l.Row], &src[i+l.Row]
	case 3:
		t.s, t.n = &src[i-l.Row], &src[i+l.Row]
		t.b, t.t = &below[i-l.Plane], &src[i+l.Plane]
		t.planeStep = t.rowStep
	}
	t.f, t.fStep = s.fieldRow(s.source.Array, s.rows.source, at)
	t.phi, t.phiStep = s.fieldRow(s.lower.Array, s.rows.lower, at)
	t.psi, t.psiStep = s.fieldRow(s.upper.Array, s.rows.upper, at)
	if s.operator.Form == Variable {
		for d := range t.p {
			row, _ := s.fieldRow(s.rows.arrays[d], s.rows.unusedCoefficients, at)
			t.p[d] = uintptr(unsafe.Pointer(row))
		}
		t.xStep = 8 * l.N[0]
		if l.Dim > 1 {
			t.yStep = t.xStep
		}
		if l.Dim > 2 {
			t.zStep = t.xStep
		}
	}
}

// fieldRow returns the address of a field's first value in a tile and the distance between its rows in bytes.
func (s *Sweep) fieldRow(array, constant []float64, at int) (*float64, int) {
	if array != nil {
		return &array[at], 8 * s.layout.N[0]
	}
	return &constant[0], 0
}

// setConstants sets the fields that are the same in every tile.
func (s *Sweep) setConstants(t *tile) {
	t.step, t.source = s.step, s.source.Value
	t.k = s.rows.values
	if s.operator.Form == Isotropic {
		t.k[Center], t.k[West] = s.operator.Diag, s.operator.Off
	}
}
