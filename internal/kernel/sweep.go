// Package kernel implements the inner loops of the solvers: projected relaxation of an obstacle
// problem on a box of points, its residual, exact sums, and the transfers between grids.
//
// Every variant (reference loop, tuned Go, assembly) computes the same bits. The order of operations
// at a point is fixed; each operation is rounded to float64 and none is fused:
//
//	s = ((W + E) + (S + N)) + (B + T)   in 3-D; (W + E) + (S + N) in 2-D; W + E in 1-D
//	r = (Diag·u − Off·s) − f
//	v = u − Step·r
//	v = φ if φ > v, else v
//	v = ψ if ψ < v, else v
//
// W and E are the neighbours at x−1 and x+1, S and N at y∓1, B and T at z∓1. With one coefficient per
// neighbour, s is the same sum of the products coefficient · neighbour, and r = (Center·u − s) − f. The
// projections leave v unchanged if it equals the obstacle, including the sign of zero, and leave NaN
// unchanged, so that a diverging iteration remains visible.
package kernel

import (
	"fmt"
	"math"
)

// Form is the kind of the operator's coefficients.
type Form int

// The forms of an operator.
const (
	Isotropic Form = iota // one diagonal and one off-diagonal value
	Constant              // one value per direction, the same at every point
	Variable              // one value per direction and point
)

// Directions of the stencil's points. Center is the point itself.
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

// Operator is the matrix A: A·u = Center·u − Σ coefficient·neighbour. All coefficients of an M-matrix are positive.
type Operator struct {
	Form      Form
	Diag, Off float64               // Isotropic
	Values    [Directions]float64   // Constant; values of unused axes are ignored
	Arrays    [Directions][]float64 // Variable: dense arrays; arrays of unused axes are ignored
}

// Field is a value per own point in a dense array [z][y][x], or the constant Value if Array is nil.
type Field struct {
	Array []float64
	Value float64
}

// At returns the value at dense index i.
func (f Field) At(i int) float64 {
	if f.Array != nil {
		return f.Array[i]
	}
	return f.Value
}

// NoLower returns the lower obstacle −∞.
func NoLower() Field { return Field{Value: math.Inf(-1)} }

// NoUpper returns the upper obstacle +∞.
func NoUpper() Field { return Field{Value: math.Inf(1)} }

// Config describes the relaxation of one block.
type Config struct {
	Layout   Layout
	Operator Operator
	Source   Field   // f
	Lower    Field   // φ; NoLower() if there is none
	Upper    Field   // ψ; NoUpper() if there is none
	Step     float64 // δ
	// Parity is the colour, 0 or 1, of own point (0, 0, 0): the sum of its indices in the whole
	// grid modulo 2. Colours then do not depend on the partition of the grid.
	Parity int
	Kernel *Kernel // Best() if nil
	// TileBytes bounds the bytes of a tile of planes that should remain in the caches. The default of 8 MiB
	// is measured: smaller tiles only interrupt the memory streams.
	TileBytes int
	// StreamFrom is the number of points of a block from which new values are stored with streaming stores,
	// if the variant has them: a cache line written is then not read first. The default of 4 Mi points has
	// arrays of several times a last-level cache (measured: plain stores are faster at 2 Mi points). A
	// negative value disables streaming stores.
	StreamFrom int
}

// Sweep relaxes one block. It is read-only after New except for the state of RedBlack. Several
// goroutines may use it at once on disjoint boxes.
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
	streams  bool // use streaming stores
	rows     constantRows
	// wavefront is the state of RedBlack.
	wavefront *wavefront
}

const (
	defaultTileBytes  = 8 << 20
	defaultStreamFrom = 4 << 20
)

// New returns a Sweep after checking c: arrays must have Layout.Points() values, and the step must
// be positive and finite. The arrays remain the caller's and are read by every sweep.
func New(c Config) (*Sweep, error) {
	s := &Sweep{
		layout: c.Layout, operator: c.Operator, source: c.Source,
		lower: c.Lower, upper: c.Upper, step: c.Step, parity: c.Parity & 1, kernel: c.Kernel,
	}
	if s.kernel == nil {
		s.kernel = Best()
	}
	if c.Layout.Dim == 0 {
		return nil, fmt.Errorf("kernel: the sweep has no layout; make one with NewLayout")
	}
	if !(c.Step > 0) || math.IsInf(c.Step, 1) {
		return nil, fmt.Errorf("kernel: the step is %v; it must be positive and finite", c.Step)
	}
	for i, f := range []Field{c.Source, c.Lower, c.Upper} {
		name := [...]string{"source", "lower obstacle", "upper obstacle"}[i]
		if err := s.checkArray(name, f.Array); f.Array != nil && err != nil {
			return nil, err
		}
	}
	switch c.Operator.Form {
	case Isotropic, Constant:
	case Variable:
		for d := range 1 + 2*c.Layout.Dim {
			if err := s.checkArray(fmt.Sprintf("coefficient %d", d), c.Operator.Arrays[d]); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("kernel: unknown form %d of the operator", c.Operator.Form)
	}
	bytes := c.TileBytes
	if bytes <= 0 {
		bytes = defaultTileBytes
	}
	// A tile accesses five arrays at once: three planes read, one plane written, and φ.
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

func (s *Sweep) checkArray(name string, a []float64) error {
	if len(a) != s.layout.Points() {
		return fmt.Errorf("kernel: the %s has %d values; the block has %d points", name, len(a), s.layout.Points())
	}
	return nil
}

// Kernel returns the variant in use.
func (s *Sweep) Kernel() *Kernel { return s.kernel }

// Relax computes one relaxation at the points of b. dst receives the new values; src holds the old values and, on its
// ghosts, those of the neighbouring blocks. The low neighbour along the slowest used axis (z−1 in 3-D, y−1 in 2-D,
// x−1 in 1-D) is read from below. With below = src this is the Jacobi order. With below = dst it is the in-turn
// order: each plane reads the plane before it as just relaxed, the points of b are relaxed in ascending order of that
// axis, and the ghosts of dst must be set too. All three are padded arrays of Layout.Len() values; dst and src must
// not overlap.
func (s *Sweep) Relax(dst, below, src []float64, b Box) {
	if s.check(b, dst, below, src) {
		s.kernel.sweep(s, nil, dst, below, src, b)
	}
}

// RelaxResidual relaxes the points of b in the Jacobi order, as Relax does, and adds the VI
// residual of the old iterate src at these points to n.
func (s *Sweep) RelaxResidual(n *Norm, dst, src []float64, b Box) {
	if s.check(b, dst, src) {
		s.kernel.sweep(s, n, dst, src, src, b)
	}
}

// Residual adds the VI residual of src at the points of b to n: r where φ < u < ψ, min(r, 0) where
// u = φ, max(r, 0) where u = ψ.
func (s *Sweep) Residual(n *Norm, src []float64, b Box) {
	if s.check(b, src) {
		s.kernel.sweep(s, n, nil, src, src, b)
	}
}

// check panics unless the arrays fit the layout and b lies within its points. It reports whether b contains a point.
func (s *Sweep) check(b Box, arrays ...[]float64) bool { return check(s.layout, b, arrays...) }
