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
	b := s.layout.Interior()
	s.check(b, u)
	if s.kernel.loops != byPoint {
		s.wavefront.relax(u, s.pace(omega), sweeps, e)
		return
	}
	for range sweeps {
		s.referenceColour(u, 0, omega, b)
		s.referenceColour(u, 1, omega, b)
	}
}

// relaxColour is RelaxColour of a box that was checked.
func (s *Sweep) relaxColour(u []float64, colour int, omega float64, b Box) {
	if s.kernel.loops == byPoint {
		s.referenceColour(u, colour, omega, b)
		return
	}
	pace := s.pace(omega)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s.colourRows(u, colour, pace, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
	}
}

// colourRows relaxes the points of a colour in rows [lo, hi) of plane z.
func (s *Sweep) colourRows(u []float64, colour int, pace float64, x0, x1, lo, hi, z int) {
	odd := s.start(colour, x0, lo, z)
	if s.kernel.loops >= avx2 {
		s.colourTile(s.kernel.loops, pace, u, x0, x1, lo, hi, z, odd)
		return
	}
	for y := lo; y < hi; y++ {
		l := s.line(nil, u, u, x0, x1, y, z)
		switch s.operator.Form {
		case Isotropic:
			colourIsotropic(&l, odd, s.operator.Diag, s.operator.Off, pace)
		case Constant:
			colourConstant(&l, odd, &s.rows.values, pace)
		default:
			s.colourVariable(&l, odd, pace)
		}
		odd ^= 1
	}
}

// referenceColour is the contract of RelaxColour, point by point.
func (s *Sweep) referenceColour(u []float64, colour int, omega float64, b Box) {
	w := s.pace(omega)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0] + s.start(colour, b.Lo[0], y, z); x < b.Hi[0]; x += 2 {
				i, d := s.layout.Index(x, y, z), s.layout.Dense(x, y, z)
				r := s.defectAt(u, u, i, d)
				if s.operator.Form == Variable {
					r /= s.operator.Arrays[Center][d]
				}
				u[i] = projected(u[i]-float64(w*r), s.lower.At(d), s.upper.At(d))
			}
		}
	}
}

// start is the distance, 0 or 1, from (x, y, z) to the first point of the colour in
// its row.
func (s *Sweep) start(colour, x, y, z int) int { return (x + y + z + s.parity + colour) & 1 }

// pace is what the residual is multiplied by: omega over the diagonal where there is
// one diagonal for all points.
func (s *Sweep) pace(omega float64) float64 {
	switch s.operator.Form {
	case Isotropic:
		return omega / s.operator.Diag
	case Constant:
		return omega / s.operator.Values[Center]
	default:
		return omega
	}
}
