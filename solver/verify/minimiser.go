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
	// maxDirections is the number of earlier directions to which a new one is made orthogonal. Each needs two
	// arrays of the grid's size. Large grids keep fewer.
	maxDirections      = 12
	maxDirectionsLarge = 3
	largeGrid          = 1 << 21
	// standstill is the gain of a step, relative to the square of the norm, below which the next direction follows from
	// the image of the last one.
	standstill    = 0.01
	bandedEntries = 1 << 15 // points times bandwidth of a matrix that is solved by elimination
	pieceValues   = 1 << 14 // values that one thread processes at a time
)

// minimiser solves A·w = f, w = 0 on the boundary, by truncated generalised conjugate residuals (Eisenstat,
// Elman and Schultz, SIAM J. Numer. Anal. 20, 1983). Every step minimises ‖f − A·w‖₂ along a direction that is
// orthogonal to the last few, so the norm never grows. Each direction is the result of a K-cycle for the
// residual (Notay and Vassilevski, Numer. Linear Algebra Appl. 15, 2008). If the last step gained little, it is that
// for the image of the last direction (Young and Jea, Linear Algebra Appl. 34, 1980): where a flow turns, A·z may be
// orthogonal to the residual, which then stays, and its next direction would be z again. The cycle coarsens by
// aggregation along strong couplings, with the sums of the aggregates' rows as coarse matrices (Notay, SIAM J. Sci.
// Comput. 34, 2012). Every coarse matrix is then an M-matrix, for any jumps and flows. A need not be symmetric.
type minimiser struct {
	layout       kernel.Layout
	sweep        *kernel.Sweep
	diagonal     []float64 // dense: of A
	source       []float64 // dense: the source of the relaxation
	x, r, defect []float64 // padded: the solution, the remaining right-hand side, a defect
	direct       *banded   // direct solver for the grid; nil: levels
	levels       []*level
	c, ac        [][]float64 // padded: directions and their images, with ‖ac‖₂ = 1
	exec         problem.Executor
	entries      int     // of the matrix of the grid
	stands       bool    // the last step hardly reduced the norm
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
		x: make([]float64, n), r: make([]float64, n), defect: make([]float64, n), entries: p.Points() * (1 + 2*p.Dimension)}
	kept := maxDirections
	if p.Points() > largeGrid {
		kept = maxDirectionsLarge
	}
	m.c, m.ac = make([][]float64, kept), make([][]float64, kept)
	m.sweep, err = kernel.New(kernel.Config{Layout: l, Operator: *a,
		Source: kernel.Field{Array: m.source}, Lower: kernel.NoLower(), Upper: kernel.NoUpper(), Step: 1})
	if err != nil {
		return nil, err
	}
	m.coarsen(&gridMatrix{layout: l, operator: a})
	return m, nil
}

// coarsen creates the levels for the matrix of the grid.
func (m *minimiser) coarsen(a rows) {
	if m.direct = directSolver(a); m.direct != nil {
		return
	}
	for {
		g := coarser(a)
		g.allocate()
		g.direct = directSolver(g)
		m.levels = append(m.levels, g)
		if g.direct != nil || g.size() == a.size() { // equal sizes: nearly diagonal, a sweep solves it
			return
		}
		a = g
	}
}

