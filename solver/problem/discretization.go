package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// Discretization holds the discrete problem on a box: operator, source and obstacles at the box's own points,
// without an array where one number suffices, and the layout of value arrays on the box.
type Discretization struct {
	Problem       *Problem
	Box           Box
	Layout        kernel.Layout
	Operator      kernel.Operator
	Diagonal      float64 // largest a_ii in the box
	Source        kernel.Field
	Lower         kernel.Field
	Upper         kernel.Field
	stepSource    []float64 // array for the source of a time step where f is constant
	obstaclesKept bool      // Lower and Upper hold for every time step
	Executor      Executor  // runs the passes over all points; nil: Sequential

	KeepDiffusion bool          // Build stores κ in Kept
	DiffusionBox  Box           // box for which κ is kept: the block and its surroundings
	Kept          *method.Edges // nil: constant, or not kept

	Allocate func(n int) []float64 // Config.Allocate; nil: make
}

// Discretize evaluates the problem at the points of a box.
func Discretize(p *Problem, box Box) (*Discretization, error) {
	b := &Discretization{}
	return b, b.Move(p, box)
}

// Move re-evaluates the discretization for another box. Arrays that are large enough are reused.
func (b *Discretization) Move(p *Problem, box Box) error {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return err
	}
	b.Box, b.Layout, b.obstaclesKept = box, l, false
	return b.Build(p)
}

// Build evaluates p at the box's points. It overwrites the arrays of an earlier build.
func (b *Discretization) Build(p *Problem) error {
	b.Problem = p
	var err error
	st := NewStencil(p)
	if b.KeepDiffusion && !st.Constant() {
		st.d = p.diffusion(b.DiffusionBox.Lo, b.DiffusionBox.Hi)
		b.Kept = st.d
	}
	if b.Operator, b.Diagonal, err = st.Operator(b.Box, b.Layout, b.Operator.Arrays); err != nil {
		return err
	}
	constant := kernel.Field{Value: p.Source.Value}
	if b.Source, err = b.field("source", p.Source.Of, p.Rows.Source, b.Source.Array, constant); err != nil {
		return err
	}
	if p.SteadyObstacles && b.obstaclesKept {
		return nil
	}
	b.obstaclesKept = false
	if b.Lower, err = b.field("obstacle", p.Obstacle, p.Rows.Obstacle, b.Lower.Array, kernel.NoLower()); err != nil {
		return err
	}
	if b.Upper, err = b.field("upper obstacle", p.Upper, p.Rows.Upper, b.Upper.Array, kernel.NoUpper()); err != nil {
		return err
	}
	if p.Upper != nil && p.Obstacle != nil {
		for d, idx := range b.Box.Each {
			if lo, hi := b.Lower.At(d), b.Upper.At(d); lo > hi {
				return p.Errorf("the obstacle (%v) lies above the upper one (%v) at %v", lo, hi, p.Location(idx))
			}
		}
	}
	b.obstaclesKept = p.SteadyObstacles
	return nil
}

// field evaluates a function at the block's points. The field has no array if all values are equal. room, nil
// or an array of that size, is used for it. A nil function has the field absent.
func (b *Discretization) field(name string, f Function, row Row, room []float64, absent kernel.Field) (
	kernel.Field, error) {
	if f == nil {
		return absent, nil
	}
	array, value, err := b.sample(Sampler{b.Problem, name, f, row}, room)
	return kernel.Field{Array: array, Value: value}, err
}

// Sweep returns the kernel that relaxes the block with step δ.
func (b *Discretization) Sweep(step float64) (*kernel.Sweep, error) {
	return kernel.New(kernel.Config{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source,
		Lower: b.Lower, Upper: b.Upper, Step: step,
	})
}

// Project returns v projected onto [φ, ψ] at dense index d, by the kernels' rule.
func (b *Discretization) Project(v float64, d int) float64 {
	return Clamp(v, b.Lower.At(d), b.Upper.At(d))
}

// Clamp returns v limited to [phi, psi].
func Clamp(v, phi, psi float64) float64 {
	return kernel.Clamp(v, phi, psi)
}

