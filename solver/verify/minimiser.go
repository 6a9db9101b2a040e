package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// comparisonTolerance is the largest 1 − A·w of an acceptable comparison function. Its bound is then about
	// 1/(1 − comparisonTolerance) times that of A·w = 1 at most.
	comparisonTolerance = 0.3
	firstTolerance      = 0.05 // on the first grid, where a search costs little
	// maxComparisonWork bounds the work of a comparison function on the problem's own grid, in sweeps over it.
	maxComparisonWork = 600
	// maxDirections is the number of earlier directions to which a new one is made orthogonal. Each needs two arrays of
	// the grid's size. Large grids keep fewer. If A is symmetric, more of them would save hardly any step.
	maxDirections = 12
	fewDirections = 3
	largeGrid     = 1 << 21
	// standstill is the gain of a step, relative to the square of the norm, below which the next direction follows from
	// the image of the last one.
	standstill = 0.01
	// maxSkew bounds the relative difference of the entries for two neighbours up to which conjugate gradients converge as if
	// they were equal. It is half the grid's Péclet number.
	maxSkew       = 0.01
	bandedEntries = 1 << 15 // points times bandwidth of a matrix that is solved by elimination
	pieceValues   = 1 << 14 // values that one thread processes at a time
)

// minimiser solves A·w = f, w = 0 on the boundary, along directions of which each is orthogonal to the last few. If
// A is symmetric or nearly so, these are conjugate gradients with a preconditioner that varies (Notay, SIAM J. Sci.
// Comput. 22, 2000), which minimise the error in the norm of A. Otherwise they are truncated generalised conjugate
// residuals (Eisenstat, Elman and Schultz, SIAM J. Numer. Anal. 20, 1983), which minimise ‖f − A·w‖₂. Each direction
// is the result of a K-cycle for the residual (Notay and Vassilevski, Numer. Linear Algebra Appl. 15, 2008). If the
// last step gained little, it is that for the image of the last direction (Young and Jea, Linear Algebra Appl. 34,
// 1980): where a flow turns, A·z may be orthogonal to the residual, which then stays, and its next direction would
// be z again. The cycle coarsens by aggregation along strong couplings, with the sums of the aggregates' rows as
// coarse matrices (Notay, SIAM J. Sci. Comput. 34, 2012). Every coarse matrix is then an M-matrix, for any jumps and
// flows.
type minimiser struct {
	layout       kernel.Layout
	sweep        *kernel.Sweep
	diagonal     []float64 // dense: of A
	source       []float64 // dense: the source of the relaxation
	x, r, defect []float64 // padded: the solution, the remaining right-hand side, a defect
	direct       *banded   // direct solver for the grid; nil: levels
	levels       []*level
	c, ac        [][]float64 // padded: directions and their images
	squares      []float64   // products of left with the images
	taken        int         // number of directions so far
	exec         problem.Executor
	entries      int     // of the matrix of the grid
	stands       bool    // the last step hardly reduced the norm
	symmetric    bool    // A is symmetric, or flows are so weak that it is nearly
	work         float64 // in sweeps over the grid
}

// newMinimiser returns a minimiser for the grid of p and its variable operator a, which is evaluated if nil.
func newMinimiser(p *problem.Problem, a *kernel.Operator, e problem.Executor) (*minimiser, error) {
	l, err := kernel.NewLayout(p.Dimension, p.N)
	if err != nil {
		return nil, err
	}
	if a == nil {
		op, _, err := problem.NewStencil(p).Operator(problem.Box{Hi: p.N}, l, [kernel.Directions][]float64{})
		if err != nil {
			return nil, err
		}
		a = &op
	}
	n := l.Len()
	m := &minimiser{exec: e, layout: l, diagonal: a.Arrays[kernel.Center], source: make([]float64, p.Points()),
		x: make([]float64, n), r: make([]float64, n), defect: make([]float64, n), entries: p.Points() * (1 + 2*p.Dimension),
		symmetric: nearlySymmetric(l, a)}
	kept := maxDirections
	if m.symmetric || p.Points() > largeGrid {
		kept = fewDirections
	}
	m.c, m.ac, m.squares = make([][]float64, kept), make([][]float64, kept), make([]float64, kept)
	m.sweep, err = kernel.New(kernel.Config{Layout: l, Operator: *a,
		Source: kernel.Field{Array: m.source}, Lower: kernel.NoLower(), Upper: kernel.NoUpper(), Step: 1})
	if err != nil {
		return nil, err
	}
	m.coarsen(&gridMatrix{layout: l, operator: a})
	return m, nil
}

