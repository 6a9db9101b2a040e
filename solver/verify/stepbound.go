package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// StepBounds bounds the algebraic error of a nonstationary run: how far the end of a time
// step is at most from what implicit Euler gives with every step solved exactly, from the
// same u(0). A step from v to u solves M·u = f + v/Δt with M = A + I/Δt, so what the two
// runs differ by at its start comes out ‖M⁻¹‖∞/Δt times as large at most (obstacles
// included: u* follows the data as max and min of solutions do, see Certificate), and the
// step's own residual adds ‖M⁻¹‖∞ ‖r‖∞.
type StepBounds struct {
	problem    *problem.Problem
	done       int
	bound      float64
	by, why    string
	comparison *cubicTransfer // of the last step
}

// NewStepBounds begins at u(0), which is exact.
func NewStepBounds(p *problem.Problem) *StepBounds { return &StepBounds{problem: p} }

// Add takes step m, the one after the last added: it began with before and ended with u,
// both [z][y][x] on the whole grid. It judges the step, which costs several sweeps; the
// error is of EvaluateStep.
func (b *StepBounds) Add(m int, before, u []float64, e problem.Executor) error {
	if b.why != "" {
		return nil
	}
	if m != b.done+1 {
		return b.problem.Refuse("step %d after step %d, where every one adds to the error", m, b.done)
	}
	judged, profile, err := evaluateStep(b.problem, m, before, u, b.comparison, e)
	if err != nil {
		return err
	}
	b.comparison = profile
	b.done = m
	c := &judged.Certificate
	if b.why = c.Why; b.why != "" {
		return nil
	}
	// The exact run's source is rounded, too: by no more than the residual's terms are.
	grown := b.bound * (c.Inverse / b.problem.Evolution.Step())
	b.bound = (judged.ErrorBound + grown + c.Inverse*c.Rounding) * (1 + 8*kernel.UnitRoundoff)
	b.by = c.By
	if !kernel.Finite(b.bound) {
		b.why = "the errors of the time steps add up to more than a number holds"
	}
	return nil
}

// At is the bound at the end of step m, by which w ≥ 0 with A·w > 0 of the last step; why
// says why there is none, and then the bound is NaN.
func (b *StepBounds) At(m int) (bound float64, by, why string) {
	switch {
	case b.why != "":
		return math.NaN(), "", b.why
	case m != b.done:
		return math.NaN(), "", "not every time step was judged"
	}
	return b.bound, b.by, ""
}
