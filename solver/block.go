package solver

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// block is a box of the discrete problem: its operator, source and obstacles as
// own-box arrays (none where one number serves), and how arrays of values on it
// are laid out.
type block struct {
	problem  *Problem
	box      Box
	layout   kernel.Layout
	operator kernel.Operator
	diagonal float64 // largest a_ii in the box
	source   kernel.Field
	lower    kernel.Field
	upper    kernel.Field
	memory   []float64 // room for the source of a time step where f is constant
	steady   bool      // lower and upper are those of every time step
	exec     Executor  // of what goes through all points; nil: Sequential

	follows bool       // keeps d once built
	around  Box        // of which d is kept: the block, and what lies around it
	d       *diffusion // nil: constant, or not kept

	allocate func(n int) []float64 // Config.Allocate; nil: the built-in one
}

func newBlock(p *Problem, box Box) (*block, error) {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return nil, err
	}
	b := &block{box: box, layout: l}
	return b, b.build(p)
}

// move makes it the block of another box: its arrays serve there if they are large enough.
func (b *block) move(p *Problem, box Box) error {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return err
	}
	b.box, b.layout, b.steady = box, l, false
	return b.build(p)
}

// build evaluates a problem at the box's points. Arrays that an earlier build made
// are written anew.
func (b *block) build(p *Problem) error {
	b.problem = p
	var err error
	st := newStencil(p)
	if b.follows && !st.constant() {
		st.d = p.diffusion(b.around.Lo, b.around.Hi)
		b.d = st.d
	}
	if b.operator, b.diagonal, err = st.operator(b.box, b.layout, b.operator.Arrays); err != nil {
		return err
	}
	source := kernel.Field{Value: p.Source.Value}
	if p.Source.Of != nil {
		if source, err = b.field("source", p.Source.Of, p.Rows.Source, b.source.Array); err != nil {
			return err
		}
	}
	b.source = source
	if p.steady && b.steady {
		return nil
	}
	b.steady = false
	lower, upper := kernel.NoLower(), kernel.NoUpper()
	if p.Obstacle != nil {
		if lower, err = b.field("obstacle", p.Obstacle, p.Rows.Obstacle, b.lower.Array); err != nil {
			return err
		}
	}
	if p.Upper != nil {
		if upper, err = b.field("upper obstacle", p.Upper, p.Rows.Upper, b.upper.Array); err != nil {
			return err
		}
	}
	b.lower, b.upper = lower, upper
	if p.Upper != nil && p.Obstacle != nil {
		if err := b.checkObstacles(); err != nil {
			return err
		}
	}
	b.steady = p.steady
	return nil
}

// field evaluates a function at the block's points; an array is only kept if it is
// needed. room, an array of that size or nil, is used for it.
func (b *block) field(name string, f Function, row Row, room []float64) (kernel.Field, error) {
	array, value, err := b.sample(sampler{b.problem, name, f, row}, room)
	return kernel.Field{Array: array, Value: value}, err
}

func (b *block) checkObstacles() error {
	var err error
	b.box.each(func(d int, idx [3]int) bool {
		if lo, hi := b.lower.At(d), b.upper.At(d); lo > hi {
			err = b.problem.refuse("the obstacle (%v) lies above the upper one (%v) at %v", lo, hi, b.problem.place(idx))
			return false
		}
		return true
	})
	return err
}

// sweep makes the block's relaxation with step δ.
func (b *block) sweep(step float64) (*kernel.Sweep, error) {
	return kernel.New(kernel.Config{
		Layout: b.layout, Operator: b.operator, Source: b.source,
		Lower: b.lower, Upper: b.upper, Step: step,
	})
}

// project brings v into [φ, ψ] at dense index d, by the kernels' rule.
func (b *block) project(v float64, d int) float64 {
	return clamp(v, b.lower.At(d), b.upper.At(d))
}

func clamp(v, phi, psi float64) float64 {
	if phi > v {
		v = phi
	}
	if psi < v {
		v = psi
	}
	return v
}

