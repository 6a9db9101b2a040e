package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Socket is one end of a session. It implements p2psap.Socket; docs/sockets.md states the rules.
type Socket struct {
	node     *Node
	id       p2psap.SessionID
	activity atomic.Uint64

	// Guarded by the node's lock.
	waiters   waiters
	seen      uint64             // arrivals when Wait returned last
	closed    bool               // at this end
	abandoned bool               // no call will follow: the number is given back when the session ends
	info      p2psap.SessionInfo // when it was asked for last
}

var _ p2psap.Socket = (*Socket)(nil)

// userError returns the error of a call of the core as a user of the socket sees it.
func (s *Socket) userError(err error) error {
	if err != nil && (s.isClosed() || errors.Is(err, p2psap.ErrSession)) {
		return p2psap.ErrClosed
	}
	return err
}

func (s *Socket) isClosed() bool { return s.closed || s.node.closed }

func (s *Socket) ended() bool {
	state, _ := s.node.core.State(s.id)
	return state == p2psap.SessionEnded
}

// failed returns why no more can be received; nil: the session is open.
func (s *Socket) failed() error {
	switch state, err := s.node.core.State(s.id); state {
	case p2psap.SessionRemoteClosed, p2psap.SessionEnded:
		return s.userError(err)
	}
	return nil
}

// Send implements p2psap.Socket.
func (s *Socket) Send(
	ctx context.Context, tag p2psap.Tag, label p2psap.Label, data []byte,
) (p2psap.Transfer, error) {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	for {
		if s.isClosed() {
			return 0, p2psap.ErrClosed
		}
		now := n.now()
		t, waits, err := n.core.SendCoalescing(now, s.id, tag, label, data)
		if err == nil {
			if n.coalesce(now, waits); !n.holdFlush {
				n.runDue(now)
			}
			return t, nil
		}
		if !errors.Is(err, p2psap.ErrBusy) || n.core.Mode(s.id) == microproto.ModeAsynchronous {
			return 0, s.userError(err)
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return 0, err
		}
	}
}

// TrySend is Send that never blocks. It returns p2psap.ErrBusy, and sends nothing, when the receiver's grant
// is used up.
func (s *Socket) TrySend(tag p2psap.Tag, label p2psap.Label, data []byte) (p2psap.Transfer, error) {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	if s.isClosed() {
		return 0, p2psap.ErrClosed
	}
	t, err := n.core.Send(n.now(), s.id, tag, label, data)
	return t, s.userError(err)
}

// Activity returns a number that changes when a message has arrived, a transfer was accepted, or the session has changed
// or ended. It takes no lock.
func (s *Socket) Activity() uint64 { return s.activity.Load() }

// changed records activity and wakes the calls that wait for it. The node's lock is held.
func (s *Socket) changed() {
	s.activity.Add(1)
	s.waiters.signalAll()
}

// Reserve implements p2psap.Socket.
func (s *Socket) Reserve(tag p2psap.Tag, n int) []byte {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	if s.isClosed() {
		return nil
	}
	return s.node.core.Reserve(s.id, tag, n)
}

