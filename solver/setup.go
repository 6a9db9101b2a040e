package solver

import (
	"fmt"
	"math"
)

// setup agrees on the step δ = 1/max a_ii where the coefficients vary: each peer
// knows those of its own box only. A maximum does not depend on the order.
type setup struct {
	children []bool
	heard    int
	diagonal float64
	told     bool
}

func newSetup(children int, diagonal float64) setup {
	return setup{children: make([]bool, children), diagonal: diagonal}
}

func (s *setup) agree(w *Worker, q Rank, m *message) error {
	if w.stepper != nil && !s.told {
		return fmt.Errorf("a step is agreed on only where coefficients vary: do all peers solve the same problem?")
	}
	if !(m.a > 0) || math.IsInf(m.a, 1) {
		return fmt.Errorf("a diagonal or step of %v", m.a)
	}
	if m.kind == msgStep {
		if w.stepper != nil {
			return nil // a duplicate
		}
		if !s.told {
			return fmt.Errorf("a step before this peer's share was told")
		}
		w.tellChildren(m)
		return w.prepare(m.a)
	}
	if i := w.tree.child(q); !s.children[i] {
		s.children[i] = true
		s.heard++
		s.diagonal = max(s.diagonal, m.a)
	}
	return s.advance(w)
}

// advance passes the maximum up once all children have told theirs.
func (s *setup) advance(w *Worker) error {
	if s.told || s.heard < len(s.children) {
		return nil
	}
	s.told = true
	if w.tellParent(&message{kind: msgDiagonal, a: s.diagonal}) {
		return nil
	}
	m := message{kind: msgStep, a: w.config.Method.step(s.diagonal)}
	w.tellChildren(&m)
	return w.prepare(m.a)
}
