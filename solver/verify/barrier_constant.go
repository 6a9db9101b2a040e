package verify

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// rowSums names the barrier w = 1.
const rowSums = "row sums"

// constantBarrier returns the best of the cheap barriers for constant coefficients: w = 1, if the entries of a
// row have a positive sum (a reaction, a time step); the solution of A·w = 1 that depends on one coordinate
// only (a parabola without a flow); and the solution in all coordinates as a sum of products. The off-diagonal
// entries must not be positive.
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
	gain := 0.0 // upper bound of the relative gain over 1/excess
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

// oneTables returns the table of ones for each axis.
func oneTables(p *problem.Problem) (v [3][]float64) {
	for a := range v {
		v[a] = slices.Repeat([]float64{1}, p.N[a])
	}
	return v
}

// alongAxis solves A·w = 1 for a w that depends on one coordinate.
func (s *separable) alongAxis(a int, v []float64) {
	t := newTridiagonal(s.row[kernel.West+2*a], s.row[kernel.East+2*a], max(s.excess, 0), len(v))
	problem.Fill(v, 1)
	t.solve(v)
	s.symmetrise(a, v)
}

// symmetrise restores the symmetry of a table that rounding has broken, where the coefficients are symmetric.
func (s *separable) symmetrise(a int, v []float64) {
	if s.row[kernel.West+2*a] == s.row[kernel.East+2*a] {
		for i := range len(v) / 2 {
			v[len(v)-1-i] = v[i]
		}
	}
}

const (
	heatRatio = 2.2  // ratio of consecutive times
	heatSteps = 4    // steps of implicit Euler between them
	heatEnd   = 0.02 // largest value that may remain at the end
	heatTerms = 200
)

// heatBarrier returns ∫ e^(−tA)·1 dt = A⁻¹·1 by the trapezoidal rule in log t. For A = ΣA_a, each acting along
// one axis, e^(−tA)·1 is a product and A·e^(−tA)·1 ≥ 0 at all times, so that A·w is a sum of positive pulses
// with a sum of about 1.
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
			left *= slices.Max(v[a])
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

// tridiagonal is the factorization of a matrix with off-diagonal entries −low and −high, whose rows have the
// sum rest except for the first and the last. No off-diagonal entry is positive, so elimination needs no
// pivoting.
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
