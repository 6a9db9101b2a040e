package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// StepBounds bounds the algebraic error of a nonstationary run: the distance at the end of a time step from
// implicit Euler with every step solved exactly, from the same u(0). A step from v to u solves M·u = f + v/Δt
// with M = A + I/Δt. A difference at its start is multiplied by at most ‖M⁻¹‖∞/Δt (obstacles included: u*
// depends on the data as maxima and minima of solutions do, see Certificate), and the step's residual adds
// ‖M⁻¹‖∞ ‖r‖∞.
type StepBounds struct {
	problem    *problem.Problem
	done       int
	bound      float64
	by, why    string
	comparison *cubicTransfer // of the last step
}

// NewStepBounds starts at u(0), which is exact.
func NewStepBounds(p *problem.Problem) *StepBounds { return &StepBounds{problem: p} }

// Add includes step m, which must be the successor of the last one. The step began with before and ended with
// u, both [z][y][x] on the whole grid. Add evaluates the step, which costs several sweeps. Its errors are those
// of EvaluateStep.
func (b *StepBounds) Add(m int, before, u []float64, e problem.Executor) error {
	if b.why != "" {
		return nil
	}
	if m != b.done+1 {
		return b.problem.Errorf("step %d was added after step %d; every step adds to the error", m, b.done)
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
	// The source of the exact run is rounded as well, by no more than the terms of the residual.
	grown := b.bound * (c.Inverse / b.problem.Evolution.Step())
	b.bound = (judged.ErrorBound + grown + c.Inverse*c.Rounding) * (1 + 8*kernel.UnitRoundoff)
	b.by = c.By
	if !kernel.Finite(b.bound) {
		b.why = "the sum of the errors of the time steps overflows"
	}
	return nil
}

// At returns the bound at the end of step m and the way in which w of the last step was found. If there is no
// bound, it returns NaN and why states the reason.
func (b *StepBounds) At(m int) (bound float64, by, why string) {
	switch {
	case b.why != "":
		return math.NaN(), "", b.why
	case m != b.done:
		return math.NaN(), "", "not every time step was evaluated"
	}
	return b.bound, b.by, ""
}
