package rail

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Back-off of rounds, and how long a path has to stay up for its failures to be forgotten, in
// Config.Dwell.
const (
	firstBackoff = 0.1
	lastBackoff  = 30
	forgetAfter  = 60
)

// Host is the association with the peer that Paths lead to. Its methods are called inside those of
// Paths.
type Host interface {
	// Connected reports whether the peer has a control connection.
	Connected() bool
	// Acknowledged reports whether the peer has received a control message.
	Acknowledged(sequence uint64) bool
	// Announce sends a path's state to the peer and returns the message's sequence number.
	Announce(s *control.PathState) uint64
	// PathUp reports that a path can be used, PathDown that a round of it is over, which was up.
	PathUp(now microproto.Instant, p *Path)
	PathDown(now microproto.Instant, p *Path, wasUp bool)
	// PathSteady reports that a path, maybe the base path, was up for long enough that sessions may go back to it.
	PathSteady(now microproto.Instant)
	// BaseDown and BaseUp report changes of Paths.Base.
	BaseDown(now microproto.Instant)
	BaseUp(now microproto.Instant)
}

// Config sets Paths up.
type Config struct {
	Node, Peer string
	Dwell      time.Duration // how long a path has to be up before sessions go back to it
	Base       *Rail
	Host       Host
}

// Path is one rail between this node and a peer.
type Path struct {
	Rail   *Rail
	Round  uint32              // the present one, from 1
	Addr   microproto.LinkAddr // of the other end, whose offer was accepted; 0: not yet
	Reason string              // why it is not up
	Downs  uint64              // times that it went down
	Found  string              // what the comparison with the base rail has shown; "": there was none
	Faster bool                // by that comparison

	offered    bool               // this end has made its offer
	connecting bool               // the link has not connected with Addr yet
	ready      bool               // the other end has accepted this end's offer
	settled    bool               // it was up, or known to be down, once
	since      microproto.Instant // it has been up
	steady     bool               // PathSteady was called
	retry      microproto.Instant // begin of the next round; Never: the other end begins it
	backoff    time.Duration      // between failures; 0: none yet
	last       uint64             // sequence number of the last message about it
}

// Network returns the kind of network of the path.
func (p *Path) Network() path.Network { return p.Rail.Network }

// Up reports whether the path can be used.
func (p *Path) Up() bool { return p.offered && p.Addr != 0 && !p.connecting && p.ready }

// Chosen reports whether sessions use the path while it and the base path are up.
func (p *Path) Chosen() bool { return p.Faster || !p.Rail.Compare && !p.Rail.Standby }

// ChosenFor reports whether sessions of a mode use the path while it and the base path are up.
func (p *Path) ChosenFor(m microproto.Mode) bool {
	return p.Chosen() && p.Rail.Carries(m) && !(p.Rail.Synchronous && m == microproto.ModeAsynchronous)
}

// Bind returns the binding of a channel that uses the path as it is.
func (p *Path) Bind() Binding {
	return Binding{Path: p, Rail: p.Rail, Round: p.Round, Addr: p.Addr, Over: !p.Up()}
}

func (c *Config) dwells(k float64) time.Duration { return time.Duration(k * float64(c.Dwell)) }

func (s *Paths) beginRound(now microproto.Instant, p *Path) {
	p.Round++
	s.offer(now, p)
}

// offer announces this end's offer of the round, or that it has none.
func (s *Paths) offer(now microproto.Instant, p *Path) {
	p.retry = microproto.Never
	if p.Rail.Err != nil {
		s.announceDown(now, p, "is down", p.Rail.Err)
		return
	}
	offer, err := p.Rail.Link.Offer(s.Peer)
	if err == nil && len(offer) > control.MaxOffer {
		err = fmt.Errorf("%w: the link's offer has %d bytes of %d", control.ErrLimit, len(offer), control.MaxOffer)
	}
	if err != nil {
		s.scheduleRetry(now, p)
		s.announceDown(now, p, "has nothing to offer", err)
		return
	}
	p.offered = true
	s.announce(p, control.PathState{Stage: control.Offered, Offer: offer})
}