// Start sets the own points of dst to the starting iterate, projected onto [φ, ψ]: values (dense, own box) if
// not nil, else the problem's Initial. It reports whether either exists and leaves dst unchanged if not.
func (b *Discretization) Start(dst, values []float64) (bool, error) {
	p := b.Problem
	if values == nil && p.Initial == nil {
		return false, nil
	}
	if values != nil && len(values) != b.Layout.Points() {
		return false, p.Errorf("%d starting values for a box of %d points", len(values), b.Layout.Points())
	}
	for d, idx := range b.Box.Each {
		var v float64
		var err error
		if values != nil {
			v = values[d]
		} else {
			v = p.Initial(p.At(idx[0], idx[1], idx[2]))
		}
		if dst[b.Index(idx)], err = b.StartValue(v, d, idx); err != nil {
			return true, err
		}
	}
	return true, nil
}

// StartValue returns the starting value v of grid point idx with dense index d, projected onto [φ, ψ].
func (b *Discretization) StartValue(v float64, d int, idx [3]int) (float64, error) {
	return b.Problem.StartValue(v, b.Lower.At(d), b.Upper.At(d), idx)
}

// StartValue returns the starting value v at grid point idx, projected onto [phi, psi]. It returns an error if
// the value is not finite or too large.
func (p *Problem) StartValue(v, phi, psi float64, idx [3]int) (float64, error) {
	w := Clamp(v, phi, psi)
	if !kernel.Finite(v) || math.Abs(w) > maxStartValue {
		return w, p.Errorf("the starting value is %v at %v; it must be finite and of the size of the problem's data",
			v, p.Location(idx))
	}
	return w, nil
}

// Index returns the offset of grid point idx (1-based) in a padded array.
func (b *Discretization) Index(idx [3]int) int {
	lo := b.Box.Lo
	return b.Layout.Index(idx[0]-1-lo[0], idx[1]-1-lo[1], idx[2]-1-lo[2])
}

// EachFace calls f for the faces of the block: boxes of ghost points, and whether they lie on ∂Ω. It stops when
// f returns false.
func (b *Discretization) EachFace(f func(face Box, boundary bool) bool) {
	for a := range b.Problem.Dimension {
		for _, end := range [2]int{b.Box.Lo[a] - 1, b.Box.Hi[a]} {
			face := b.Box
			face.Lo[a], face.Hi[a] = end, end+1
			if !f(face, end < 0 || end == b.Problem.N[a]) {
				return
			}
		}
	}
}

// EachRowOf calls f for the rows of a box in or beside the block: n points along x from offset at of a padded
// array, the first being grid point first. It reports whether f returned true for all.
func (b *Discretization) EachRowOf(box Box, f func(at, n int, first [3]int) bool) bool {
	n := box.Hi[0] - box.Lo[0]
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			first := [3]int{box.Lo[0] + 1, y + 1, z + 1}
			if !f(b.Index(first), n, first) {
				return false
			}
		}
	}
	return true
}

// EachGhostRow calls f for the rows of face ghosts, which are the ghosts that a stencil reads.
func (b *Discretization) EachGhostRow(f func(at, n int, first [3]int) bool) {
	for face := range b.EachFace {
		b.EachRowOf(face, f)
	}
}

// EachGhost calls f for every face ghost.
func (b *Discretization) EachGhost(f func(at int, idx [3]int) bool) {
	b.EachGhostRow(func(at, n int, first [3]int) bool {
		for i := range n {
			if !f(at+i, [3]int{first[0] + i, first[1], first[2]}) {
				return false
			}
		}
		return true
	})
}

// Dense returns the dense index of grid point idx (1-based), which must be an own point.
func (b *Discretization) Dense(idx [3]int) int {
	lo := b.Box.Lo
	return b.Layout.Dense(idx[0]-1-lo[0], idx[1]-1-lo[1], idx[2]-1-lo[2])
}

// CopyGhosts copies the face ghosts of one padded array to another.
func (b *Discretization) CopyGhosts(dst, src []float64) {
	b.EachGhostRow(func(at, n int, _ [3]int) bool {
		copy(dst[at:][:n], src[at:])
		return true
	})
}

// CopyPart copies the points of a part of the box, in coordinates of the grid, from a padded array to a dense one.
func (b *Discretization) CopyPart(dst, src []float64, part Box) {
	in, n := part.From(b.Box.Lo), part.Size()[0]
	for z := in.Lo[2]; z < in.Hi[2]; z++ {
		for y := in.Lo[1]; y < in.Hi[1]; y++ {
			dst = dst[copy(dst[:n], src[b.Layout.Index(in.Lo[0], y, z):]):]
		}
	}
}

// CopyOut copies the own points of a padded array to a dense array.
func (b *Discretization) CopyOut(dst, src []float64) {
	d := 0
	b.EachRow(func(row []float64, _ [3]int) { d += copy(dst[d:], row) }, src, false)
}