// start overwrites own points with the starting iterate, brought into [φ, ψ]:
// values (dense own-box, may be nil), else the problem's Initial, else nothing.
// It tells whether there was one.
func (b *block) start(dst, values []float64) (bool, error) {
	p := b.problem
	if values == nil && p.Initial == nil {
		return false, nil
	}
	if values != nil && len(values) != b.layout.Points() {
		return false, p.refuse("%d starting values for a box of %d points", len(values), b.layout.Points())
	}
	if values != nil {
		return true, b.startFrom(dst, values)
	}
	var err error
	b.box.each(func(d int, idx [3]int) bool {
		dst[b.index(idx)], err = b.startValue(p.Initial(p.At(idx[0], idx[1], idx[2])), d, idx)
		return err == nil
	})
	return true, err
}

// startValue is a starting value at grid point idx, of dense index d, brought into [φ, ψ].
func (b *block) startValue(v float64, d int, idx [3]int) (float64, error) {
	return b.problem.startValue(v, b.lower.At(d), b.upper.At(d), idx)
}

func (p *Problem) startValue(v, phi, psi float64, idx [3]int) (float64, error) {
	w := clamp(v, phi, psi)
	if !finite(v) || math.Abs(w) > largestStart {
		return w, p.refuse("the starting value is %v at %v; it must be finite, and of about the size of the problem's data", v, p.place(idx))
	}
	return w, nil
}

// startFrom is start with values.
func (b *block) startFrom(dst, values []float64) error {
	var err error
	d := 0
	b.eachRow(func(row []float64, first [3]int) {
		for i := range row {
			v, wrong := b.startValue(values[d], d, [3]int{first[0] + i, first[1], first[2]})
			if row[i] = v; wrong != nil && err == nil {
				err = wrong
			}
			d++
		}
	}, dst, false)
	return err
}

// index is where grid point idx (1-based) lies in a padded array.
func (b *block) index(idx [3]int) int {
	lo := b.box.Lo
	return b.layout.Index(idx[0]-1-lo[0], idx[1]-1-lo[1], idx[2]-1-lo[2])
}

// eachFace visits the faces of the block: boxes of ghosts, and whether they are on ∂Ω.
func (b *block) eachFace(f func(face Box, boundary bool) bool) {
	for a := range b.problem.Dimension {
		for _, end := range [2]int{b.box.Lo[a] - 1, b.box.Hi[a]} {
			face := b.box
			face.Lo[a], face.Hi[a] = end, end+1
			if !f(face, end < 0 || end == b.problem.N[a]) {
				return
			}
		}
	}
}

// eachRowOf visits the rows of a box in or beside the block: n points along x from place at
// in a padded array on; first is the grid point of the first. It tells whether f never ended it.
func (b *block) eachRowOf(box Box, f func(at, n int, first [3]int) bool) bool {
	n := box.Hi[0] - box.Lo[0]
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			first := [3]int{box.Lo[0] + 1, y + 1, z + 1}
			if !f(b.index(first), n, first) {
				return false
			}
		}
	}
	return true
}

// eachGhostRow visits the ghosts that a stencil reads, those of the faces, by rows.
func (b *block) eachGhostRow(f func(at, n int, first [3]int) bool) {
	b.eachFace(func(face Box, _ bool) bool { return b.eachRowOf(face, f) })
}

// eachGhost visits them one by one.
func (b *block) eachGhost(f func(at int, idx [3]int) bool) {
	b.eachGhostRow(func(at, n int, first [3]int) bool {
		for i := range n {
			if !f(at+i, [3]int{first[0] + i, first[1], first[2]}) {
				return false
			}
		}
		return true
	})
}

// dense is the dense index of grid point idx (1-based), one of the block's own.
func (b *block) dense(idx [3]int) int {
	lo := b.box.Lo
	return b.layout.Dense(idx[0]-1-lo[0], idx[1]-1-lo[1], idx[2]-1-lo[2])
}

// copyGhosts copies the face ghosts of one padded array to another.
func (b *block) copyGhosts(dst, src []float64) {
	b.eachGhostRow(func(at, n int, _ [3]int) bool {
		copy(dst[at:][:n], src[at:])
		return true
	})
}

// copyOut writes own points to a dense array.
func (b *block) copyOut(dst, src []float64) {
	l := b.layout
	for z := range l.N[2] {
		for y := range l.N[1] {
			from, to := l.Index(0, y, z), l.Dense(0, y, z)
			copy(dst[to:to+l.N[0]], src[from:from+l.N[0]])
		}
	}
}
