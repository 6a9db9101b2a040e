package driver

import (
	"context"
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Adapt implements p2psap.Socket. When ctx ends first, the wish stands: the session
// changes when the other end asks too, and the next Adapt waits until it has.
func (s *Socket) Adapt(ctx context.Context, mode microproto.Mode) error {
	n := s.node
	n.mu.Lock()
	defer n.leave()
	for number := uint64(0); ; {
		if s.gone || n.closed {
			return p2psap.ErrClosed
		}
		var err error
		if number == 0 {
			if number, err = n.core.Adapt(n.now(), s.id, mode); err != nil && !errors.Is(err, microproto.ErrBusy) {
				return s.failure(err)
			}
		}
		if number != 0 {
			over, err := n.core.Adapted(s.id)
			if err != nil && errors.Is(err, p2psap.ErrSession) || over >= number {
				return s.outcome(err)
			}
			if state, why := n.core.State(s.id); state == p2psap.SessionRemoteClosed || state == p2psap.SessionEnded {
				return s.failure(why)
			}
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			return err
		}
	}
}

func (s *Socket) outcome(err error) error {
	if err == nil {
		return nil
	}
	return s.failure(err)
}

// adapted passes the news of a change on.
func (n *Node) adapted(o *p2psap.Output) {
	s := n.sockets[o.Session]
	if s == nil {
		return
	}
	s.remember()
	event := n.log.Info()
	if o.Err != nil {
		event = n.log.Warn().Err(o.Err)
	}
	event.Str("node", n.config.Name).Str("session", s.last.Name).Str("peer", o.Peer).Stringer("mode", s.last.Conditions.Mode).
		Strs("composition", s.last.Composition).Uint8("epoch", s.last.Epoch).Dur("pause", s.last.LastPause).Msg("session adapted")
	s.waiters.all()
}