// mayRetry reports whether another round makes sense: after the first failure at once, then when
// the peer has received the last message. Otherwise rounds would pile up while the connection is
// broken.
func (s *Paths) mayRetry(p *Path) bool {
	return s.Host.Connected() && (p.backoff <= s.dwells(firstBackoff) || s.Host.Acknowledged(p.last))
}

func (s *Paths) announce(p *Path, m control.PathState) {
	m.Network, m.Round = p.Network(), p.Round
	p.last = s.Host.Announce(&m)
}

func (s *Paths) scheduleRetry(now microproto.Instant, p *Path) {
	p.retry = now.Add(p.backoff)
	if p.Rail.Standby && !s.Base.Down() {
		p.retry = microproto.Never // until the base path is down
	}
	p.backoff = min(max(2*p.backoff, s.dwells(firstBackoff)), s.dwells(lastBackoff))
}

// announceDown ends the round at both ends. what describes the fault err.
func (s *Paths) announceDown(now microproto.Instant, p *Path, what string, err error) {
	reason := fmt.Sprintf("%v %s at %s: %v", p.Network(), what, s.Node, err)
	reason = reason[:min(len(reason), control.MaxReason)]
	s.announce(p, control.PathState{Stage: control.Down, Reason: reason})
	s.endRound(now, p, reason)
}

// fail ends a round whose fault this end has found.
func (s *Paths) fail(now microproto.Instant, p *Path, err error) {
	if !p.offered {
		return // the round is over already
	}
	if p.Up() && now.Sub(p.since) >= s.dwells(forgetAfter) {
		p.backoff = 0
	}
	s.scheduleRetry(now, p)
	s.announceDown(now, p, "is down", err)
}

func (s *Paths) endRound(now microproto.Instant, p *Path, reason string) {
	wasUp := p.Up()
	p.Rail.Release(p.Addr)
	p.offered, p.Addr, p.connecting, p.ready = false, 0, false, false
	p.settled, p.steady = true, false
	p.Reason = reason
	if wasUp {
		p.Downs++
	}
	s.Host.PathDown(now, p, wasUp)
}

func (s *Paths) accept(now microproto.Instant, p *Path, offer []byte) {
	addr, err := p.Rail.Link.Accept(offer)
	if err == nil && addr == 0 {
		err = ErrNoReason
	}
	if err != nil {
		p.backoff = s.dwells(lastBackoff) // the next offer is hardly another one
		s.scheduleRetry(now, p)
		s.announceDown(now, p, "does not accept the offer", err)
		return
	}
	p.Addr = addr
	if p.connecting = p.Rail.Link.Caps(microproto.ModeSynchronous).ConnectsLater; !p.connecting {
		s.announceReady(now, p)
	}
}

// announceReady announces that frames can pass.
func (s *Paths) announceReady(now microproto.Instant, p *Path) {
	p.connecting = false
	s.announce(p, control.PathState{Stage: control.Ready})
	s.complete(now, p)
}

func (s *Paths) complete(now microproto.Instant, p *Path) {
	if !p.Up() {
		return
	}
	p.settled, p.steady = true, false
	p.Reason = ""
	p.since = now
	s.Host.PathUp(now, p)
}

// steadyAt returns when sessions may go back to a path that is up. One that goes up and down must
// not take them along.
func (s *Paths) steadyAt(p *Path) microproto.Instant {
	return p.since.Add(max(s.Dwell, p.backoff))
}

// String describes the state of the path.
func (p *Path) String() string {
	return fmt.Sprintf("%v round %d: offered %v, address %d, ready %v, settled %v, steady %v, rail down %v, back-off %v",
		p.Network(), p.Round, p.offered, p.Addr, p.ready, p.settled, p.steady, p.Rail.Err != nil, p.backoff)
}
