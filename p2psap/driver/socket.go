package driver

import (
	"context"
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Socket is one end of a session; it implements p2psap.Socket, whose rules are in
// docs/sockets.md.
type Socket struct {
	node *Node
	id   p2psap.SessionID

	// Guarded by the node's lock.
	waiters waiters
	seen    uint64 // arrivals when Wait last returned
	gone    bool   // closed at this end
	orphan  bool   // nobody will ask again: the number is given back at the end
	last    p2psap.SessionInfo
}

var _ p2psap.Socket = (*Socket)(nil)

// failure translates a core error for a caller.
func (s *Socket) failure(err error) error {
	if s.gone || s.node.closed || errors.Is(err, p2psap.ErrSession) {
		return p2psap.ErrClosed
	}
	return err
}

// Send implements p2psap.Socket.
func (s *Socket) Send(ctx context.Context, tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	for {
		if s.gone || n.closed {
			return 0, p2psap.ErrClosed
		}
		now := n.now()
		t, waits, err := n.core.SendCoalescing(now, s.id, tag, label, data)
		if err == nil {
			if n.gather(now, waits); !n.gathering {
				n.runDue(now)
			}
			return t, nil
		}
		if !errors.Is(err, microproto.ErrBusy) || n.core.Mode(s.id) == microproto.ModeAsynchronous {
			return 0, s.failure(err)
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return 0, err
		}
	}
}

// TrySend is Send that never blocks: microproto.ErrBusy when the receiver's grant
// is used up, and then nothing was sent.
func (s *Socket) TrySend(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	if s.gone || n.closed {
		return 0, p2psap.ErrClosed
	}
	t, err := n.core.Send(n.now(), s.id, tag, label, data)
	if err != nil {
		return 0, s.failure(err)
	}
	return t, nil
}

// Receive implements p2psap.Socket.
func (s *Socket) Receive(ctx context.Context, slot *p2psap.Slot) (p2psap.Arrival, error) {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	for posted := false; ; {
		a, err := s.take(slot)
		if errors.Is(err, microproto.ErrNothing) {
			n.core.Post(s.id, slot)
			posted = true
			if err = n.block(ctx, &s.waiters, microproto.Never); err == nil {
				continue
			}
		}
		if posted {
			n.core.Withdraw(s.id)
		}
		return a, err
	}
}

// Post offers the slot's memory for the next message of its tag, which is then copied once less
// on its way. The session may write there until Poll or Receive returns that message.
func (s *Socket) Post(slot *p2psap.Slot) {
	s.node.mu.Lock()
	s.node.core.Post(s.id, slot)
	s.node.mu.Unlock()
}

// Poll is Receive that never blocks: false when nothing new was there.
func (s *Socket) Poll(slot *p2psap.Slot) (p2psap.Arrival, bool, error) {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	a, err := s.take(slot)
	if errors.Is(err, microproto.ErrNothing) {
		return p2psap.Arrival{}, false, nil
	}
	return a, err == nil && a.Fresh, err
}

func (s *Socket) take(slot *p2psap.Slot) (p2psap.Arrival, error) {
	n := s.node
	if s.gone || n.closed {
		return p2psap.Arrival{}, p2psap.ErrClosed
	}
	a, err := n.core.Receive(n.now(), s.id, slot)
	if err != nil && !errors.Is(err, microproto.ErrNothing) {
		err = s.failure(err)
	}
	return a, err
}

// Wait implements p2psap.Socket.
func (s *Socket) Wait(ctx context.Context, t p2psap.Transfer) (p2psap.Ready, error) {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	for {
		if s.gone || n.closed {
			return p2psap.Ready{}, p2psap.ErrClosed
		}
		arrivals := n.core.Arrivals(s.id)
		r := p2psap.Ready{
			Accepted: t > 0 && n.core.Accepted(s.id) >= t,
			Arrived:  arrivals > s.seen || (t == 0 && n.core.Unread(s.id) > 0),
		}
		if r.Accepted || r.Arrived {
			s.seen = max(s.seen, arrivals)
			return r, nil
		}
		switch state, err := n.core.State(s.id); state {
		case p2psap.SessionRemoteClosed, p2psap.SessionEnded:
			return p2psap.Ready{}, s.failure(err)
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return p2psap.Ready{}, err
		}
	}
}

// Info implements p2psap.Socket. After the end it tells what was last known.
func (s *Socket) Info() p2psap.SessionInfo {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.remember()
	return s.last
}

func (s *Socket) remember() {
	if i, err := s.node.core.Info(s.id); err == nil {
		s.last = i
	}
}

// Close implements p2psap.Socket. Transfers under way are given Config.Linger to
// be accepted; it returns when the peer knows, or soon after that time. Calls that
// block in other goroutines return p2psap.ErrClosed at once.
func (s *Socket) Close() error {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	if s.gone || n.closed {
		return nil
	}
	s.gone = true
	n.core.Close(n.now(), s.id)
	s.waiters.all()
	n.lingerOn(func() bool {
		state, _ := n.core.State(s.id)
		return state == p2psap.SessionEnded
	})
	n.release(s)
	return nil
}

// release gives the session's number back, now or when it has ended.
func (n *Node) release(s *Socket) {
	s.gone = true
	s.remember()
	if state, _ := n.core.State(s.id); state != p2psap.SessionEnded {
		n.core.Close(n.now(), s.id)
	}
	if state, _ := n.core.State(s.id); state != p2psap.SessionEnded {
		s.orphan = true
		return
	}
	n.core.Close(n.now(), s.id)
	delete(n.sockets, s.id)
}