// Receive implements p2psap.Socket.
func (s *Socket) Receive(ctx context.Context, slot *p2psap.Slot) (p2psap.Arrival, error) {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	for posted := false; ; {
		a, err := s.receive(slot)
		if errors.Is(err, p2psap.ErrNothing) {
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

// ReceiveView implements p2psap.Socket.
func (s *Socket) ReceiveView(ctx context.Context, tag p2psap.Tag, v *p2psap.View) (p2psap.Arrival, error) {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	for {
		a, err := s.receiveView(tag, v)
		if errors.Is(err, p2psap.ErrNothing) {
			if err = n.block(ctx, &s.waiters, microproto.Never); err == nil {
				continue
			}
		}
		return a, err
	}
}

// Poll is Receive that never blocks. It returns false when there was nothing new.
func (s *Socket) Poll(slot *p2psap.Slot) (p2psap.Arrival, bool, error) {
	s.node.mu.Lock()
	defer s.node.unlock()
	return polled(s.receive(slot))
}

// PollView is ReceiveView that never blocks. It returns false when there was nothing new.
func (s *Socket) PollView(tag p2psap.Tag, v *p2psap.View) (p2psap.Arrival, bool, error) {
	s.node.mu.Lock()
	defer s.node.unlock()
	return polled(s.receiveView(tag, v))
}

func polled(a p2psap.Arrival, err error) (p2psap.Arrival, bool, error) {
	if errors.Is(err, p2psap.ErrNothing) {
		return p2psap.Arrival{}, false, nil
	}
	return a, err == nil && a.Fresh, err
}

func (s *Socket) receive(slot *p2psap.Slot) (p2psap.Arrival, error) {
	if s.isClosed() {
		return p2psap.Arrival{}, p2psap.ErrClosed
	}
	a, err := s.node.core.Receive(s.node.now(), s.id, slot)
	return a, s.userError(err)
}

func (s *Socket) receiveView(tag p2psap.Tag, v *p2psap.View) (p2psap.Arrival, error) {
	if s.isClosed() {
		return p2psap.Arrival{}, p2psap.ErrClosed
	}
	a, err := s.node.core.ReceiveView(s.node.now(), s.id, tag, v)
	return a, s.userError(err)
}

// Wait implements p2psap.Socket.
func (s *Socket) Wait(ctx context.Context, t p2psap.Transfer) (p2psap.Ready, error) {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	for {
		if s.isClosed() {
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
		if err := s.failed(); err != nil {
			return p2psap.Ready{}, err
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return p2psap.Ready{}, err
		}
	}
}

// Adapt implements p2psap.Socket. When ctx ends first, the request stands: the session changes when the other end
// asks too, and the next Adapt waits until it has.
func (s *Socket) Adapt(ctx context.Context, mode microproto.Mode) error {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	for number := uint64(0); ; {
		if s.isClosed() {
			return p2psap.ErrClosed
		}
		var err error
		if number == 0 {
			if number, err = n.core.Adapt(n.now(), s.id, mode); err != nil && !errors.Is(err, p2psap.ErrBusy) {
				return s.userError(err)
			}
		}
		if number != 0 {
			over, err := n.core.Adapted(s.id)
			if err != nil && errors.Is(err, p2psap.ErrSession) || over >= number {
				return s.userError(err)
			}
			if err := s.failed(); err != nil {
				return err
			}
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return err
		}
	}
}

// Info implements p2psap.Socket. After the end it returns what was last known.
func (s *Socket) Info() p2psap.SessionInfo {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.updateInfo()
	return s.info
}

func (s *Socket) updateInfo() {
	if i, err := s.node.core.Info(s.id); err == nil {
		s.info = i
	}
}

// Sessions describes the sessions that are open, and those that have ended and are not closed at this end, by peer
// and name.
func (n *Node) Sessions() []p2psap.SessionInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []p2psap.SessionInfo{}
	for _, s := range n.sockets {
		s.updateInfo()
		if s.info.State >= p2psap.SessionOpen && !s.closed && !strings.HasPrefix(s.info.Name, p2psap.ReservedName) {
			all = append(all, s.info)
		}
	}
	slices.SortFunc(all, func(a, b p2psap.SessionInfo) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Close implements p2psap.Socket. Transfers under way are given Config.Linger to be accepted. Close returns when the
// peer knows, or soon after that time. Calls that block in other goroutines return p2psap.ErrClosed at once.
func (s *Socket) Close() error {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	if s.isClosed() {
		return nil
	}
	s.closed = true
	n.core.Close(n.now(), s.id)
	s.waiters.signalAll()
	n.linger(s.ended)
	n.release(s)
	return nil
}

// Shutdown is Close that waits until ctx ends instead of Config.Linger. It returns nil once the peer has accepted all
// transfers. When ctx ends first, Shutdown drops the transfers that are not accepted and returns the context's error;
// if ctx has ended before the call, it does not wait. If the session ends first, Shutdown returns the session's error.
func (s *Socket) Shutdown(ctx context.Context) error {
	n := s.node
	n.mu.Lock()
	defer n.unlock()
	if s.isClosed() {
		return nil
	}
	s.closed = true
	s.updateInfo()
	sent := p2psap.Transfer(s.info.MessagesSent)
	n.core.CloseWithin(n.now(), s.id, NoTimeout/2)
	s.waiters.signalAll()
	err := ctx.Err()
	for !s.ended() && !n.closed && err == nil {
		err = n.block(ctx, &n.progress, microproto.Never)
	}
	if n.core.Accepted(s.id) >= sent {
		err = nil
	} else if err == nil {
		_, err = n.core.State(s.id)
	}
	if !s.ended() {
		n.core.CloseWithin(n.now(), s.id, 0)
	}
	n.release(s)
	return err
}

// accepted returns the last transfer that was accepted.
func (s *Socket) accepted() p2psap.Transfer {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.node.core.Accepted(s.id)
}

// release gives the session's number back, now or when it has ended.
func (n *Node) release(s *Socket) {
	s.closed = true
	s.updateInfo()
	if !s.ended() {
		n.core.Close(n.now(), s.id)
	}
	if !s.ended() {
		s.abandoned = true
		return
	}
	n.core.Close(n.now(), s.id)
	delete(n.sockets, s.id)
}
