package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const (
	// comparisonTolerance is the largest |A·w − 1|, or |A·w − f|/f, of an acceptable comparison function. Its
	// bound is then at most (1 + comparisonTolerance)/(1 − comparisonTolerance) times that of A·w = 1.
	comparisonTolerance = 0.02
	// maxComparisonWork bounds the work of a comparison function on the problem's own grid, in sweeps over it.
	maxComparisonWork = 600
	// maxDirections is the number of earlier directions to which a new one is made orthogonal. Each needs two
	// arrays of the grid's size. Large grids keep fewer.
	maxDirections      = 12
	maxDirectionsLarge = 3
	largeGrid          = 1 << 21
	aggregateCycles    = 2 // W-cycles
	// weakAxis is the fraction of the strongest coupling below which an axis is not coarsened.
	weakAxis      = 0.25
	bandedEntries = 1 << 15 // points times bandwidth of a grid that is solved by elimination
	pieceValues   = 1 << 14 // values that one thread processes at a time
)

// minimiser solves A·w = f > 0, w = 0 on the boundary, by truncated generalised conjugate residuals (Eisenstat,
// Elman and Schultz, SIAM J. Numer. Anal. 20, 1983). Every step minimises ‖(f − A·w)/f‖₂ along a direction that
// is orthogonal to the last few, so the norm never grows. Each direction is the result of a W-cycle for the
// residual. The cycle coarsens by aggregation, with the sums of the aggregates' rows as coarse operators
// (Notay, SIAM J. Sci. Comput. 34, 2012). Every coarse operator is then an M-matrix, for any jumps and flows. A
// need not be symmetric.
type minimiser struct {
	grids  []*level
	c, ac  [][]float64 // padded: directions and their images, with ‖ac‖₂ = 1
	weight []float64   // padded: reciprocal of the right-hand side; nil: 1
	exec   problem.Executor
	points int     // of the finest grid
	work   float64 // in sweeps over it
}

// newMinimiser returns a minimiser for the grid and the variable operator of p.
func newMinimiser(p *problem.Problem, e problem.Executor) (*minimiser, error) {
	b := &problem.Discretization{Executor: e}
	if err := b.Move(p, problem.Box{Hi: p.N}); err != nil {
		return nil, err
	}
	m := &minimiser{exec: e, points: p.Points()}
	kept := maxDirections
	if m.points > largeGrid {
		kept = maxDirectionsLarge
	}
	m.c, m.ac = make([][]float64, kept), make([][]float64, kept)
	g, err := newLevel(b.Layout, b.Operator)
	for ; err == nil; g, err = g.coarser() {
		m.grids = append(m.grids, g)
		if band := bandOf(g.layout); band == 1 || g.layout.Points()*band <= bandedEntries {
			g.direct = newBanded(g.layout, &g.operator)
			break
		}
	}
	return m, err
}

// solve solves A·w = 1, or A·w = f for a dense positive f, until the relative defect is at most near at every
// point or the work reaches most sweeps. It starts from the padded values w (nil: 0) and returns the padded
// solution, which the next call overwrites.
func (m *minimiser) solve(f, w []float64, near, most float64) []float64 {
	g := m.grids[0]
	if m.work, m.weight = 0, nil; f != nil {
		g.copyIn(g.r, f)
		m.weight = make([]float64, len(g.r))
		g.eachRow(func(at, n int) {
			for i := at; i < at+n; i++ {
				m.weight[i] = 1 / g.r[i]
			}
		})
	} else {
		g.eachRow(func(at, n int) { problem.Fill(g.r[at:][:n], 1) })
	}
	clear(g.x)
	if w != nil {
		copy(g.x, w)
		m.image(g, g.defect, g.x)
		m.add(g.defect, g.r, -1)
		if m.dot(g.defect, g.defect) < m.dot(g.r, g.r) {
			clear(g.r)
			m.add(g.r, g.defect, -1)
		} else {
			clear(g.x)
		}
	}
	for k := 0; m.work < most && !(m.largestDefect() <= near) && m.step(k); k++ {
	}
	return g.x
}

