package verify

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Certificate holds what the error bound of an evaluation is based on. If no off-diagonal entry of A is
// positive and some w ≥ 0 has A·w ≥ c > 0, both checked at every point, A is an M-matrix and a feasible vector
// u with the VI residual r differs from the discrete solution u* by at most max w/c · ‖r‖∞: where u* − u is
// largest relative to w, u* lies above the lower obstacle and u below the upper one, so A·(u* − u) ≤ |r| there.
// A need not be symmetric, and its coefficients need not be constant.
type Certificate struct {
	MMatrix  bool    // A was proved to be a nonsingular M-matrix
	Inverse  float64 // upper bound of ‖A⁻¹‖∞; NaN: unknown
	Rounding float64 // part of the bound for rounding in ‖r‖∞
	By       string  // how w was found
	Why      string  // reason why there is no bound; empty if there is one
	Work     float64 // work of the search for w, in sweeps over the grid

	// |u − u*| ≤ factor·w at every point
	factor float64
	w      shape
}

// rowSigns returns a description of a positive off-diagonal entry, or an empty string. v holds the entries with
// the opposite sign, as Stencil.At returns them.
func rowSigns(s problem.Stencil, idx [3]int, v *[kernel.Directions]float64) string {
	for d := kernel.West; d <= 2*s.Problem.Dimension; d++ {
		if !(v[d] >= 0) {
			return fmt.Sprintf("A is no M-matrix: at %v the entry for the neighbour in %c is positive; "+
				"use upwind differences or a finer grid", s.Problem.Location(idx), 'x'+rune((d-1)/2))
		}
	}
	return ""
}

// CheckRows returns an error unless the rows of A at the points of a box have no positive off-diagonal entry and no
// negative sum, up to rounding. A·1 ≥ 0 then holds there.
func CheckRows(p *problem.Problem, box problem.Box) error {
	l, err := kernel.NewLayout(p.Dimension, box.Size())
	if err != nil {
		return err
	}
	st := problem.NewStencil(p)
	op, _, err := st.Operator(box, l, [kernel.Directions][]float64{})
	if err != nil {
		return err
	}
	for d, idx := range box.Each {
		var v [kernel.Directions]float64
		if op.Form != kernel.Variable {
			v = st.At(idx)
		} else {
			for n := range v {
				if op.Arrays[n] != nil {
					v[n] = op.Arrays[n][d]
				}
			}
		}
		sum := v[kernel.Center]
		for n := kernel.West; n <= 2*p.Dimension; n++ {
			sum -= v[n]
		}
		if signs := rowSigns(st, idx, &v); signs != "" {
			return errors.New(signs)
		}
		if sum < -16*kernel.UnitRoundoff*v[kernel.Center] {
			return fmt.Errorf("the sum of a row of A is negative at %v; the reaction must not be negative", p.Location(idx))
		}
		if op.Form != kernel.Variable {
			break // all rows are equal
		}
	}
	return nil
}

// checkRows checks the signs of a chunk's rows, and their sums where the rows differ.
func (s *chunkResult) checkRows(b *problem.Discretization) {
	s.excess, s.diagonal = math.Inf(1), [2]float64{math.Inf(1), 0}
	p, o := b.Problem, &b.Operator
	if o.Form != kernel.Variable {
		return // one row, which certify checks
	}
	st := problem.NewStencil(p)
	for d, idx := range b.Box.Each {
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
	}
}

// certify adds the bound, or the reason why there is none, to an evaluation.
func (s *chunkResult) certify(j *evaluator, out *Evaluation, e problem.Executor) {
	p := j.p
	c := &out.Certificate
	c.Inverse = math.NaN()
	c.Rounding = s.rounding
	c.Work = j.work
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
	f := barrier{by: "an approximate solution of A·w = 1", least: s.unit.least, top: s.unit.top, shape: j.comparison}
	if f.inverse() > 0 {
		bound = s.unit.bound() // sharper than with the least A·w: point by point
		if !(best.inverse() <= f.inverse()) {
			best, c.factor = f, s.unit.ratio
		}
	}
	c.w = best.shape
	if sharp := s.sharp.bound(); j.sharp != nil && !(bound <= sharp) && sharp < math.Inf(1) {
		bound = sharp
		c.factor = s.sharp.ratio
		c.w = j.sharp
	}
	if c.Inverse = best.inverse(); math.IsNaN(c.Inverse) {
		c.w = nil
		c.Why = "no w ≥ 0 with A·w > 0 was found: A is no M-matrix, or ‖A⁻¹‖ is very large"
		if j.quick {
			c.Why = "none was searched for because the run was ended early"
		} else if j.work > 0 {
			c.Why += fmt.Sprintf(" (the search for w ended after %.0f sweeps)", j.work)
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

// constantOne is the shape w = 1.
type constantOne struct{}

func (constantOne) fill(row []float64, _ [3]int) { problem.Fill(row, 1) }

// residualRounding bounds |r̂ − r| at all points of a block, where the kernels compute r̂ from values up to value.
// The longest path from a coefficient to the result is a product, three additions and two subtractions, so the
// error is at most γ₆ times the sum of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms,
// section 3.1). A seventh unit covers the rounding of that sum, the last term underflow.
func residualRounding(b *problem.Discretization, value float64) float64 {
	source := math.Abs(b.Source.Value)
	if b.Source.Array != nil {
		source = kernel.MaxAbs(b.Source.Array)
	}
	return 7*kernel.UnitRoundoff*(rowMagnitude(b)*value+source) + 16*math.SmallestNonzeroFloat64
}

// rowMagnitude returns the largest sum of magnitudes of a row's entries in the block.
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

// rowSum returns the sum of the magnitudes of the row at dense index d of a variable operator.
func rowSum(b *problem.Discretization, d int) float64 {
	sum := 0.0
	for n := range 1 + 2*b.Problem.Dimension {
		sum += math.Abs(b.Operator.Arrays[n][d])
	}
	return sum
}