// solve solves A·w = f for a dense f (nil: 1) until enough returns true or the work reaches most sweeps. It starts from
// the padded values w (nil: 0) and returns the padded solution, which the next call overwrites.
func (m *minimiser) solve(f, w []float64, enough func() bool, most float64) []float64 {
	if m.work, m.stands = 0, false; f != nil {
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
	for k := 0; !enough() && m.work < most && m.step(k); k++ {
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
	for j := range min(k, len(m.c)) {
		if j != at {
			f := m.dot(ac, m.ac[j])
			m.add(ac, m.ac[j], -f)
			m.add(c, m.c[j], -f)
		}
	}
	norm := math.Sqrt(m.dot(ac, ac))
	if !(norm > 0) || math.IsInf(norm, 1) {
		return false
	}
	gain := m.dot(m.r, ac) / norm
	m.stands = gain*gain < standstill*m.dot(m.r, m.r)
	m.each(len(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c[i] /= norm
			ac[i] /= norm
		}
	})
	m.add(m.x, c, gain)
	m.add(m.r, ac, -gain)
	return true
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
	m.relax(z, 1)
	m.relax(z, 0)
	m.addWork(3 * m.entries)
}

// goodEnough is the relative residual at which a coarse solve takes no second direction.
const goodEnough = 0.25

// coarseSolve solves A·x = r on a level approximately, by at most two generalised conjugate residuals.
func (m *minimiser) coarseSolve(i int) {
	g := m.levels[i]
	if g.direct != nil {
		copy(g.x, g.r)
		g.direct.solve(g.x)
		m.addWork(len(g.direct.rows))
		return
	}
	clear(g.x)
	size := m.product(g, g.r, g.r)
	for k := range 2 {
		c, ac := g.c[k], g.ac[k]
		m.cycle(i, c)
		m.pieces(g, func(lo, hi int) { g.image(ac, c, lo, hi) })
		if k > 0 {
			f := m.product(g, ac, g.ac[0]) / m.product(g, g.ac[0], g.ac[0])
			m.add(ac, g.ac[0], -f)
			m.add(c, g.c[0], -f)
		}
		norm := m.product(g, ac, ac)
		if !(norm > 0) || math.IsInf(norm, 1) {
			return
		}
		gain := m.product(g, g.r, ac) / norm
		m.add(g.x, c, gain)
		m.add(g.r, ac, -gain)
		m.addWork(2 * len(g.column))
		if m.product(g, g.r, g.r) <= goodEnough*goodEnough*size {
			return
		}
	}
}

// cycle writes the result of a cycle for the residual of a level to z.
func (m *minimiser) cycle(i int, z []float64) {
	g := m.levels[i]
	m.pieces(g, func(lo, hi int) { g.forward(z, g.r, lo, hi) })
	m.addWork(3 * (len(g.column) + len(g.diagonal)))
	if i+1 < len(m.levels) {
		h := m.levels[i+1]
		m.defectOf(g, z)
		h.restrict(g.t)
		m.coarseSolve(i + 1)
		h.prolong(z)
	}
	m.defectOf(g, z)
	m.pieces(g, func(lo, hi int) { g.backward(g.z, g.t, lo, hi) })
	m.add(z, g.z, 1)
}

// defectOf writes r − A·z to t.
func (m *minimiser) defectOf(g *level, z []float64) {
	m.pieces(g, func(lo, hi int) {
		g.image(g.t, z, lo, hi)
		for j := lo; j < hi; j++ {
			g.t[j] = g.r[j] - g.t[j]
		}
	})
}

// pieces calls f for pieces of a level.
func (m *minimiser) pieces(g *level, f func(lo, hi int)) { m.each(g.size(), f) }

// product is dot for the vectors of a level, each value with the weight 1/diagonal.
func (m *minimiser) product(g *level, a, b []float64) float64 {
	return m.sum(len(a), func(lo, hi int) float64 {
		sum := 0.0
		for i := lo; i < hi; i++ {
			sum += float64(a[i]*b[i]) / g.diagonal[i]
		}
		return sum
	})
}

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
	return m.sum(len(a), func(lo, hi int) float64 {
		sum := 0.0
		for i := lo; i < hi; i++ {
			sum += float64(a[i] * b[i])
		}
		return sum
	})
}

// sum adds up the results of f for pieces of an array of n values.
func (m *minimiser) sum(n int, f func(lo, hi int) float64) float64 {
	partial := make([]float64, (n+pieceValues-1)/pieceValues)
	m.each(n, func(lo, hi int) { partial[lo/pieceValues] = f(lo, hi) })
	sum := 0.0
	for _, v := range partial {
		sum += v
	}
	return sum
}

// add adds a multiple of a padded array to another.
func (m *minimiser) add(to, a []float64, factor float64) {
	m.each(len(to), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to[i] += float64(factor * a[i])
		}
	})
}
