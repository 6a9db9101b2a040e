package kernel

// RelaxColour relaxes in place the points of b whose colour is colour, that is
// (x + y + z + Config.Parity) & 1 of the own indices: all their neighbours have the
// other colour, so that the result does not depend on the order within b. With r as
// the package comment has it,
//
//	v = u − (omega/Center)·r      one diagonal for all points
//	v = u − omega·(r/Center)      variable coefficients
//
// and the two projections; 1 < omega < 2 over-relaxes (projected SOR; Cryer, SIAM J.
// Control 9, 1971). u is a padded array whose ghosts are read. Points of the other
// colour and beyond b are not written, but those of the other colour within b may be
// stored with the value that they have.
func (s *Sweep) RelaxColour(u []float64, colour int, omega float64, b Box) {
	s.check(b, u)
	if b.Empty() {
		return
	}
	s.relaxColour(u, colour, omega, b)
}

// RedBlack relaxes the whole block in place, colour 0 and then colour 1, sweeps
// times: the bits of as many calls of RelaxColour in that order, in fewer passes over
// memory. The ghosts are read and do not change, so only a block whose ghosts are
// boundary data can be relaxed by several sweeps at once. e shares the work out: by as
// many parts as its Threads() says where it has such a method. RedBlack of one Sweep is
// one goroutine's at a time.
func (s *Sweep) RedBlack(u []float64, omega float64, sweeps int, e Executor) {
	s.RedBlackPass(u, &Pass{Omega: omega, Sweeps: sweeps}, e)
}

// Pass is red-black sweeps over a whole block and what is done beside them while the rows
// are still in the cache.
type Pass struct {
	Omega  float64
	Sweeps int // 0: Done alone, without First
	// First is called for each row once, before anything relaxes it or reads it, so that it
	// may change the row; calls at the same time are for different rows. nil: nothing.
	Prepare func(lo, hi, z int)
	// Relaxed is called when rows [lo, hi) of plane z have been relaxed in a colour, before
	// anything reads them, so that it may change their points of that colour. nil: nothing.
	AfterColour func(colour, lo, hi, z int)
	// Done is called for each row once, when it, the rows before it in its plane and their
	// neighbours are final. Calls at the same time differ in worker, which is less than
	// Workers. nil: nothing.
	Final func(worker, lo, hi, z int)
}

// Workers bounds how many calls of Done e makes at the same time.
func Workers(e Executor) int {
	switch e := e.(type) {
	case Sequential:
		return 1
	case interface{ Threads() int }:
		return max(1, e.Threads())
	}
	return defaultSlabs
}

// RedBlackPass is RedBlack with what the pass has beside it, of which it keeps nothing; in
// 2-D the only plane is 0, as the only row is in 1-D. Both functions may write to u and to
// arrays of the caller's, at rows of theirs.
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

// relaxColour is RelaxColour of a box that was checked.
func (s *Sweep) relaxColour(u []float64, colour int, omega float64, b Box) {
	if s.kernel.loops == byPoint {
		s.referenceColour(u, colour, omega, b)
		return
	}
	factor := s.relaxationFactor(omega)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s.colourRows(u, colour, factor, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
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

// referenceColour is the contract of RelaxColour, point by point.
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
				u[i] = projected(u[i]-float64(factor*r), s.lower.At(d), s.upper.At(d))
			}
		}
	}
}

// start is the distance, 0 or 1, from (x, y, z) to the first point of the colour in
// its row.
func (s *Sweep) firstOfColour(colour, x, y, z int) int { return (x + y + z + s.parity + colour) & 1 }

// pace is what the residual is multiplied by: omega over the diagonal where there is
// one diagonal for all points.
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
