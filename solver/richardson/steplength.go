package richardson

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// setup agrees on the step δ = 1/max a_ii where the coefficients vary: each peer
// knows those of its own box only. A maximum does not depend on the order.
type stepAgreement struct {
	children []bool
	received int
	diagonal float64
	sent     bool
}

func newStepAgreement(children int, diagonal float64) stepAgreement {
	return stepAgreement{children: make([]bool, children), diagonal: diagonal}
}

func (s *stepAgreement) receive(w *worker, q iterate.Rank, m *iterate.Message) error {
	if w.stepper != nil && !s.sent {
		return fmt.Errorf("a step is agreed on only where coefficients vary: do all peers solve the same problem?")
	}
	if !(m.A > 0) || math.IsInf(m.A, 1) {
		return fmt.Errorf("a diagonal or step of %v", m.A)
	}
	if m.Kind == iterate.MsgStep {
		if w.stepper != nil {
			return nil // a duplicate
		}
		if !s.sent {
			return fmt.Errorf("a step before this peer's share was told")
		}
		w.SendChildren(m)
		return w.prepare(m.A)
	}
	if i := w.Tree.Child(q); !s.children[i] {
		s.children[i] = true
		s.received++
		s.diagonal = max(s.diagonal, m.A)
	}
	return s.advance(w)
}

// advance passes the maximum up once all children have told theirs.
func (s *stepAgreement) advance(w *worker) error {
	if s.sent || s.received < len(s.children) {
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
