package verify

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Certificate is what the error bound of an evaluation rests on. If no entry of A
// beside the diagonal is positive and some w ≥ 0 has A·w ≥ c > 0, both checked at every
// point of the grid, A is an M-matrix and a feasible vector u with the VI residual r
// is within max w/c · ‖r‖∞ of the discrete solution: where u* − u is largest against
// w, u* lies above the obstacle and u below the upper one, so A·(u* − u) ≤ |r| there.
// No symmetry is asked for, nor constant coefficients.
type Certificate struct {
	MMatrix  bool    // A was found to be a nonsingular M-matrix
	Inverse  float64 // ‖A⁻¹‖∞ is at most that; NaN: not known
	Rounding float64 // what the bound allows for rounding in the computed ‖r‖∞
	By       string  // how w was found
	Why      string  // why there is no bound; empty: there is one
	Work     float64 // what the search for w cost, in sweeps over the grid

	// |u − u*| ≤ factor·w point by point.
	factor float64
	w      shape
}

// rowSigns refuses a row with a positive entry beside the diagonal; s.at gives the
// entries with the other sign.
func rowSigns(s problem.Stencil, idx [3]int, v *[kernel.Directions]float64) string {
	for d := kernel.West; d <= 2*s.P.Dimension; d++ {
		if !(v[d] >= 0) {
			return fmt.Sprintf("A is no M-matrix: at %v the entry for the neighbour in %c is positive; take upwind differences or a finer grid",
				s.P.Place(idx), 'x'+rune((d-1)/2))
		}
	}
	return ""
}

// rows checks the signs of a slab's rows, and their sums where the rows differ.
func (s *chunkResult) checkRows(b *problem.Discretization) {
	s.excess, s.diagonal = math.Inf(1), [2]float64{math.Inf(1), 0}
	p, o := b.Problem, &b.Operator
	if o.Form != kernel.Variable {
		return // one row, which certify looks at
	}
	st := problem.NewStencil(p)
	b.Box.Each(func(d int, idx [3]int) bool {
		var v [kernel.Directions]float64
		sum, center := o.Arrays[kernel.Center][d], o.Arrays[kernel.Center][d]
		for n := kernel.West; n <= 2*p.Dimension; n++ {
			v[n] = o.Arrays[n][d]
			sum -= v[n]
		}
		s.diagonal = [2]float64{min(s.diagonal[0], center), max(s.diagonal[1], center)}
		s.excess = min(s.excess, sum-16*kernel.UnitRoundoff*center)
		if s.signs == "" {
			s.signs = rowSigns(st, idx, &v)
		}
		return true
	})
}

// certify adds the bound to an evaluation, or why there is none.
func (s *chunkResult) certify(j *evaluator, out *Evaluation, e problem.Executor) {
	p := j.p
	c := &out.Certificate
	c.Inverse, c.Rounding, c.Work = math.NaN(), s.rounding, j.work
	st := problem.NewStencil(p)
	best, bound := barrier{by: rowSums, least: s.excess, top: 1, shape: constantOne{}}, math.NaN()
	if st.Constant() {
		row := st.At([3]int{1, 1, 1})
		if s.signs = rowSigns(st, [3]int{1, 1, 1}, &row); s.signs == "" {
			best = constantBarrier(p, e)
		}
	}
	if c.Why = s.signs; c.Why != "" {
		return
	}
	c.factor = s.inf / best.least
	if f := (barrier{by: "an approximate solution of A·w = 1", least: s.unit.least, top: s.unit.top, shape: j.comparison}); f.inverse() > 0 {
		bound = s.unit.bound() // sharper than with the least A·w: point by point
		if !(best.inverse() <= f.inverse()) {
			best, c.factor = f, s.unit.ratio
		}
	}
	c.w = best.shape
	if sharp := s.sharp.bound(); j.sharp != nil && !(bound <= sharp) && sharp < math.Inf(1) {
		bound, c.factor, c.w = sharp, s.sharp.ratio, j.sharp
	}
	if c.Inverse = best.inverse(); math.IsNaN(c.Inverse) {
		c.w = nil
		c.Why = "no w ≥ 0 with A·w > 0 was found: A is no M-matrix, or ‖A⁻¹‖ is very large"
		if j.quick {
			c.Why = "none was searched for, since the run was interrupted"
		} else if j.work > 0 {
			c.Why += fmt.Sprintf(" (A·w = 1 was solved in vain with the work of %.0f sweeps)", j.work)
		}
		return
	}
	c.MMatrix, c.By = true, best.by
	if c.Why = s.outside; c.Why == "" && !kernel.Finite(s.inf) {
		c.Why = "the residual is not finite"
	}
	if c.Why == "" {
		if all := c.Inverse * s.inf; !(bound <= all) {
			bound = all
		}
		out.ErrorBound = bound * (1 + 8*kernel.UnitRoundoff)
	}
}

// ones is w = 1.
type constantOne struct{}

func (constantOne) fill(row []float64, _ [3]int) {
	for i := range row {
		row[i] = 1
	}
}

// residualRounding bounds |r̂ − r| at all points of a block, r̂ as the kernels compute
// it from padded values u: the longest way from a coefficient to the result is a
// product, three additions and two subtractions, so the error is at most γ₆ times the
// sum of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms,
// section 3.1); a seventh unit covers that this sum is itself computed, the last
// term what underflows.
func residualRounding(b *problem.Discretization, u []float64) float64 {
	return roundingUpTo(b, problem.LargestMagnitude(u))
}

// roundingUpTo is residualRounding for values of at most that magnitude.
func roundingUpTo(b *problem.Discretization, value float64) float64 {
	source := math.Abs(b.Source.Value)
	if b.Source.Array != nil {
		source = problem.LargestMagnitude(b.Source.Array)
	}
	return 7*kernel.UnitRoundoff*(rowMagnitude(b)*value+source) + 16*math.SmallestNonzeroFloat64
}

// rowMagnitude is the largest sum of magnitudes of a row's entries in the block.
func rowMagnitude(b *problem.Discretization) float64 {
	o, used := &b.Operator, 1+2*b.Problem.Dimension
	sum := 0.0
	switch o.Form {
	case kernel.Isotropic:
		return math.Abs(o.Diag) + float64(used-1)*math.Abs(o.Off)
	case kernel.Constant:
		for _, v := range o.Values[:used] {
			sum += math.Abs(v)
		}
		return sum
	}
	largest := 0.0
	for d := range o.Arrays[kernel.Center] {
		largest = max(largest, rowSum(b, d))
	}
	return largest
}

// entries is the sum of the magnitudes of the row at dense index d, where rows differ.
func rowSum(b *problem.Discretization, d int) float64 {
	sum := 0.0
	for n := range 1 + 2*b.Problem.Dimension {
		sum += math.Abs(b.Operator.Arrays[n][d])
	}
	return sum
}
