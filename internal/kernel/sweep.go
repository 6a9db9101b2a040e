// Package kernel holds the loops in which the time is spent: projected
// relaxation of an obstacle problem on a box of points, its residual, and the
// exact sum that judges it.
//
// Every variant (the reference loop, tuned Go, assembly) computes the same bits.
// The written order of operations, per point, each operation rounded to float64
// and none fused:
//
//	s = ((W + E) + (S + N)) + (B + T)   in 3-D; (W + E) + (S + N) in 2-D; W + E in 1-D
//	r = (Diag·u − Off·s) − f
//	v = u − Step·r
//	v = φ if φ > v, else v
//	v = ψ if ψ < v, else v
//
// W and E are the neighbours at x−1 and x+1, S and N at y∓1, B and T at z∓1.
// With one coefficient per neighbour, s is the same sum of (coefficient ·
// neighbour) and r = (Center·u − s) − f. The rule of the two projections keeps v
// when it equals the obstacle (so a −0 stays what it was) and keeps a NaN, which
// is how a diverging iteration shows itself.
package kernel

import (
	"fmt"
	"math"
)

// Form is the shape of the operator's coefficients.
type Form int

// The forms of an operator.
const (
	Isotropic Form = iota // one diagonal, one off-diagonal value
	Constant              // one value per neighbour, the same at every point
	Variable              // one value per neighbour and point
)

// Directions of neighbours; Center is the point itself.
const (
	Center = iota
	West   // x−1
	East   // x+1
	South  // y−1
	North  // y+1
	Bottom // z−1
	Top    // z+1
	Directions
)

// Operator is A of the problem: A·u = Center·u − Σ coefficient·neighbour. For an
// M-matrix all coefficients are positive.
type Operator struct {
	Form      Form
	Diag, Off float64               // Isotropic
	Values    [Directions]float64   // Constant; those of unused axes are ignored
	Arrays    [Directions][]float64 // Variable: dense own-box arrays; those of unused axes are ignored
}

// Field is a value per own point, dense [z][y][x], or one constant when Array is
// nil.
type Field struct {
	Array []float64
	Value float64
}

// At is the field's value at dense index i.
func (f Field) At(i int) float64 {
	if f.Array != nil {
		return f.Array[i]
	}
	return f.Value
}

// NoLower is the obstacle of a problem that has none.
func NoLower() Field { return Field{Value: math.Inf(-1)} }

// NoUpper is the upper obstacle of a problem that has none.
func NoUpper() Field { return Field{Value: math.Inf(1)} }

// Config describes the relaxation of one block.
type Config struct {
	Layout   Layout
	Operator Operator
	Source   Field   // f
	Lower    Field   // φ; NoLower() for none
	Upper    Field   // ψ; NoUpper() for none
	Step     float64 // δ
	// Parity is the colour, 0 or 1, of own point (0, 0, 0): the sum of its indices in
	// the whole grid, modulo 2, so that colours do not depend on how a grid is cut.
	Parity int
	Kernel *Kernel // nil: Best()
	// TileBytes is how much of a tile of the planes read and written should stay
	// in the caches; 0: 8 MiB (measured: smaller tiles only break up the streams).
	TileBytes int
	// StreamFrom is the size of the block in points from which new values are
	// stored past the caches, where the variant can: then a line written is not
	// read first. 0: 4 Mi points, whose three arrays are several times a last-level
	// cache (measured: at 2 Mi points plain stores are faster); negative: never.
	StreamFrom int
}

// Sweep relaxes one block. It is read-only after New, but for what RedBlack keeps, and
// may be used by several goroutines at once on disjoint boxes.
type Sweep struct {
	layout   Layout
	operator Operator
	source   Field
	lower    Field
	upper    Field
	step     float64
	parity   int
	kernel   *Kernel
	tile     int  // rows of a tile
	streams  bool // stores pass the caches
	rows     constantRows
	// wavefront is the state of RedBlack.
	wavefront *wavefront
}

const (
	defaultTileBytes  = 8 << 20
	defaultStreamFrom = 4 << 20
)

