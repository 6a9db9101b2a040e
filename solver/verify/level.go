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
	inverse   []float64 // of the diagonal entries
	start     []int     // of the rows in column and coupling; start[n] is the number of entries
	column    []int32
	coupling  []float64
	// After arrange, a row holds the entries for later points of its piece, those for other pieces, which begin at
	// outside, and those for earlier points of its piece, which begin at earlier.
	outside, earlier []int
	cycle            int     // entries that the passes of a cycle read
	direct           *banded // direct solver; nil: coarser levels solve

	// right-hand side, solution or a weighted image, a defect or the changes by a sweep, values before a sweep
	r, x, t, old []float64
	c, ac        [2][]float64 // directions and their images
}

// rows provides the rows of a matrix, as level stores them. The slices are valid until the next call.
type rows interface {
	size() int
	entries() int // an upper bound of the entries of all rows
	diagonals() []float64
	row(i int) (diagonal float64, column []int32, coupling []float64)
	// between returns the sum of the entries for i and a neighbour j in both rows.
	between(i, j int) float64
}

func (g *level) size() int { return len(g.diagonal) }

func (g *level) entries() int { return len(g.column) }

func (g *level) diagonals() []float64 { return g.diagonal }

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

func (g *gridMatrix) entries() int { return 2 * g.layout.Dim * g.layout.Points() }

func (g *gridMatrix) diagonals() []float64 { return g.operator.Arrays[kernel.Center] }

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
	// pairStrength is the least (1/a_ii + 1/a_jj)·(|a_ij| + |a_ji|) of a pair of points. The two-grid method for pairs
	// alone then has a condition of at most 4/pairStrength (Notay, SIAM J. Sci. Comput. 34, 2012).
	pairStrength = 0.4
	pairings     = 2 // passes of pairwise aggregation per level
)

// coarser returns the next coarser level of a matrix, of at most half its points if their couplings allow that.
func coarser(m rows) *level {
	for strength := pairStrength; ; strength /= 4 {
		if strength < pairStrength/100 {
			strength = 0
		}
		if g := aggregated(m, strength); 2*g.size() <= m.size() || strength == 0 {
			return g
		}
	}
}

// aggregated returns the next coarser level. Each pass joins pairs of points that are coupled strongly relative to the
// diagonal entries of m, whose inverse is what relaxation applies: two regions of high diffusion stay apart even if
// either has become one point, because relaxation changes the difference of their values slowly.
func aggregated(m rows, strength float64) *level {
	weight := m.diagonals()
	g := galerkin(m, pairs(m, weight, strength))
	for range pairings - 1 {
		sums := make([]float64, g.size())
		for i, j := range g.aggregate {
			sums[j] += weight[i]
		}
		weight = sums
		h := galerkin(g, pairs(g, weight, strength))
		for i, j := range g.aggregate {
			g.aggregate[i] = h.aggregate[j]
		}
		h.aggregate = g.aggregate
		g = h
	}
	return g
}

