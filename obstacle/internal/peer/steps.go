package peer

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// ends holds the ends of the newest time steps in the box of a peer. The member decides which, and when they are sent.
type ends struct {
	mu    sync.Mutex
	held  []end
	boxes bool // send the box with each block, since planes move
}

// end is the end of a time step in the box of a peer, or the values with which it began an epoch.
type end struct {
	iterate.StepResult
	box   problem.Box
	u     []float64 // nil: u(0) of the problem
	given bool      // u is memory of the assignment
}

// begin begins an epoch, for which a peer has the given box.
func (s *ends) begin(w *work, boxes bool, box problem.Box) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := end{box: box, u: w.config.Initial, given: true}
	first.Step, first.Residual = w.config.After, math.NaN()
	s.held, s.boxes = []end{first}, boxes
}

// hold holds the end of a step, and may drop the oldest one.
func (s *ends) hold(r iterate.StepResult, box problem.Box, solution func([]float64), drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old end
	if drop {
		old, s.held = s.held[0], s.held[1:]
	}
	if old.given {
		old.u = nil
	}
	u := slices.Grow(old.u[:0], box.Points())[:box.Points()]
	solution(u)
	s.held = append(s.held, end{StepResult: r, box: box, u: u})
}

// send sends the end of a step.
func (s *ends) send(conn *rendezvous.Conn, step int) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.held, func(e end) bool { return e.Step == step })
	e, boxes := s.held[i], s.boxes
	s.mu.Unlock()
	return sendEnd(conn, e, boxes)
}

// stepping is a time step that has ended. Its relaxation waits until the end can be held, or the step was abandoned.
type stepping struct {
	mu        sync.Mutex
	abandoned bool
	allowed   chan member.Hold
}

// allow lets the relaxation go on. It returns false if the step was abandoned.
func (s *stepping) allow(h member.Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.abandoned {
		s.allowed <- h
	}
	return !s.abandoned
}

// abandon abandons the step, unless the relaxation may go on.
func (s *stepping) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned = len(s.allowed) == 0; s.abandoned {
		close(s.allowed)
	}
}

// stepper returns runner.Config.Step, nil for a stationary problem.
func (e *epoch) stepper() func(iterate.StepResult, problem.Box, func([]float64)) error {
	if e.work.config.Problem.Steps() == 0 {
		return nil
	}
	return func(r iterate.StepResult, box problem.Box, solution func([]float64)) error {
		s := &stepping{allowed: make(chan member.Hold, 1)}
		defer context.AfterFunc(e.ctx, s.abandon)()
		e.p.emit(input{Event: member.Event{Step: r.Step}, step: s})
		h, is := <-s.allowed
		if !is {
			return runner.ErrAbandoned // the step begins again in the next epoch
		}
		e.p.ends.hold(r, box, solution, h.Drop)
		e.p.emit(input{Event: member.Event{Ended: &member.Ended{Job: member.ToHold, Number: h.Number}}})
		return nil
	}
}

func sendEnd(conn *rendezvous.Conn, e end, box bool) error {
	if err := sendBlock(conn, rendezvous.StreamStep, box, e.box, e.u); err != nil {
		return err
	}
	return conn.Send(rendezvous.Step{Step: e.Step, Sweeps: uint64(e.Sweeps), Residual: nullable.Number(e.Residual)})
}

// sendBlock sends a block in pieces, after its box if sendBox is set.
func sendBlock(conn *rendezvous.Conn, s rendezvous.Stream, sendBox bool, box problem.Box, u []float64) error {
	if sendBox {
		if err := conn.Send(rendezvous.Block{Stream: s, Box: box}); err != nil {
			return err
		}
	}
	buf := make([]byte, min(rendezvous.MaxChunk, 8*len(u)))
	for at := 0; at < len(u); {
		piece := buf[:min(len(buf), 8*(len(u)-at))]
		blocks.Encode(piece, u[at:at+len(piece)/8])
		if err := conn.Send(rendezvous.Chunk{Stream: s, Offset: 8 * int64(at), Data: piece}); err != nil {
			return err
		}
		at += len(piece) / 8
	}
	return nil
}