// New checks the configuration: arrays must have Layout.Points() values, the
// step must be positive and finite. The arrays stay the caller's and are read by
// every sweep.
func New(c Config) (*Sweep, error) {
	s := &Sweep{
		layout: c.Layout, operator: c.Operator, source: c.Source,
		lower: c.Lower, upper: c.Upper, step: c.Step, parity: c.Parity & 1, kernel: c.Kernel,
	}
	if s.kernel == nil {
		s.kernel = Best()
	}
	if c.Layout.Dim == 0 {
		return nil, fmt.Errorf("kernel: a sweep needs a layout, made by NewLayout")
	}
	if !(c.Step > 0) || math.IsInf(c.Step, 1) {
		return nil, fmt.Errorf("kernel: the step is %v, it must be positive and finite", c.Step)
	}
	for _, f := range []struct {
		name  string
		field Field
	}{{"source", c.Source}, {"lower obstacle", c.Lower}, {"upper obstacle", c.Upper}} {
		if err := s.checkArray(f.name, f.field.Array, true); err != nil {
			return nil, err
		}
	}
	switch c.Operator.Form {
	case Isotropic, Constant:
	case Variable:
		for d := range 1 + 2*c.Layout.Dim {
			if err := s.checkArray(fmt.Sprintf("coefficient %d", d), c.Operator.Arrays[d], false); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("kernel: unknown form of operator %d", c.Operator.Form)
	}
	bytes := c.TileBytes
	if bytes <= 0 {
		bytes = defaultTileBytes
	}
	// Five streams of a tile are alive at once: three planes read, one written, φ.
	s.tile = max(4, bytes/(5*8*(c.Layout.N[0]+2)))
	from := c.StreamFrom
	if from == 0 {
		from = defaultStreamFrom
	}
	s.streams = from > 0 && c.Layout.Points() >= from
	s.rows = newConstantRows(s)
	s.wavefront = newWavefront(s)
	return s, nil
}

func (s *Sweep) checkArray(name string, a []float64, optional bool) error {
	if a == nil && optional {
		return nil
	}
	if len(a) != s.layout.Points() {
		return fmt.Errorf("kernel: %s has %d values, the block has %d points", name, len(a), s.layout.Points())
	}
	return nil
}

// Layout is the block's layout.
func (s *Sweep) Layout() Layout { return s.layout }

// Kernel is the variant in use.
func (s *Sweep) Kernel() *Kernel { return s.kernel }

// Relax computes one relaxation at the points of b: dst gets new values, src
// holds the old ones and, on its ghosts, the neighbours'. The low neighbour along
// the slowest used axis (z−1 in 3-D, y−1 in 2-D, x−1 in 1-D) is read from below:
// pass src for the Jacobi order; pass dst for the in-turn order, where a plane
// reads the plane before it as just relaxed (the points of b are then relaxed in
// ascending order of that axis, and dst's ghosts must be set too). All three are
// padded arrays of Layout().Len() values; dst and src must not overlap.
func (s *Sweep) Relax(dst, below, src []float64, b Box) {
	s.check(b, dst, below, src)
	if b.Empty() {
		return
	}
	s.kernel.sweep(s, nil, dst, below, src, b)
}

// RelaxResidual relaxes the points of b in the Jacobi order, as Relax does, and
// adds the VI residual of the old iterate src at these points to n.
func (s *Sweep) RelaxResidual(n *Norm, dst, src []float64, b Box) {
	s.check(b, dst, src, src)
	if b.Empty() {
		return
	}
	s.kernel.sweep(s, n, dst, src, src, b)
}

// Residual adds the VI residual of src at the points of b to n: r where φ < u <
// ψ, min(r, 0) where u = φ, max(r, 0) where u = ψ.
func (s *Sweep) Residual(n *Norm, src []float64, b Box) {
	s.check(b, src, src, src)
	if b.Empty() {
		return
	}
	s.kernel.sweep(s, n, nil, src, src, b)
}

func (s *Sweep) check(b Box, arrays ...[]float64) {
	if !b.Empty() && !s.layout.holds(b, 0) {
		panic(fmt.Sprintf("kernel: box %v lies outside the block of %v points", b, s.layout.N))
	}
	for _, a := range arrays {
		if len(a) < s.layout.Len() {
			panic(fmt.Sprintf("kernel: a padded array has %d values, the layout needs %d", len(a), s.layout.Len()))
		}
	}
}
