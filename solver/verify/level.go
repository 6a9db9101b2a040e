package verify

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
)

// level is one matrix of a minimiser below the grid: (A·v)_i = diagonal_i·v_i − Σ coupling·v_column over the
// entries of row i. Its points are aggregates of points of the next finer level, its matrix is the Galerkin matrix
// for values that are constant on each aggregate.
type level struct {
	aggregate []int32 // for each point of the next finer level, the point of this level
	diagonal  []float64
	start     []int // of the rows in column and coupling; start[n] is the number of entries
	column    []int32
	coupling  []float64
	direct    *banded // direct solver; nil: coarser levels solve

	r, x, z, t []float64    // right-hand side, solution, result of a cycle, defect
	c, ac      [2][]float64 // directions and their images
}

// rows provides the rows of a matrix, as level stores them. The slices are valid until the next call.
type rows interface {
	size() int
	row(i int) (diagonal float64, column []int32, coupling []float64)
	// between returns the sum of the entries for i and a neighbour j in both rows.
	between(i, j int) float64
}

func (g *level) size() int { return len(g.diagonal) }

func (g *level) row(i int) (float64, []int32, []float64) {
	lo, hi := g.start[i], g.start[i+1]
	return g.diagonal[i], g.column[lo:hi], g.coupling[lo:hi]
}

func (g *level) between(i, j int) float64 { return g.entry(i, j) + g.entry(j, i) }

func (g *level) entry(i, j int) float64 {
	for k := g.start[i]; k < g.start[i+1]; k++ {
		if int(g.column[k]) == j {
			return g.coupling[k]
		}
	}
	return 0
}

// gridMatrix is the matrix of a variable operator, points in memory order.
type gridMatrix struct {
	layout   kernel.Layout
	operator *kernel.Operator
	column   [kernel.Directions]int32
	coupling [kernel.Directions]float64
}

func (g *gridMatrix) size() int { return g.layout.Points() }

func (g *gridMatrix) row(i int) (float64, []int32, []float64) {
	n := g.layout.N
	at := [3]int{i % n[0], i / n[0] % n[1], i / (n[0] * n[1])}
	stride, used := 1, 0
	for a := range g.layout.Dim {
		for side := range 2 {
			if next := at[a] + 2*side - 1; next >= 0 && next < n[a] {
				g.column[used] = int32(i + (2*side-1)*stride)
				g.coupling[used] = g.operator.Arrays[kernel.West+2*a+side][i]
				used++
			}
		}
		stride *= n[a]
	}
	return g.operator.Arrays[kernel.Center][i], g.column[:used], g.coupling[:used]
}

func (g *gridMatrix) between(i, j int) float64 {
	i, j = min(i, j), max(i, j)
	a, n := 0, g.layout.N
	switch {
	case j-i == n[0]*n[1] && g.layout.Dim == 3:
		a = 2
	case j-i == n[0] && g.layout.Dim >= 2:
		a = 1
	}
	return g.operator.Arrays[kernel.East+2*a][i] + g.operator.Arrays[kernel.West+2*a][j]
}

const (
	// strongCoupling is the fraction of a row's largest coupling from which two points may form an aggregate.
	strongCoupling = 0.25
	pairings       = 2 // passes of pairwise aggregation per level
)

// coarser returns the next coarser level of a matrix. Each pass joins pairs of points that are coupled strongly
// (Notay, Electron. Trans. Numer. Anal. 37, 2010), so aggregates do not reach across jumps of coefficients.
func coarser(m rows) *level {
	g := galerkin(m, pairs(m))
	for range pairings - 1 {
		h := galerkin(g, pairs(g))
		for i, j := range g.aggregate {
			g.aggregate[i] = h.aggregate[j]
		}
		h.aggregate = g.aggregate
		g = h
	}
	return g
}

