package runner

import (
	"context"
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Socket is p2psap.Socket with calls that never block, so that one goroutine serves all sessions.
type Socket interface {
	p2psap.Socket
	// Poll is Receive that never blocks. It returns false if nothing has arrived.
	Poll(slot *p2psap.Slot) (p2psap.Arrival, bool, error)
	// PollView is ReceiveView that never blocks. It returns false if nothing has arrived.
	PollView(tag p2psap.Tag, v *p2psap.View) (p2psap.Arrival, bool, error)
	// TrySend is Send that never blocks. It returns p2psap.ErrBusy, and sends nothing, when
	// the receiver's grant is used up.
	TrySend(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error)
	// Activity returns a number that changes when something has arrived or the session has ended. Without a change no
	// message is new.
	Activity() uint64
}

// Node opens sessions and waits for all of them. See driver.Node for the rules.
type Node interface {
	opener[Socket]
}

// opener is a node whose Open returns a type of socket.
type opener[S Socket] interface {
	Open(ctx context.Context, peer string, o p2psap.OpenOptions) (S, error)
	WaitAny(ctx context.Context, timeout time.Duration) error
	// Pump handles arrivals on the caller's goroutine. Relaxing threads keep every core busy, and a
	// goroutine that only receives may wait a whole time slice for one. It returns an error once the node is closed.
	Pump() error
	// Disconnect ends the association with a peer, and forgets that the peer is lost.
	Disconnect(peer string) error
}

type wrapped[S Socket] struct{ opener[S] }

func (w wrapped[S]) Open(ctx context.Context, peer string, o p2psap.OpenOptions) (Socket, error) {
	s, err := w.opener.Open(ctx, peer, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Over returns a Node for one whose Open returns a concrete type, such as *driver.Node.
func Over[S Socket](n opener[S]) Node { return wrapped[S]{n} }

// session is an exchange.Session over a Socket.
type session struct {
	Socket
	r       *Runner
	with    *exchange.Neighbour
	halo    bool
	seen    uint64     // Activity when the exchange was told of it last
	adapted chan error // the outcome of Adapt, once it is known
}

var _ exchange.Session = (*session)(nil)

// Receive implements exchange.Session.
func (s *session) Receive(slot *p2psap.Slot, _ bool) (p2psap.Arrival, error) {
	a, fresh, err := s.Poll(slot)
	a.Fresh = fresh
	return a, err
}

// View implements exchange.Session.
func (s *session) View(tag p2psap.Tag, v *p2psap.View, _ bool) (p2psap.Arrival, error) {
	a, fresh, err := s.PollView(tag, v)
	a.Fresh = fresh
	return a, err
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
