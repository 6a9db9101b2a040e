package runner

import (
	"context"
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/exchange"
)

// Socket is what a runner needs of a session beyond p2psap.Socket: calls that never block, so
// that one goroutine can serve all sessions.
type Socket interface {
	p2psap.Socket
	// Poll is Receive that never blocks; false: there was nothing new.
	Poll(slot *p2psap.Slot) (p2psap.Arrival, bool, error)
	// TrySend is Send that never blocks. It returns microproto.ErrBusy, and sends nothing, when
	// the receiver's grant is used up.
	TrySend(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error)
}

// poster is a Socket that takes memory for the next message of a tag; optional. See
// driver.Socket.Post.
type poster interface{ Post(slot *p2psap.Slot) }

// Node opens sessions and waits for all of them. See driver.Node for the rules.
type Node interface {
	Open(ctx context.Context, peer string, o p2psap.OpenOptions) (Socket, error)
	WaitAny(ctx context.Context, timeout time.Duration) error
}

// pumper is a Node that handles arrivals on the caller's goroutine; optional. Relaxing threads
// keep every core busy, and a goroutine that only receives may wait a whole time slice for one.
type pumper interface{ Pump() }

// opener is a node whose Open returns a socket type of its own.
type opener[S Socket] interface {
	Open(ctx context.Context, peer string, o p2psap.OpenOptions) (S, error)
	WaitAny(ctx context.Context, timeout time.Duration) error
}

type wrapped[S Socket] struct{ opener[S] }

func (w wrapped[S]) Open(ctx context.Context, peer string, o p2psap.OpenOptions) (Socket, error) {
	s, err := w.opener.Open(ctx, peer, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Pump calls Pump of the node, if it has one.
func (w wrapped[S]) Pump() {
	if p, ok := w.opener.(pumper); ok {
		p.Pump()
	}
}

// Over returns a Node for one whose Open returns a concrete type, such as *driver.Node.
func Over[S Socket](n interface {
	Open(ctx context.Context, peer string, o p2psap.OpenOptions) (S, error)
	WaitAny(ctx context.Context, timeout time.Duration) error
}) Node {
	return wrapped[S]{n}
}

// session is an exchange.Session over a Socket.
type session struct {
	Socket
	r       *Runner
	poster  poster     // nil: the socket is none
	adapted chan error // the outcome of Adapt, once it is known
}

var _ exchange.Session = (*session)(nil)

func (r *Runner) session(s Socket) *session {
	p, _ := s.(poster)
	return &session{Socket: s, r: r, poster: p}
}

// Receive implements exchange.Session.
func (s *session) Receive(slot *p2psap.Slot, _ bool) (p2psap.Arrival, error) {
	a, fresh, err := s.Poll(slot)
	a.Fresh = fresh
	return a, err
}

// Unread implements exchange.Session. Every poll looks at all sessions.
func (s *session) Unread() bool { return false }

// Post implements exchange.Session.
func (s *session) Post(slot *p2psap.Slot) {
	if s.poster != nil {
		s.poster.Post(slot)
	}
}

// Send implements exchange.Session.
func (s *session) Send(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	return s.TrySend(tag, label, data)
}

// Accepted implements exchange.Session. Wait does not block with a context that has ended.
func (s *session) Accepted(t p2psap.Transfer) (bool, error) {
	ready, err := s.Wait(s.r.ended, t)
	if errors.Is(err, context.Canceled) {
		return false, nil
	}
	return ready.Accepted, err
}

// Adapt implements exchange.Session.
func (s *session) Adapt(mode microproto.Mode) error {
	s.adapted = make(chan error, 1)
	go func() {
		s.adapted <- s.Socket.Adapt(s.r.running, mode)
		select {
		case s.r.adapted <- struct{}{}:
		default:
		}
	}()
	return nil
}

// Adapted implements exchange.Session.
func (s *session) Adapted() (bool, error) {
	select {
	case err := <-s.adapted:
		s.adapted <- err // for the next call
		return true, err
	default:
		return false, nil
	}
}