// largestDefect returns the largest defect relative to the right-hand side.
func (m *minimiser) largestDefect() float64 {
	r := m.grids[0].r
	if m.weight == nil {
		return kernel.MaxAbs(r)
	}
	largest := 0.0
	for i, v := range r {
		largest = problem.MaxOrNaN(largest, math.Abs(v*m.weight[i]))
	}
	return largest
}

// step takes direction k and reports whether there was one.
func (m *minimiser) step(k int) bool {
	g := m.grids[0]
	at := k % len(m.c)
	if m.c[at] == nil {
		m.c[at], m.ac[at] = make([]float64, len(g.x)), make([]float64, len(g.x))
	}
	c, ac := m.c[at], m.ac[at]
	m.precondition(0, c)
	m.image(g, ac, c)
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
	gain := m.dot(g.r, ac) / norm
	m.each(len(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c[i] /= norm
			ac[i] /= norm
		}
	})
	m.add(g.x, c, gain)
	m.add(g.r, ac, -gain)
	return true
}

// precondition writes the result of a cycle for the residual of grid i to z: relaxation, coarse-grid
// correction, and relaxation in the opposite order.
func (m *minimiser) precondition(i int, z []float64) {
	g := m.grids[i]
	to := 0
	g.eachRow(func(at, n int) { to += copy(g.source[to:], g.r[at:][:n]) })
	if g.direct != nil {
		g.direct.solve(g.source)
		g.copyIn(z, g.source)
		m.addWork(g, 2)
		return
	}
	clear(z)
	m.relax(g, z, 0)
	m.relax(g, z, 1)
	m.boxes(g, func(b kernel.Box) { g.sweep.Defect(g.defect, z, b) })
	m.addWork(g, 2)
	h := m.grids[i+1]
	clear(h.x)
	clear(h.r)
	h.eachPair(g.layout, func(coarse, at int) { h.r[coarse] -= g.defect[at] })
	for k := range aggregateCycles {
		m.precondition(i+1, h.z)
		m.add(h.x, h.z, 1)
		if h.direct != nil || k+1 == aggregateCycles {
			break
		}
		m.image(h, h.defect, h.z)
		m.add(h.r, h.defect, -1)
	}
	h.eachPair(g.layout, func(coarse, at int) { z[at] += h.x[coarse] })
	m.relax(g, z, 1)
	m.relax(g, z, 0)
	m.addWork(g, 1)
}

// addWork adds sweeps over a grid to the work.
func (m *minimiser) addWork(g *level, sweeps float64) {
	m.work += sweeps * float64(g.layout.Points()) / float64(m.points)
}

// relax relaxes the points of one colour.
func (m *minimiser) relax(g *level, z []float64, colour int) {
	m.boxes(g, func(b kernel.Box) { g.sweep.RelaxColour(z, colour, 1, b) })
}

// image writes A·v to dst.
func (m *minimiser) image(g *level, dst, v []float64) {
	m.boxes(g, func(b kernel.Box) { g.sweep.Apply(dst, v, b) })
	m.addWork(g, 1)
}

// boxes calls f for pieces of a grid.
func (m *minimiser) boxes(g *level, f func(b kernel.Box)) {
	in := g.layout.Interior()
	slow := g.layout.Dim - 1
	n := in.Hi[slow]
	pieces := max(1, min(n, g.layout.Points()/pieceValues))
	m.exec.For(pieces, func(i int) {
		b := in
		b.Lo[slow], b.Hi[slow] = n*i/pieces, n*(i+1)/pieces
		f(b)
	})
}

// each calls f for pieces of an array of n values. The pieces do not depend on the number of threads.
func (m *minimiser) each(n int, f func(lo, hi int)) {
	m.exec.For((n+pieceValues-1)/pieceValues, func(i int) { f(i*pieceValues, min((i+1)*pieceValues, n)) })
}

// dot returns the weighted scalar product of two padded arrays on the finest grid, whose ghosts are 0.
func (m *minimiser) dot(a, b []float64) float64 {
	partial := make([]float64, (len(a)+pieceValues-1)/pieceValues)
	m.each(len(a), func(lo, hi int) {
		sum := 0.0
		for i := lo; i < hi; i++ {
			v, w := a[i], b[i]
			if m.weight != nil {
				v, w = v*m.weight[i], w*m.weight[i]
			}
			sum += float64(v * w)
		}
		partial[lo/pieceValues] = sum
	})
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
