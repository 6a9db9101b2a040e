package verify

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// level is one grid of a minimiser. Its points are aggregates: boxes of points of the next finer grid. Its
// operator is the Galerkin operator for values that are constant on each aggregate.
type level struct {
	layout   kernel.Layout
	operator kernel.Operator
	sweep    *kernel.Sweep
	size     [3]int    // points of the finer grid per aggregate, along each axis
	source   []float64 // dense: the source of the relaxation
	x, r     []float64 // padded: the solution, and the remaining right-hand side
	z        []float64 // padded: the result of a cycle for r
	defect   []float64 // padded
	direct   *banded   // direct solver; nil: coarser levels solve
}

func newLevel(l kernel.Layout, op kernel.Operator) (*level, error) {
	n := l.Len()
	g := &level{layout: l, operator: op, source: make([]float64, l.Points()), x: make([]float64, n),
		r: make([]float64, n), defect: make([]float64, n)}
	var err error
	g.sweep, err = kernel.New(kernel.Config{Layout: l, Operator: op, Source: kernel.Field{Array: g.source},
		Lower: kernel.NoLower(), Upper: kernel.NoUpper(), Step: 1})
	return g, err
}

// coarser returns the next coarser grid, with aggregates of two points along each axis without weak coupling.
func (g *level) coarser() (*level, error) {
	l := g.layout
	size, n := [3]int{1, 1, 1}, l.N
	var strength [3]float64
	for a := range l.Dim {
		if l.N[a] > 1 {
			strength[a] = g.coupling(a)
		}
	}
	for a := range l.Dim {
		if l.N[a] > 1 && strength[a] >= weakAxis*slices.Max(strength[:]) {
			size[a] = 2
			n[a] = (l.N[a] + size[a] - 1) / size[a]
		}
	}
	to, err := kernel.NewLayout(l.Dim, n)
	if err != nil {
		return nil, err
	}
	h, err := newLevel(to, g.aggregateOperator(to, size))
	if err == nil {
		h.size, h.z = size, make([]float64, to.Len())
	}
	return h, err
}

// coupling returns the sum of the coefficients along an axis.
func (g *level) coupling(a int) float64 {
	sum := 0.0
	for _, v := range g.operator.Arrays[kernel.West+2*a:][:2] {
		for _, c := range v {
			sum += c
		}
	}
	return sum
}

// aggregateOperator returns the operator on aggregates. Rows are added. Entries that lead to the same aggregate
// are added, entries within an aggregate are added to the diagonal.
func (g *level) aggregateOperator(to kernel.Layout, size [3]int) kernel.Operator {
	l, used := g.layout, 1+2*g.layout.Dim
	op := kernel.Operator{Form: kernel.Variable}
	for d := range used {
		op.Arrays[d] = make([]float64, to.Points())
	}
	from := &g.operator.Arrays
	for d, idx := range (problem.Box{Hi: l.N}).Each {
		at := [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}
		i := to.Dense(at[0]/size[0], at[1]/size[1], at[2]/size[2])
		op.Arrays[kernel.Center][i] += from[kernel.Center][d]
		for k := kernel.West; k < used; k++ {
			a := (k - 1) / 2
			next := at[a] + 2*((k-1)%2) - 1
			if next >= 0 && next < l.N[a] && next/size[a] == at[a]/size[a] {
				op.Arrays[kernel.Center][i] -= from[k][d]
			} else {
				op.Arrays[k][i] += from[k][d]
			}
		}
	}
	return op
}

// eachPair calls f for the points of the finer grid and their aggregates, as offsets in padded arrays.
func (g *level) eachPair(fine kernel.Layout, f func(coarse, at int)) {
	for z := range fine.N[2] {
		for y := range fine.N[1] {
			to, from := g.layout.Index(0, y/g.size[1], z/g.size[2]), fine.Index(0, y, z)
			for x := range fine.N[0] {
				f(to+x/g.size[0], from+x)
			}
		}
	}
}

// eachRow calls f for the rows of the grid: n values from offset at of a padded array.
func (g *level) eachRow(f func(at, n int)) {
	for z := range g.layout.N[2] {
		for y := range g.layout.N[1] {
			f(g.layout.Index(0, y, z), g.layout.N[0])
		}
	}
}

// copyIn copies a dense array to own points.
func (g *level) copyIn(dst, src []float64) {
	from := 0
	g.eachRow(func(at, n int) { from += copy(dst[at:][:n], src[from:]) })
}
