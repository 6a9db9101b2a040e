package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Discretization is a box of the discrete problem: its operator, source and obstacles as
// own-box arrays (none where one number serves), and how arrays of values on it
// are laid out.
type Discretization struct {
	Problem  *Problem
	Box      Box
	Layout   kernel.Layout
	Operator kernel.Operator
	Diagonal float64 // largest a_ii in the box
	Source   kernel.Field
	Lower    kernel.Field
	Upper    kernel.Field
	memory   []float64 // room for the source of a time step where f is constant
	steady   bool      // lower and upper are those of every time step
	Exec     Executor  // of what goes through all points; nil: Sequential

	Follows bool       // keeps d once built
	Around  Box        // of which d is kept: the block, and what lies around it
	D       *diffusion // nil: constant, or not kept

	Allocate func(n int) []float64 // Config.Allocate; nil: the built-in one
}

// Discretize evaluates the problem at the points of a box.
func Discretize(p *Problem, box Box) (*Discretization, error) {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return nil, err
	}
	b := &Discretization{Box: box, Layout: l}
	return b, b.Build(p)
}

// Move makes it the block of another box: its arrays serve there if they are large enough.
func (b *Discretization) Move(p *Problem, box Box) error {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return err
	}
	b.Box, b.Layout, b.steady = box, l, false
	return b.Build(p)
}

// Build evaluates a problem at the box's points. Arrays that an earlier build made
// are written anew.
func (b *Discretization) Build(p *Problem) error {
	b.Problem = p
	var err error
	st := NewStencil(p)
	if b.Follows && !st.Constant() {
		st.d = p.diffusion(b.Around.Lo, b.Around.Hi)
		b.D = st.d
	}
	if b.Operator, b.Diagonal, err = st.Operator(b.Box, b.Layout, b.Operator.Arrays); err != nil {
		return err
	}
	source := kernel.Field{Value: p.Source.Value}
	if p.Source.Of != nil {
		if source, err = b.field("source", p.Source.Of, p.Rows.Source, b.Source.Array); err != nil {
			return err
		}
	}
	b.Source = source
	if p.Steady && b.steady {
		return nil
	}
	b.steady = false
	lower, upper := kernel.NoLower(), kernel.NoUpper()
	if p.Obstacle != nil {
		if lower, err = b.field("obstacle", p.Obstacle, p.Rows.Obstacle, b.Lower.Array); err != nil {
			return err
		}
	}
	if p.Upper != nil {
		if upper, err = b.field("upper obstacle", p.Upper, p.Rows.Upper, b.Upper.Array); err != nil {
			return err
		}
	}
	b.Lower, b.Upper = lower, upper
	if p.Upper != nil && p.Obstacle != nil {
		if err := b.checkObstacles(); err != nil {
			return err
		}
	}
	b.steady = p.Steady
	return nil
}

// field evaluates a function at the block's points; an array is only kept if it is
// needed. room, an array of that size or nil, is used for it.
func (b *Discretization) field(name string, f Function, row Row, room []float64) (kernel.Field, error) {
	array, value, err := b.sample(Sampler{b.Problem, name, f, row}, room)
	return kernel.Field{Array: array, Value: value}, err
}

func (b *Discretization) checkObstacles() error {
	var err error
	b.Box.Each(func(d int, idx [3]int) bool {
		if lo, hi := b.Lower.At(d), b.Upper.At(d); lo > hi {
			err = b.Problem.Refuse("the obstacle (%v) lies above the upper one (%v) at %v", lo, hi, b.Problem.Place(idx))
			return false
		}
		return true
	})
	return err
}

// Sweep makes the block's relaxation with step δ.
func (b *Discretization) Sweep(step float64) (*kernel.Sweep, error) {
	return kernel.New(kernel.Config{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source,
		Lower: b.Lower, Upper: b.Upper, Step: step,
	})
}

// Project brings v into [φ, ψ] at dense index d, by the kernels' rule.
func (b *Discretization) Project(v float64, d int) float64 {
	return Clamp(v, b.Lower.At(d), b.Upper.At(d))
}

// Clamp returns v, at least phi and at most psi.
func Clamp(v, phi, psi float64) float64 {
	if phi > v {
		v = phi
	}
	if psi < v {
		v = psi
	}
	return v
}

// Start overwrites own points with the starting iterate, brought into [φ, ψ]:
// values (dense own-box, may be nil), else the problem's Initial, else nothing.
// It tells whether there was one.
func (b *Discretization) Start(dst, values []float64) (bool, error) {
	p := b.Problem
	if values == nil && p.Initial == nil {
		return false, nil
	}
	if values != nil && len(values) != b.Layout.Points() {
		return false, p.Refuse("%d starting values for a box of %d points", len(values), b.Layout.Points())
	}
	if values != nil {
		return true, b.startFrom(dst, values)
	}
	var err error
	b.Box.Each(func(d int, idx [3]int) bool {
		dst[b.Index(idx)], err = b.StartValue(p.Initial(p.At(idx[0], idx[1], idx[2])), d, idx)
		return err == nil
	})
	return true, err
}

// StartValue is a starting value at grid point idx, of dense index d, brought into [φ, ψ].
func (b *Discretization) StartValue(v float64, d int, idx [3]int) (float64, error) {
	return b.Problem.StartValue(v, b.Lower.At(d), b.Upper.At(d), idx)
}

// StartValue returns the starting value v at grid point idx, brought between the obstacles phi and psi. It
// refuses values that are not finite or too large.
func (p *Problem) StartValue(v, phi, psi float64, idx [3]int) (float64, error) {
	w := Clamp(v, phi, psi)
	if !kernel.Finite(v) || math.Abs(w) > largestStart {
		return w, p.Refuse("the starting value is %v at %v; it must be finite, and of about the size of the problem's data", v, p.Place(idx))
	}
	return w, nil
}

// startFrom is start with values.
func (b *Discretization) startFrom(dst, values []float64) error {
	var err error
	d := 0
	b.EachRow(func(row []float64, first [3]int) {
		for i := range row {
			v, wrong := b.StartValue(values[d], d, [3]int{first[0] + i, first[1], first[2]})
			if row[i] = v; wrong != nil && err == nil {
				err = wrong
			}
			d++
		}
	}, dst, false)
	return err
}

// Index is where grid point idx (1-based) lies in a padded array.
func (b *Discretization) Index(idx [3]int) int {
	lo := b.Box.Lo
	return b.Layout.Index(idx[0]-1-lo[0], idx[1]-1-lo[1], idx[2]-1-lo[2])
}

// EachFace visits the faces of the block: boxes of ghosts, and whether they are on ∂Ω.
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

// EachRowOf visits the rows of a box in or beside the block: n points along x from place at
// in a padded array on; first is the grid point of the first. It tells whether f never ended it.
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

// EachGhostRow visits the ghosts that a stencil reads, those of the faces, by rows.
func (b *Discretization) EachGhostRow(f func(at, n int, first [3]int) bool) {
	b.EachFace(func(face Box, _ bool) bool { return b.EachRowOf(face, f) })
}

// EachGhost visits them one by one.
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

// Dense is the dense index of grid point idx (1-based), one of the block's own.
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

// CopyOut writes own points to a dense array.
func (b *Discretization) CopyOut(dst, src []float64) {
	l := b.Layout
	for z := range l.N[2] {
		for y := range l.N[1] {
			from, to := l.Index(0, y, z), l.Dense(0, y, z)
			copy(dst[to:to+l.N[0]], src[from:from+l.N[0]])
		}
	}
}