// nearlySymmetric reports whether the entries of A for two neighbours differ from their mean by less than maxSkew. The
// residual weighs regions of low diffusion so little that the search for its norm would stand still.
func nearlySymmetric(l kernel.Layout, a *kernel.Operator) bool {
	stride := 1
	for axis, n := range l.N[:l.Dim] {
		up, down := a.Arrays[kernel.East+2*axis], a.Arrays[kernel.West+2*axis]
		for i := range len(up) - stride {
			if v, w := up[i], down[i+stride]; i/stride%n+1 < n && !(math.Abs(v-w) <= maxSkew*(v+w)) {
				return false
			}
		}
		stride *= n
	}
	return true
}

// coarsen creates the levels for the matrix of the grid.
func (m *minimiser) coarsen(a rows) {
	m.direct = directSolver(a)
	for m.direct == nil {
		g := coarser(a)
		g.direct = directSolver(g)
		m.levels = append(m.levels, g)
		if g.direct != nil || g.size() == a.size() { // equal sizes: nearly diagonal, a sweep solves it
			break
		}
		a = g
	}
	for _, g := range m.levels {
		g.arrange()
	}
}

// solve solves A·w = f for a dense f (nil: 1) until enough returns true or the work reaches most sweeps. It starts from
// the padded values w (nil: 0) and returns the padded solution, which the next call overwrites.
func (m *minimiser) solve(f, w []float64, enough func() bool, most float64) []float64 {
	if m.work = 0; f != nil {
		m.copyIn(m.r, f)
	} else {
		m.eachRow(func(at, _, n int) { problem.Fill(m.r[at:][:n], 1) })
	}
	clear(m.x)
	if w != nil {
		copy(m.x, w)
		m.image(m.defect, m.x)
		m.add(m.defect, m.r, -1)
		if m.dot(m.defect, m.defect) < m.dot(m.r, m.r) {
			clear(m.r)
			m.add(m.r, m.defect, -1)
		} else {
			clear(m.x)
		}
	}
	for at := range min(m.taken, len(m.c)) { // the directions of earlier right-hand sides serve again
		m.advance(at, m.dot(m.left(at), m.r))
	}
	for m.stands = false; !enough() && m.work < most && m.step(m.taken); m.taken++ {
	}
	return m.x
}

// near returns whether 1 − tolerance ≤ A·w ≤ 2 at every point, for A·w = 1.
func (m *minimiser) near(tolerance float64) func() bool {
	return func() bool {
		least, largest := m.remainder()
		return largest <= tolerance && least >= -1
	}
}

// remainder returns the least and the largest value of f − A·w, and of 0.
func (m *minimiser) remainder() (least, largest float64) {
	for _, v := range m.r {
		if !(v >= least) { // a NaN stays
			least = v
		}
		if !(v <= largest) {
			largest = v
		}
	}
	return least, largest
}

// measure returns what padded values w prove about residuals, given as dense magnitudes.
func (m *minimiser) measure(w, residuals []float64) comparisonBound {
	out := comparisonBound{least: math.Inf(1)}
	m.image(m.defect, w)
	m.eachRow(func(at, d, n int) {
		out.addRow(m.defect[at:][:n], w[at:], residuals[d:], m.diagonal[d:])
	})
	return out
}