// pairs returns an aggregate for each point and numbers them in the order of their first points. A point joins its
// most strongly coupled neighbour without an aggregate. If none of the strongly coupled ones is free, it joins the
// aggregate of the strongest: many points may surround one region of high diffusion.
func pairs(m rows) []int32 {
	out := make([]int32, m.size())
	for i := range out {
		out[i] = -1
	}
	count := int32(0)
	for i := range out {
		if out[i] >= 0 {
			continue
		}
		_, column, _ := m.row(i)
		largest, nearest, best, partner := 0.0, -1, 0.0, -1
		for _, j := range column {
			v := m.between(i, int(j))
			if v > largest {
				largest, nearest = v, int(j)
			}
			if v > best && out[j] < 0 {
				best, partner = v, int(j)
			}
		}
		switch {
		case partner >= 0 && best >= strongCoupling*largest:
			out[partner] = count
		case nearest >= 0:
			out[i] = out[nearest]
			continue
		}
		out[i] = count
		count++
	}
	return out
}

// galerkin returns the matrix of aggregates. Rows are added, and so are the entries that lead to the same
// aggregate. Entries within an aggregate are subtracted from its diagonal.
func galerkin(m rows, aggregate []int32) *level {
	n := int32(0)
	for _, a := range aggregate {
		n = max(n, a+1)
	}
	g := &level{aggregate: aggregate, diagonal: make([]float64, n), start: make([]int, n+1)}
	// the points of each aggregate, in order
	first, next := make([]int32, n), make([]int32, len(aggregate))
	for i := range first {
		first[i] = -1
	}
	for i := len(aggregate) - 1; i >= 0; i-- {
		a := aggregate[i]
		next[i], first[a] = first[a], int32(i)
	}
	place := make([]int, n) // of an aggregate's entry in the present row, plus 1
	for a := range n {
		begin := len(g.column)
		for i := first[a]; i >= 0; i = next[i] {
			diagonal, column, coupling := m.row(int(i))
			g.diagonal[a] += diagonal
			for k, v := range coupling {
				switch to := aggregate[column[k]]; {
				case to == a:
					g.diagonal[a] -= v
				case place[to] > begin:
					g.coupling[place[to]-1] += v
				default:
					g.column, g.coupling = append(g.column, to), append(g.coupling, v)
					place[to] = len(g.column)
				}
			}
		}
		g.start[a+1] = len(g.column)
	}
	return g
}

// allocate allocates the vectors.
func (g *level) allocate() {
	for _, v := range []*[]float64{&g.r, &g.x, &g.z, &g.t, &g.c[0], &g.c[1], &g.ac[0], &g.ac[1]} {
		*v = make([]float64, g.size())
	}
}

// image writes A·v to dst for rows lo to hi.
func (g *level) image(dst, v []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		sum := float64(g.diagonal[i] * v[i])
		for k := g.start[i]; k < g.start[i+1]; k++ {
			sum -= float64(g.coupling[k] * v[g.column[k]])
		}
		dst[i] = sum
	}
}

// forward writes the result of a Gauss-Seidel sweep over rows lo to hi, from 0, for the right-hand side r.
func (g *level) forward(z, r []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		sum := r[i]
		for k := g.start[i]; k < g.start[i+1]; k++ {
			if j := int(g.column[k]); j >= lo && j < i {
				sum += float64(g.coupling[k] * z[j])
			}
		}
		z[i] = sum / g.diagonal[i]
	}
}

// backward is forward in the opposite order.
func (g *level) backward(z, r []float64, lo, hi int) {
	for i := hi - 1; i >= lo; i-- {
		sum := r[i]
		for k := g.start[i]; k < g.start[i+1]; k++ {
			if j := int(g.column[k]); j > i && j < hi {
				sum += float64(g.coupling[k] * z[j])
			}
		}
		z[i] = sum / g.diagonal[i]
	}
}

// restrict writes the sums of the finer level's values over the aggregates.
func (g *level) restrict(fine []float64) {
	clear(g.r)
	for i, a := range g.aggregate {
		g.r[a] += fine[i]
	}
}

// prolong adds each aggregate's value to its points.
func (g *level) prolong(fine []float64) {
	for i, a := range g.aggregate {
		fine[i] += g.x[a]
	}
}
