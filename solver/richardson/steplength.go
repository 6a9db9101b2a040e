package richardson

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// stepAgreement computes the common step length δ = 1/max a_ii of a problem with variable coefficients by a
// reduction over the tree: each peer knows the coefficients of its box only.
type stepAgreement struct {
	children []bool // whose diagonals have arrived
	diagonal float64
	sent     bool
}

func newStepAgreement(children int, diagonal float64) stepAgreement {
	return stepAgreement{children: make([]bool, children), diagonal: diagonal}
}

func (s *stepAgreement) receive(w *worker, q iterate.Rank, m *iterate.Message) error {
	if w.stepper != nil && !s.sent {
		return fmt.Errorf("a step length is reduced only if coefficients vary: do all peers solve the same problem?")
	}
	if !(m.A > 0) || math.IsInf(m.A, 1) {
		return fmt.Errorf("a diagonal or step length of %v; it must be positive and finite", m.A)
	}
	if m.Kind == iterate.MsgStep {
		if w.stepper != nil {
			return nil // a duplicate
		}
		if !s.sent {
			return fmt.Errorf("a step length before this peer has sent its diagonal")
		}
		w.SendChildren(m)
		return w.prepare(m.A)
	}
	s.children[w.Tree.Child(q)] = true
	s.diagonal = max(s.diagonal, m.A)
	return s.advance(w)
}

// advance sends the maximum to the parent once those of all children have arrived.
func (s *stepAgreement) advance(w *worker) error {
	if s.sent || slices.Contains(s.children, false) {
		return nil
	}
	s.sent = true
	if w.SendParent(&iterate.Message{Kind: iterate.MsgDiagonal, A: s.diagonal}) {
		return nil
	}
	m := iterate.Message{Kind: iterate.MsgStep, A: w.config.Method.StepLength(s.diagonal)}
	w.SendChildren(&m)
	return w.prepare(m.A)
}
