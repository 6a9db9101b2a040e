package peer

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// ends holds the ends of the newest time steps in the box of a peer, and sends them to the process that leads the run
// while the peer continues to relax. A step ends when the end of the one before has been sent.
//
// A step ends at a peer only after all peers have ended the one before. If the leader is lost, each peer holds the ends
// that it has until it knows from which step the next leader needs them. The numbers of complete steps of two peers
// then differ by at most one, so two ends each contain a step that all have.
type ends struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	held    []end         // of successive steps; the first epoch begins with none
	conn    *rendezvous.Conn
	next    int  // step whose end is sent next on conn
	sending bool // an end is being sent
	boxes   bool // send the box with each block, since planes move
	lasting bool // another process leads the run if its leader is lost, so two ends are held
	frozen  bool // the leader was lost, and the next one has not said which ends it needs
}

// end is the end of a time step in the box of a peer, or the values with which it began an epoch.
type end struct {
	iterate.StepResult
	box   problem.Box
	u     []float64 // nil: u(0) of the problem
	given bool      // u is memory of the assignment
}

func newEnds() *ends { return &ends{changed: make(chan struct{})} }

// change calls f, which changes the state.
func (s *ends) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.signal()
}

// signal is called with the lock held.
func (s *ends) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await calls f, which changes the state, as soon as is reports true. It returns the error of ctx if that ends before.
func (s *ends) await(ctx context.Context, is func() bool, f func()) error {
	for {
		s.mu.Lock()
		ok, changed := is(), s.changed
		if ok {
			f()
			s.signal()
		}
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newest returns the number of the newest step that is held. The lock is held.
func (s *ends) newest() int { return s.held[len(s.held)-1].Step }

// begin begins an epoch, for which a peer has the given box. Later ends are sent on the connection that has brought the
// work.
func (s *ends) begin(ctx context.Context, w *work, run *rendezvous.Spec, box problem.Box) error {
	first := end{box: box, u: w.config.Initial, given: true}
	first.Step, first.Residual = w.config.After, math.NaN()
	return s.await(ctx, func() bool { return !s.frozen && !s.sending }, func() {
		s.held = []end{first}
		s.conn, s.next = w.conn, first.Step+1
		s.boxes, s.lasting = run.Balance, run.Lasting()
	})
}

// step holds the end of a step, and drops the oldest one. ctx is that of the epoch.
func (s *ends) step(ctx context.Context, r iterate.StepResult, box problem.Box, solution func([]float64)) error {
	err := s.await(ctx, func() bool { return !s.frozen && s.next > s.newest() }, func() {
		var old end
		if len(s.held) == launch.MaxHeld || !s.lasting {
			old, s.held = s.held[0], s.held[1:]
		}
		if old.given {
			old.u = nil
		}
		u := slices.Grow(old.u[:0], box.Points())[:box.Points()]
		solution(u)
		s.held = append(s.held, end{StepResult: r, box: box, u: u})
	})
	if err != nil {
		return runner.ErrAbandoned // the step begins again in the next epoch
	}
	return nil
}

// suspend returns when nothing is being sent. Nothing more is sent before an epoch begins or the ends are asked for.
func (s *ends) suspend() {
	s.change(func() { s.conn = nil })
	_ = s.await(context.Background(), func() bool { return !s.sending }, func() {})
}

// freeze keeps the ends that are held until resend is called, and returns the numbers of their steps.
func (s *ends) freeze() (steps []int) {
	s.change(func() {
		s.frozen = true
		for _, e := range s.held {
			steps = append(steps, e.Step)
		}
	})
	return steps
}

// resend sends the ends from that of a step on to the process that leads the run now; from −1: none.
func (s *ends) resend(conn *rendezvous.Conn, from int) {
	s.change(func() {
		s.frozen = false
		if s.conn = nil; from >= 0 && len(s.held) > 0 {
			s.conn, s.next = conn, max(from, s.held[0].Step)
		}
	})
}

// sent reports whether all ends have been sent on a connection, and returns a channel that is closed at the next change.
func (s *ends) sent(conn *rendezvous.Conn) (all bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) == 0 || s.conn == conn && s.next > s.newest(), s.changed
}

// due returns the end that is sent next. The lock is held.
func (s *ends) due() (e end, ok bool) {
	for _, e := range s.held {
		if s.conn != nil && e.Step == s.next {
			return e, true
		}
	}
	return e, false
}

// send sends ends until ctx ends.
func (s *ends) send(ctx context.Context) {
	for {
		var e end
		var ok, boxes bool
		var conn *rendezvous.Conn
		if s.await(ctx, func() bool { e, ok = s.due(); return ok }, func() {
			s.sending, conn, boxes = true, s.conn, s.boxes
		}) != nil {
			return
		}
		err := sendEnd(conn, e, boxes)
		s.change(func() {
			s.sending = false
			switch {
			case s.conn != conn || s.next != e.Step:
			case err != nil:
				s.conn = nil // another leader asks for what it needs
			default:
				s.next++
			}
		})
	}
}

func sendEnd(conn *rendezvous.Conn, e end, box bool) error {
	if err := sendBlock(conn, rendezvous.StreamStep, box, e.box, e.u); err != nil {
		return err
	}
	return conn.Send(rendezvous.Step{Step: e.Step, Sweeps: uint64(e.Sweeps), Residual: nullable.Number(e.Residual)})
}

// beginSteps begins an epoch of a problem with time steps. ctx is that of the epoch.
func (e *epoch) beginSteps() error {
	if e.work.config.Problem.Steps() == 0 {
		return nil
	}
	return e.p.ends.begin(e.ctx, e.work, &e.p.welcome.Spec, e.p.box())
}

// stepper returns runner.Config.Step, nil for a stationary problem.
func (e *epoch) stepper() func(iterate.StepResult, problem.Box, func([]float64)) error {
	if e.work.config.Problem.Steps() == 0 {
		return nil
	}
	return func(s iterate.StepResult, box problem.Box, solution func([]float64)) error {
		return e.p.ends.step(e.ctx, s, box, solution)
	}
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
