package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// rowSums names the barrier w = 1.
const rowSums = "row sums"

// constantBarrier is the best of the barriers that cost next to nothing where one row
// of coefficients serves every point: 1, if the entries of a row add up to something
// positive (a reaction, a time step); the solution of A·w = 1 that depends on one
// coordinate only (a parabola where nothing flows); the solution in all coordinates as
// a sum of products. The off-diagonal entries must not be positive.
func constantBarrier(p *problem.Problem, e problem.Executor) barrier {
	ones := newSeparable(p, rowSums)
	ones.add(1, oneTables(p), [3]float64{1, 1, 1})
	best := ones.check(e)
	better := func(s *separable) (inverse float64) {
		b := s.check(e)
		inverse = b.inverse()
		if inverse < best.inverse() || math.IsNaN(best.inverse()) {
			best = b
		}
		return inverse
	}
	gain := 0.0 // at most what there is to gain on 1/excess, relatively
	for a := range p.Dimension {
		s := newSeparable(p, "A·w = 1 along one axis")
		tables, rim := oneTables(p), [3]float64{1, 1, 1}
		s.alongAxis(a, tables[a])
		rim[a] = 0
		s.add(1, tables, rim)
		gain += 1 - s.excess*better(s)
	}
	if p.Dimension > 1 && gain > 0.05 {
		better(heatBarrier(p))
	}
	return best
}

// oneTables is 1 at every interior point, for each axis.
func oneTables(p *problem.Problem) (v [3][]float64) {
	for a := range v {
		v[a] = make([]float64, p.N[a])
		for i := range v[a] {
			v[a][i] = 1
		}
	}
	return v
}

// alongAxis solves A·w = 1 for a w that depends on one coordinate.
func (s *separable) alongAxis(a int, v []float64) {
	t := newTridiagonal(s.row[kernel.West+2*a], s.row[kernel.East+2*a], max(s.excess, 0), len(v))
	for i := range v {
		v[i] = 1
	}
	t.solve(v)
	s.symmetrise(a, v)
}

// symmetrise makes a table the same from either end where the coefficients are, which
// rounding has spoiled.
func (s *separable) symmetrise(a int, v []float64) {
	if s.row[kernel.West+2*a] == s.row[kernel.East+2*a] {
		for i := range len(v) / 2 {
			v[len(v)-1-i] = v[i]
		}
	}
}

const (
	heatRatio = 2.2  // of one time to the next
	heatSteps = 4    // of implicit Euler in between
	heatEnd   = 0.02 // what may be left at the end
	heatTerms = 200
)

// heatBarrier is ∫ e^(−tA)·1 dt = A⁻¹·1 by the trapezoidal rule in log t. For A = ΣA_a,
// each acting along one axis, e^(−tA)·1 is a product, and A·e^(−tA)·1 ≥ 0 at all
// times, so that A·w is a sum of positive pulses whose sum is about 1.
func heatBarrier(p *problem.Problem) *separable {
	s := newSeparable(p, "A·w = 1 as a sum of products")
	reaction := max(s.excess, 0)
	t := heatRatio / 8 / s.row[kernel.Center]
	v := oneTables(p)
	weight, span := t+t*math.Log(heatRatio)/2, t
	for range heatTerms {
		for a := range p.Dimension {
			step := span / heatSteps
			m := newTridiagonal(step*s.row[kernel.West+2*a], step*s.row[kernel.East+2*a], 1, p.N[a])
			for range heatSteps {
				m.solve(v[a])
			}
			s.symmetrise(a, v[a])
		}
		decay := math.Exp(-reaction * t)
		var rim [3]float64
		for a := p.Dimension; a < 3; a++ {
			rim[a] = 1
		}
		s.add(weight*decay, v, rim)
		left := decay
		for a := range p.Dimension {
			left *= maxOf(v[a])
		}
		if left < heatEnd {
			break
		}
		span = t * (heatRatio - 1)
		t += span
		weight = t * math.Log(heatRatio)
	}
	return s
}

// tridiagonal is a matrix with −low and −high beside the diagonal, whose rows add up
// to rest but for the first and the last; factored, no entry positive beside the
// diagonal, so elimination needs no pivots.
type tridiagonal struct {
	low    float64
	upper  []float64 // high / pivot
	invert []float64 // 1 / pivot
}

func newTridiagonal(low, high, rest float64, n int) *tridiagonal {
	t := &tridiagonal{low: low, upper: make([]float64, n), invert: make([]float64, n)}
	before := 0.0
	for i := range n {
		pivot := low + high + rest - low*before
		t.invert[i] = 1 / pivot
		before = high / pivot
		t.upper[i] = before
	}
	return t
}

// solve replaces the right-hand side by the solution.
func (t *tridiagonal) solve(v []float64) {
	before := 0.0
	for i := range v {
		before = (v[i] + t.low*before) * t.invert[i]
		v[i] = before
	}
	for i := len(v) - 2; i >= 0; i-- {
		v[i] += t.upper[i] * v[i+1]
	}
}
