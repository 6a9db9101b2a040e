package kernel

// RelaxColour relaxes in place the points of b of one colour: those with (x + y + z +
// Config.Parity) & 1 = colour. All neighbours of a point have the other colour, so the result does
// not depend on the order within b. With r as in the package comment,
//
//	v = u − (omega/Center)·r      one diagonal for all points
//	v = u − omega·(r/Center)      variable coefficients
//
// followed by the two projections. 1 < omega < 2 over-relaxes (projected SOR; Cryer, SIAM J.
// Control 9, 1971). u is a padded array whose ghosts are read. Points of the other colour in b may
// be stored with their old values; no other point is written.
func (s *Sweep) RelaxColour(u []float64, colour int, omega float64, b Box) {
	switch {
	case !s.check(b, u):
		return
	case s.kernel.loops == byPoint:
		s.referenceColour(u, colour, omega, b)
		return
	}
	factor := s.relaxationFactor(omega)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s.colourRows(u, colour, factor, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
	}
}

// RedBlack relaxes the whole block in place sweeps times, colour 0 and then colour 1. The bits are those of as many
// calls of RelaxColour in that order, with fewer passes over memory. Ghosts are read and do not change, so several
// sweeps at once are valid only for a block whose ghosts are boundary data. The work is divided into as many parts as
// e.Threads() returns, if e has that method. One Sweep runs one RedBlack at a time.
func (s *Sweep) RedBlack(u []float64, omega float64, sweeps int, e Executor) {
	s.RedBlackPass(u, &Pass{Omega: omega, Sweeps: sweeps}, e)
}

// Pass describes red-black sweeps over a whole block and functions that are called while the rows
// are still in the cache.
type Pass struct {
	Omega  float64
	Sweeps int // if 0, only Final is called
	// Prepare, if not nil, is called once for each row, before the row is relaxed or read. It may change the
	// row. Concurrent calls get different rows.
	Prepare func(lo, hi, z int)
	// AfterColour, if not nil, is called after rows [lo, hi) of plane z have been relaxed in a colour and
	// before they are read. It may change their points of that colour.
	AfterColour func(colour, lo, hi, z int)
	// Final, if not nil, is called once for each row, when the row, the rows before it in its plane and the
	// neighbours of all these are final. Concurrent calls get different values of worker, less than Workers.
	Final func(worker, lo, hi, z int)
}

// Workers returns an upper bound of the concurrent calls of Pass.Final under e.
func Workers(e Executor) int {
	switch e := e.(type) {
	case Sequential:
		return 1
	case interface{ Threads() int }:
		return max(1, e.Threads())
	}
	return defaultSlabs
}

// RedBlackPass is RedBlack with the functions of p, which it does not retain. In 2-D the only plane is 0, in 1-D also
// the only row. The functions may write to u, and to arrays of the caller, at their rows.
func (s *Sweep) RedBlackPass(u []float64, p *Pass, e Executor) {
	b := s.layout.Interior()
	s.check(b, u)
	if s.kernel.loops != byPoint {
		s.wavefront.relax(u, p, e)
		return
	}
	for z := 0; z < b.Hi[2] && p.Prepare != nil && p.Sweeps > 0; z++ {
		p.Prepare(0, b.Hi[1], z)
	}
	for half := range 2 * p.Sweeps {
		s.referenceColour(u, half%2, p.Omega, b)
		for z := 0; z < b.Hi[2] && p.AfterColour != nil; z++ {
			p.AfterColour(half%2, 0, b.Hi[1], z)
		}
	}
	for z := 0; z < b.Hi[2] && p.Final != nil; z++ {
		p.Final(0, 0, b.Hi[1], z)
	}
}

// colourRows relaxes the points of a colour in rows [lo, hi) of plane z.
func (s *Sweep) colourRows(u []float64, colour int, factor float64, x0, x1, lo, hi, z int) {
	odd := s.firstOfColour(colour, x0, lo, z)
	if s.kernel.loops >= avx2 {
		s.colourTile(s.kernel.loops, factor, u, x0, x1, lo, hi, z, odd)
		return
	}
	for y := lo; y < hi; y++ {
		l := s.line(nil, u, u, x0, x1, y, z)
		switch s.operator.Form {
		case Isotropic:
			colourIsotropic(&l, odd, s.operator.Diag, s.operator.Off, factor)
		case Constant:
			colourConstant(&l, odd, &s.rows.values, factor)
		default:
			s.colourVariable(&l, odd, factor)
		}
		odd ^= 1
	}
}

// referenceColour executes the contract of RelaxColour point by point.
func (s *Sweep) referenceColour(u []float64, colour int, omega float64, b Box) {
	factor := s.relaxationFactor(omega)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0] + s.firstOfColour(colour, b.Lo[0], y, z); x < b.Hi[0]; x += 2 {
				i, d := s.layout.Index(x, y, z), s.layout.Dense(x, y, z)
				r := s.defectAt(u, u, i, d)
				if s.operator.Form == Variable {
					r /= s.operator.Arrays[Center][d]
				}
				u[i] = Clamp(u[i]-float64(factor*r), s.lower.At(d), s.upper.At(d))
			}
		}
	}
}

// firstOfColour returns the distance, 0 or 1, from (x, y, z) to the first point of the colour in its row.
func (s *Sweep) firstOfColour(colour, x, y, z int) int { return (x + y + z + s.parity + colour) & 1 }

// relaxationFactor returns the factor of the residual: omega over the diagonal if one diagonal
// serves all points, else omega.
func (s *Sweep) relaxationFactor(omega float64) float64 {
	switch s.operator.Form {
	case Isotropic:
		return omega / s.operator.Diag
	case Constant:
		return omega / s.operator.Values[Center]
	default:
		return omega
	}
}
