package verify

import "github.com/p2pdc/p2pdc/internal/kernel"

// aggregates is one grid of a minimiser: its points are boxes of points of the next finer
// grid, and its operator takes values that are constant on each of them.
type level struct {
	layout   kernel.Layout
	operator kernel.Operator
	sweep    *kernel.Sweep
	size     [3]int    // of an aggregate, in points of the finer grid
	source   []float64 // dense: what relaxation takes as the source
	x, r     []float64 // padded: the solution, and what is left of the right-hand side
	z        []float64 // padded: what a cycle makes of r
	defect   []float64 // padded
	direct   *banded   // nil: grids below answer
}

func newLevel(l kernel.Layout, op kernel.Operator) (*level, error) {
	n := l.Len()
	g := &level{layout: l, operator: op, source: make([]float64, l.Points())}
	g.x, g.r, g.defect = make([]float64, n), make([]float64, n), make([]float64, n)
	var err error
	g.sweep, err = kernel.New(kernel.Config{Layout: l, Operator: op, Source: kernel.Field{Array: g.source},
		Lower: kernel.NoLower(), Upper: kernel.NoUpper(), Step: 1})
	return g, err
}

// coarser makes the next coarser grid: aggregates of two points along each axis whose
// coupling is not weak.
func (g *level) coarser() (*level, error) {
	l := g.layout
	size, n := [3]int{1, 1, 1}, l.N
	var strength [3]float64
	strongest := 0.0
	for a := range l.Dim {
		if l.N[a] > 1 {
			strength[a] = g.coupling(a)
			strongest = max(strongest, strength[a])
		}
	}
	for a := range l.Dim {
		if l.N[a] > 1 && strength[a] >= weakAxis*strongest {
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

// coupling is the mean of the coefficients along an axis.
func (g *level) coupling(a int) float64 {
	sum := 0.0
	for _, v := range [2][]float64{g.operator.Arrays[kernel.West+2*a], g.operator.Arrays[kernel.East+2*a]} {
		for _, c := range v {
			sum += c
		}
	}
	return sum
}

// summed is the operator on aggregates: rows are added, and so are the entries that lead
// to the same aggregate, those within it to the diagonal.
func (g *level) aggregateOperator(to kernel.Layout, size [3]int) kernel.Operator {
	l, used := g.layout, 1+2*g.layout.Dim
	op := kernel.Operator{Form: kernel.Variable}
	for d := range used {
		op.Arrays[d] = make([]float64, to.Points())
	}
	from := &g.operator.Arrays
	d := 0
	for z := range l.N[2] {
		for y := range l.N[1] {
			for x := range l.N[0] {
				at := [3]int{x, y, z}
				i := to.Dense(x/size[0], y/size[1], z/size[2])
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
				d++
			}
		}
	}
	return op
}

// gather adds a defect of the finer grid, with the other sign, to r.
func (g *level) restrict(defect []float64, fine kernel.Layout) {
	g.eachPair(fine, func(coarse, at int) { g.r[coarse] -= defect[at] })
}

// spread adds x to values on the finer grid.
func (g *level) prolong(values []float64, fine kernel.Layout) {
	g.eachPair(fine, func(coarse, at int) { values[at] += g.x[coarse] })
}

// pairs visits the points of the finer grid, with their aggregates: places in padded
// arrays.
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

// eachRow visits the rows of the grid: n values from place at of a padded array on.
func (g *level) eachRow(f func(at, n int)) {
	for z := range g.layout.N[2] {
		for y := range g.layout.N[1] {
			f(g.layout.Index(0, y, z), g.layout.N[0])
		}
	}
}

// copyOut copies own points to a dense array.
func (g *level) copyOut(dst, src []float64) {
	to := 0
	g.eachRow(func(at, n int) { to += copy(dst[to:], src[at:][:n]) })
}

// copyIn is its reverse.
func (g *level) copyIn(dst, src []float64) {
	from := 0
	g.eachRow(func(at, n int) { from += copy(dst[at:][:n], src[from:]) })
}
