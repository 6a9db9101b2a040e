package kernel

import "unsafe"

// loop is an assembly loop over the rows of a tile.
type loop int

// run runs a loop of avx2 or avx512.
func (isa instructionSet) run(l loop, t *tile) { runLoop(&t.out, 2*int(l)+int(isa-avx2)) }

// vectorTile processes rows [lo, hi) of a plane in assembly.
func (s *Sweep) vectorTile(isa instructionSet, stream bool, n *Norm, dst, below, src []float64, x0, x1, lo, hi, z int) {
	var t tile
	s.setConstants(&t)
	if n != nil {
		s.setTile(&t, below, src, x0, x1, lo, hi, z)
		r := n.scratch((hi - lo) * (x1 - x0))
		t.out, t.outStep = &r[0], 8*(x1-x0)
		isa.run(loopsOf[s.rows.form].residual, &t)
		isa.addRow(n, r)
	}
	if dst != nil {
		s.setTile(&t, below, src, x0, x1, lo, hi, z)
		t.out, t.outStep = &dst[s.layout.Index(x0, lo, z)], t.rowStep
		relax := loopsOf[s.rows.form].relax
		if stream && aligned(&t) {
			relax = loopsOf[s.rows.form].stream
		}
		isa.run(relax, &t)
	}
}

// aligned reports whether streaming stores of whole vectors may start at every row.
func aligned(t *tile) bool {
	return (uintptr(unsafe.Pointer(t.out))|uintptr(t.outStep))%64 == 0
}

// loopsOf holds the loops for a form of the operator.
var loopsOf = [...]struct{ residual, relax, stream, colour loop }{
	Isotropic: {residualIsotropic, relaxIsotropic, relaxIsotropicStream, relaxColourIsotropic},
	Constant:  {residualConstant, relaxConstant, relaxConstantStream, relaxColourConstant},
	Variable:  {residualVariable, relaxVariable, relaxVariable, relaxColourVariable},
	simple:    {residualIsotropic, relaxSimple, relaxSimpleStream, relaxColourSimple},
}

// colourTile relaxes the points of a colour in rows [lo, hi) of a plane in place.
func (s *Sweep) colourTile(isa instructionSet, factor float64, u []float64, x0, x1, lo, hi, z, odd int) {
	var t tile
	s.setConstants(&t)
	s.setTile(&t, u, u, x0, x1, lo, hi, z)
	t.step, t.odd = factor, odd
	isa.run(loopsOf[s.rows.form].colour, &t)
}

// defectTile writes values of that kind in rows [lo, hi) of a plane to out; rows of out are step bytes apart.
func (s *Sweep) defectTile(isa instructionSet, kind defectKind, out *float64, step int, u []float64, x0, x1, lo, hi,
	z int) {
	var t tile
	s.setConstants(&t)
	s.setTile(&t, u, u, x0, x1, lo, hi, z)
	t.out, t.outStep = out, step
	if kind == operatorImage {
		t.f, t.fStep = &s.rows.positiveZero[0], 0
	}
	if kind != clampedDefect {
		t.phi, t.phiStep = &s.rows.notANumber[0], 0
		t.psi, t.psiStep = &s.rows.notANumber[0], 0
	}
	isa.run(loopsOf[s.rows.form].residual, &t)
}
