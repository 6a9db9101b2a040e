package driver

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// carryOut carries out an order of the core, or passes a report on. The lock is held.
func (n *Node) carryOut(o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutControl:
		n.queueControl(o)
	case p2psap.OutDial:
		if !n.closed {
			n.running.Add(1)
			go n.dial(o.Peer, o.Addrs)
		}
	case p2psap.OutDisconnect:
		if c := n.conns[o.Conn]; c != nil {
			n.log.Debug("control connection closed", "connection", uint64(o.Conn), cause(o.Err))
			n.hangup(c)
		}
	case p2psap.OutActivity:
		if s := n.sockets[o.Session]; s != nil {
			s.changed()
		}
		n.signalActivity()
	case p2psap.OutOpened, p2psap.OutEnded, p2psap.OutAdapted:
		if s := n.sockets[o.Session]; s != nil {
			n.reportSession(s, o)
		}
	case p2psap.OutRail:
		n.logRail(o)
		n.startComparison(o.Peer)
	case p2psap.OutRoute:
		n.logRoute(o)
	case p2psap.OutOffered:
		n.progress.signalAll()
	default:
		n.reportPeer(o)
	}
}

func (n *Node) signalActivity() {
	n.activity = true
	n.anyWaiters.signalAll()
}

func (n *Node) reportPeer(o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutPeerUp:
		f := n.core.Finding(o.Peer)
		n.log.Info("peer connected", "peer", o.Peer, "locality", f.Locality.String(), "why", f.Reason, "rtt", f.RTT)
		n.startComparison(o.Peer)
	case p2psap.OutPeerRefused:
		n.log.Warn("peer refused", "peer", o.Peer, cause(o.Err))
	case p2psap.OutPeerClosed:
		n.log.Info("peer said goodbye", "peer", o.Peer)
	case p2psap.OutPeerLost:
		n.log.Error("peer lost", "peer", o.Peer, cause(o.Err))
		if n.lost == nil {
			n.lost, n.lostPeer = o.Err, o.Peer
		}
		n.anyWaiters.signalAll()
	}
	n.progress.signalAll()
}

// reportSession logs a change of a session's state and wakes the calls that wait for it.
func (n *Node) reportSession(s *Socket, o *p2psap.Output) {
	s.updateInfo()
	s.changed()
	i := &s.info
	switch o.Kind {
	case p2psap.OutOpened:
		if strings.HasPrefix(i.Name, p2psap.ReservedName) {
			return
		}
		n.log.Info("session open", "session", i.Name, "peer", o.Peer,
			"mode", i.Conditions.Mode.String(), "locality", i.Conditions.Locality.String(), "why", i.LocalityReason,
			"rtt", i.RTT, "composition", i.Composition, "protection", i.Protection,
			"epoch", i.Epoch, "segment.bytes", i.SegmentSize)
	case p2psap.OutAdapted:
		level := slog.LevelInfo
		if o.Err != nil {
			level = slog.LevelWarn
		}
		n.log.Log(context.Background(), level, "session adapted", cause(o.Err), "session", i.Name, "peer", o.Peer,
			"mode", i.Conditions.Mode.String(), "composition", i.Composition, "epoch", i.Epoch, "pause", i.LastPause)
	case p2psap.OutEnded:
		n.log.Debug("session ended", "session", i.Name, "peer", o.Peer, cause(o.Err))
		n.progress.signalAll()
		n.signalActivity()
		if s.abandoned {
			n.core.Close(n.now(), s.id)
			delete(n.sockets, s.id)
		}
	}
}

// linger gives the lock up until over returns true, for as long as the core lets transfers linger and a little
// more for the last control messages. The lock is held.
func (n *Node) linger(over func() bool) {
	bound := n.config.Linger + time.Second/2
	timer := time.AfterFunc(bound, func() {
		n.mu.Lock()
		n.progress.signalAll()
		n.mu.Unlock()
	})
	defer timer.Stop()
	until := n.now().Add(bound)
	for !over() && !n.closed && !n.aborted && n.now() < until {
		if n.block(context.Background(), &n.progress, microproto.Never) != nil {
			return
		}
	}
}

// Abort is Close without Linger: messages that the peers have not accepted are dropped. It also ends the
// lingering of a Close, or of a Socket's Close, that is under way. Its control connections are closed a little later,
// when the other ends have closed theirs.
func (n *Node) Abort() error {
	n.mu.Lock()
	n.aborted = true
	n.progress.signalAll()
	n.mu.Unlock()
	return n.Close()
}

// Close closes every session, says goodbye, closes the links and returns when no goroutine of the node is left:
// in bounded time, whatever the peers do. Calls that block return p2psap.ErrClosed.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		<-n.done
		return nil
	}
	n.closing = true
	for _, s := range n.sockets {
		s.closed = true
		n.core.Close(n.now(), s.id)
		s.waiters.signalAll()
	}
	n.linger(func() bool {
		for _, s := range n.sockets {
			if !s.ended() {
				return false
			}
		}
		return true
	})
	n.core.Goodbye(n.now())
	n.settle()
	n.closed = true
	n.resumeReceiver()
	n.anyWaiters.signalAll()
	n.progress.signalAll()
	for _, s := range n.sockets {
		s.waiters.signalAll()
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
	n.logRefusals()
	close(n.done)
	return err
}