// step takes direction k and reports whether there was one.
func (m *minimiser) step(k int) bool {
	at := k % len(m.c)
	if m.c[at] == nil {
		m.c[at], m.ac[at] = make([]float64, len(m.x)), make([]float64, len(m.x))
	}
	c, ac := m.c[at], m.ac[at]
	from := m.r
	if m.stands && k > 0 {
		from = m.ac[(k-1)%len(m.c)]
	}
	m.precondition(c, from)
	m.image(ac, c)
	kept := min(k, len(m.c))
	f := m.sums(len(ac), kept, func(out []float64, lo, hi int) {
		for j := range out {
			if j != at {
				out[j] = dot(ac[lo:hi], m.left(j)[lo:hi]) / m.squares[j]
			}
		}
	})
	s := m.sums(len(ac), 2, func(out []float64, lo, hi int) {
		for j, f := range f {
			if j != at {
				add(ac[lo:hi], m.ac[j][lo:hi], -f)
				add(c[lo:hi], m.c[j][lo:hi], -f)
			}
		}
		left := m.left(at)[lo:hi]
		out[0], out[1] = dot(left, ac[lo:hi]), dot(left, m.r[lo:hi])
	})
	if !(s[0] > 0) || math.IsInf(s[0], 1) {
		return false
	}
	m.squares[at] = s[0]
	m.advance(at, s[1])
	return true
}

// left returns the vector whose products with images and residuals determine a step along a stored direction: the
// direction if A is symmetric, otherwise its image.
func (m *minimiser) left(at int) []float64 {
	if m.symmetric {
		return m.c[at]
	}
	return m.ac[at]
}

// advance takes the step along a stored direction that minimises the norm. product is that of left and r.
func (m *minimiser) advance(at int, product float64) {
	gain := product / m.squares[at]
	m.stands = !m.symmetric && gain*product < standstill*m.dot(m.r, m.r)
	m.add(m.x, m.c[at], gain)
	m.add(m.r, m.ac[at], -gain)
}

// precondition writes the result of a cycle for the right-hand side r on the grid to z: relaxation, coarse
// correction, and relaxation in the opposite order.
func (m *minimiser) precondition(z, r []float64) {
	m.eachRow(func(at, d, n int) { copy(m.source[d:], r[at:][:n]) })
	if m.direct != nil {
		m.direct.solve(m.source)
		m.copyIn(z, m.source)
		m.addWork(2 * m.entries)
		return
	}
	clear(z)
	m.relax(z, 0)
	m.relax(z, 1)
	m.boxes(func(b kernel.Box) { m.sweep.Defect(m.defect, z, b) })
	h := m.levels[0]
	clear(h.r)
	m.eachRow(func(at, d, n int) {
		for i, a := range h.aggregate[d:][:n] {
			h.r[a] -= m.defect[at+i]
		}
	})
	m.coarseSolve(0)
	m.eachRow(func(at, d, n int) {
		for i, a := range h.aggregate[d:][:n] {
			z[at+i] += h.x[a]
		}
	})
	for range 3 { // the correction is rough at the aggregates' edges
		m.relax(z, 1)
		m.relax(z, 0)
	}
	m.addWork(5 * m.entries)
}

// independent is the least square of a second direction's part that is orthogonal to the first, relative to its square.
const independent = 1e-10

// coarseSolve solves A·x = r on a level approximately, by two conjugate directions.
func (m *minimiser) coarseSolve(i int) {
	g := m.levels[i]
	if g.direct != nil {
		copy(g.x, g.r)
		g.direct.solve(g.x)
		m.addWork(len(g.direct.rows))
		return
	}
	c, ac := &g.c, &g.ac
	s := m.direction(i, 0, g.r)
	if !(s[0] > 0) || math.IsInf(s[0], 1) {
		clear(g.x)
		return
	}
	first, second := s[1]/s[0], 0.0
	m.add(g.r, ac[0], -first)
	t := m.direction(i, 1, ac[0])
	f := t[2] / s[0]
	if norm := t[0] - f*t[2]; norm > independent*t[0] && !math.IsInf(t[0], 1) {
		second = t[1] / norm
		first -= float64(second * f)
	}
	clear(g.x)
	m.add(g.x, c[0], first)
	if second != 0 {
		m.add(g.x, c[1], second)
	}
}

