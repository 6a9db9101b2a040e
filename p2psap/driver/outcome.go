package driver

import (
	"context"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// carryOut does what the core orders, and passes its news on. The lock is held.
func (n *Node) carryOut(o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutControl:
		n.post(o)
	case p2psap.OutDial:
		if !n.closed {
			n.running.Add(1)
			go n.dial(o.Peer, o.Addr)
		}
	case p2psap.OutDisconnect:
		if c := n.conns[o.Conn]; c != nil {
			n.log.Debug().Str("node", n.config.Name).Uint64("connection", uint64(o.Conn)).Err(o.Err).Msg("control connection closed")
			n.hangup(c)
		}
	case p2psap.OutActivity:
		if s := n.sockets[o.Session]; s != nil {
			s.waiters.all()
		}
		n.arrived = true
		n.waiters.all()
	case p2psap.OutOpened:
		n.opened(o)
	case p2psap.OutEnded:
		n.ended(o)
	case p2psap.OutAdapted:
		n.adapted(o)
	case p2psap.OutRail:
		n.railed(o)
	case p2psap.OutPeerUp:
		f := n.core.Finding(o.Peer)
		n.log.Info().Str("node", n.config.Name).Str("peer", o.Peer).Stringer("locality", f.Locality).Str("why", f.Reason).Dur("rtt", f.RTT).Msg("peer connected")
		n.news.all()
	case p2psap.OutPeerRefused:
		n.log.Warn().Str("node", n.config.Name).Str("peer", o.Peer).Err(o.Err).Msg("peer refused")
		n.news.all()
	case p2psap.OutPeerClosed:
		n.log.Info().Str("node", n.config.Name).Str("peer", o.Peer).Msg("peer said goodbye")
		n.news.all()
	case p2psap.OutPeerLost:
		n.log.Error().Str("node", n.config.Name).Str("peer", o.Peer).Err(o.Err).Msg("peer lost")
		if n.lost == nil {
			n.lost = o.Err
		}
		n.waiters.all()
		n.news.all()
	}
}

func (n *Node) opened(o *p2psap.Output) {
	s := n.sockets[o.Session]
	if s == nil {
		return
	}
	s.remember()
	n.log.Info().Str("node", n.config.Name).Str("session", s.last.Name).Str("peer", o.Peer).Stringer("mode", s.last.Conditions.Mode).
		Stringer("locality", s.last.Conditions.Locality).Str("why", s.last.LocalityReason).Dur("rtt", s.last.RTT).
		Strs("composition", s.last.Composition).Strs("protection", s.last.Protection).Uint8("epoch", s.last.Epoch).Int("segment.bytes", s.last.SegmentSize).Msg("session open")
	s.waiters.all()
}

func (n *Node) ended(o *p2psap.Output) {
	s := n.sockets[o.Session]
	if s == nil {
		return
	}
	s.remember()
	n.log.Debug().Str("node", n.config.Name).Str("session", s.last.Name).Str("peer", o.Peer).AnErr("why", o.Err).Msg("session ended")
	s.waiters.all()
	n.news.all()
	n.arrived = true
	n.waiters.all()
	if s.orphan {
		n.core.Close(n.now(), s.id)
		delete(n.sockets, s.id)
	}
}

// lingerOn gives the lock up until the condition holds, for as long as the core
// lets transfers linger and a little more for the last words. The lock is held.
func (n *Node) lingerOn(over func() bool) {
	bound := n.config.Linger
	if bound == 0 {
		bound = 2 * time.Second
	}
	timer := time.AfterFunc(bound+time.Second/2, func() {
		n.mu.Lock()
		n.news.all()
		n.mu.Unlock()
	})
	defer timer.Stop()
	until := n.now().Add(bound + time.Second/2)
	for !over() && !n.closed && !n.aborted && n.now() < until {
		if n.block(context.Background(), &n.news, microproto.Never) != nil {
			return
		}
	}
}

// Abort is Close without Linger: what the peers have not accepted yet is dropped. It also
// ends the lingering of a Close, or of a Socket's Close, that is under way.
func (n *Node) Abort() error {
	n.mu.Lock()
	n.aborted = true
	n.news.all()
	n.mu.Unlock()
	return n.Close()
}

// Close closes every session, says goodbye, closes the link and returns when no
// goroutine of the node is left: in bounded time, whatever the peers do. Calls
// that block return p2psap.ErrClosed.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		<-n.done
		return nil
	}
	n.closing = true
	for _, s := range n.sockets {
		s.gone = true
		n.core.Close(n.now(), s.id)
		s.waiters.all()
	}
	n.lingerOn(func() bool {
		for _, s := range n.sockets {
			if state, _ := n.core.State(s.id); state != p2psap.SessionEnded {
				return false
			}
		}
		return true
	})
	n.core.Goodbye(n.now())
	n.settle()
	n.closed = true
	n.handBack()
	n.waiters.all()
	n.news.all()
	for _, s := range n.sockets {
		s.waiters.all()
	}
	for _, c := range n.conns {
		n.hangup(c)
	}
	n.mu.Unlock()
	n.stop()
	_ = n.listener.Close()
	n.alarm.close()
	err := n.config.closeLinks()
	n.running.Wait()
	n.reportRefusals()
	close(n.done)
	return err
}