// pairs returns an aggregate for each point and numbers them in the order of their first points. A point joins its
// most strongly coupled neighbour without an aggregate. If none of those is coupled strongly enough, it joins the
// aggregate of the neighbour with the largest coupling: many points may surround one region of high diffusion.
// weight holds the sums of the diagonal entries of the finest points.
func pairs(m rows, weight []float64, strength float64) []int32 {
	out, inverse := make([]int32, m.size()), make([]float64, m.size())
	for i, w := range weight {
		out[i], inverse[i] = -1, 1/w
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
			if v *= inverse[i] + inverse[j]; v > best && out[j] < 0 {
				best, partner = v, int(j)
			}
		}
		switch {
		case partner >= 0 && best >= strength:
			out[partner] = count
		case nearest >= 0 && out[nearest] >= 0 && largest*inverse[i] >= strength:
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
	most := m.entries()
	g := &level{aggregate: aggregate, diagonal: make([]float64, n), start: make([]int, n+1),
		column: make([]int32, 0, most), coupling: make([]float64, 0, most)}
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

// unrolled is the number of entries that times multiplies at once. The parts of rows are padded to multiples of it by
// zeros, so loops over short rows of different lengths have a predictable end.
const unrolled = 4

// arrange sorts the rows' entries for sweeps and allocates the vectors.
func (g *level) arrange() {
	n := g.size()
	from, starts, columns, couplings := g.start, make([]int, n+1), g.column, g.coupling
	g.outside, g.earlier, g.inverse = make([]int, n), make([]int, n), make([]float64, n)
	room := len(columns) + n*2*(unrolled-1)
	g.column, g.coupling = make([]int32, 0, room), make([]float64, 0, room)
	for i := range n {
		g.inverse[i] = 1 / g.diagonal[i]
		lo := i / pieceValues * pieceValues
		for part := range 3 {
			for k := from[i]; k < from[i+1]; k++ {
				if partOf(int(columns[k]), i, lo) == part {
					g.column, g.coupling = append(g.column, columns[k]), append(g.coupling, couplings[k])
				}
			}
			for len(g.column)%unrolled > 0 {
				g.column, g.coupling = append(g.column, int32(i)), append(g.coupling, 0)
			}
			*[]*int{&g.outside[i], &g.earlier[i], &starts[i+1]}[part] = len(g.column)
		}
	}
	g.start, g.cycle = starts, 5*len(columns)/2+2*n
	for _, v := range []*[]float64{&g.r, &g.x, &g.t, &g.c[0], &g.c[1], &g.ac[0], &g.ac[1]} {
		*v = make([]float64, n)
	}
	if n > pieceValues {
		g.old = make([]float64, n)
	}
}

// partOf returns the part of row i to which an entry for point j belongs. The row's piece begins at lo.
func partOf(j, i, lo int) int {
	switch {
	case j < lo || j >= lo+pieceValues:
		return 1
	case j < i:
		return 2
	}
	return 0
}

// times returns the product of entries lo to hi with values.
func (g *level) times(v []float64, lo, hi int) (sum float64) {
	for ; lo < hi; lo += unrolled {
		c, j := (*[unrolled]float64)(g.coupling[lo:]), (*[unrolled]int32)(g.column[lo:])
		sum += float64(c[0]*v[j[0]]) + float64(c[1]*v[j[1]]) + (float64(c[2]*v[j[2]]) + float64(c[3]*v[j[3]]))
	}
	return
}

// forward writes the result of a Gauss-Seidel sweep from 0 over a piece, for the right-hand side r.
func (g *level) forward(z []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		z[i] = (g.r[i] + g.times(z, g.earlier[i], g.start[i+1])) * g.inverse[i]
	}
}

// defect writes r − A·z to t for a piece, after forward: the entries that it did not use remain.
func (g *level) defect(z []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		g.t[i] = g.times(z, g.start[i], g.earlier[i])
	}
}

// backward relaxes the points of a piece in the opposite order and writes the changes to t. Values of other pieces
// are read from old.
func (g *level) backward(z []float64, lo, hi int) {
	for i := hi - 1; i >= lo; i-- {
		sum := g.r[i] + g.times(z, g.start[i], g.outside[i]) + g.times(z, g.earlier[i], g.start[i+1])
		if g.outside[i] < g.earlier[i] {
			sum += g.times(g.old, g.outside[i], g.earlier[i])
		}
		v := sum * g.inverse[i]
		g.t[i] = v - z[i]
		z[i] = v
	}
}

// image writes A·z to dst for a piece, after backward: r without what the later changes of other points did to the row.
func (g *level) image(dst []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		dst[i] = g.r[i] - g.times(g.t, g.outside[i], g.start[i+1])
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

// products returns the products left·ac, left·r and left·other of a piece.
func (g *level) products(left, ac, other []float64, lo, hi int) (square, gain, cross float64) {
	left, ac, other = left[lo:hi], ac[lo:hi], other[lo:hi]
	for i, r := range g.r[lo:hi] {
		v := left[i]
		square += float64(v * ac[i])
		gain += float64(v * r)
		cross += float64(v * other[i])
	}
	return square, gain, cross
}