// direction computes direction k of a level and its image ac. It returns the products of left with ac, r and other,
// where left is the direction if A is symmetric, otherwise the image, each value with the weight 1/diagonal.
func (m *minimiser) direction(i, k int, other []float64) []float64 {
	g := m.levels[i]
	c, ac := g.c[k], g.ac[k]
	m.pieces(g, func(lo, hi int) { g.forward(c, lo, hi) })
	if i+1 < len(m.levels) {
		h := m.levels[i+1]
		m.pieces(g, func(lo, hi int) { g.defect(c, lo, hi) })
		h.restrict(g.t)
		m.coarseSolve(i + 1)
		h.prolong(c)
	}
	copy(g.old, c)
	m.pieces(g, func(lo, hi int) { g.backward(c, lo, hi) })
	m.addWork(g.cycle)
	left := c
	if !m.symmetric {
		left = g.x
	}
	return m.sums(g.size(), 3, func(out []float64, lo, hi int) {
		g.image(ac, lo, hi)
		if !m.symmetric {
			for j := lo; j < hi; j++ {
				left[j] = g.inverse[j] * ac[j]
			}
		}
		out[0], out[1], out[2] = g.products(left, ac, other, lo, hi)
	})
}

// pieces calls f for pieces of a level.
func (m *minimiser) pieces(g *level, f func(lo, hi int)) { m.each(g.size(), f) }

// addWork adds the work of a pass over some entries of a matrix.
func (m *minimiser) addWork(entries int) { m.work += float64(entries) / float64(m.entries) }

// relax relaxes the points of one colour.
func (m *minimiser) relax(z []float64, colour int) {
	m.boxes(func(b kernel.Box) { m.sweep.RelaxColour(z, colour, 1, b) })
}

// image writes A·v to dst.
func (m *minimiser) image(dst, v []float64) {
	m.boxes(func(b kernel.Box) { m.sweep.Apply(dst, v, b) })
	m.addWork(m.entries)
}

// boxes calls f for pieces of the grid.
func (m *minimiser) boxes(f func(b kernel.Box)) {
	in := m.layout.Interior()
	slow := m.layout.Dim - 1
	n := in.Hi[slow]
	pieces := max(1, min(n, m.layout.Points()/pieceValues))
	m.exec.For(pieces, func(i int) {
		b := in
		b.Lo[slow], b.Hi[slow] = n*i/pieces, n*(i+1)/pieces
		f(b)
	})
}

// eachRow calls f for the rows of the grid: n values from offset at of a padded array, and d of a dense one.
func (m *minimiser) eachRow(f func(at, d, n int)) {
	l, d := m.layout, 0
	for z := range l.N[2] {
		for y := range l.N[1] {
			f(l.Index(0, y, z), d, l.N[0])
			d += l.N[0]
		}
	}
}

// copyIn copies a dense array to own points.
func (m *minimiser) copyIn(dst, src []float64) {
	m.eachRow(func(at, d, n int) { copy(dst[at:][:n], src[d:]) })
}

// each calls f for pieces of an array of n values. The pieces do not depend on the number of threads.
func (m *minimiser) each(n int, f func(lo, hi int)) {
	m.exec.For((n+pieceValues-1)/pieceValues, func(i int) { f(i*pieceValues, min((i+1)*pieceValues, n)) })
}

// dot returns the scalar product of two padded arrays on the grid, whose ghosts are 0.
func (m *minimiser) dot(a, b []float64) float64 {
	return m.sums(len(a), 1, func(out []float64, lo, hi int) { out[0] = dot(a[lo:hi], b[lo:hi]) })[0]
}

// sums adds up count results of f for pieces of an array of n values.
func (m *minimiser) sums(n, count int, f func(out []float64, lo, hi int)) []float64 {
	partial := make([]float64, (n+pieceValues-1)/pieceValues*count)
	m.each(n, func(lo, hi int) {
		at := lo / pieceValues * count
		f(partial[at:at+count], lo, hi)
	})
	sums := partial[:count]
	for i, v := range partial[count:] {
		sums[i%count] += v
	}
	return sums
}

// add adds a multiple of an array to another.
func (m *minimiser) add(to, a []float64, factor float64) {
	m.each(len(to), func(lo, hi int) { add(to[lo:hi], a[lo:hi], factor) })
}

func add(to, a []float64, factor float64) {
	a = a[:len(to)]
	for i := range to {
		to[i] += float64(factor * a[i])
	}
}

// dot has four sums that do not wait for each other.
func dot(a, b []float64) float64 {
	var s [4]float64
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s[0] += float64(a[0] * b[0])
		s[1] += float64(a[1] * b[1])
		s[2] += float64(a[2] * b[2])
		s[3] += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s[0] += float64(v * b[i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
