package rail

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Paths are those between this node and one peer, best first.
type Paths struct {
	Config
	List []*Path
	Base Base
}

// Find returns the path of a network; nil for that of the base rail and for one that there is not.
func (s *Paths) Find(k path.Network) *Path {
	for _, p := range s.List {
		if p.Network() == k {
			return p
		}
	}
	return nil
}

// Best returns the best path for sessions of a mode that is up, and steady if so asked; nil: the base rail. While the
// base path is down, any path that carries the mode is better.
func (s *Paths) Best(m microproto.Mode, steady bool) *Path {
	var other *Path
	for _, p := range s.List {
		switch {
		case !p.Up() || !p.Rail.Carries(m):
		case p.ChosenFor(m) && (p.steady || !steady):
			return p
		case other == nil && s.Base.Down():
			other = p
		}
	}
	return other
}

// Better reports whether a is better than b for sessions of a mode; nil is the base rail.
func (s *Paths) Better(a, b *Path, m microproto.Mode) bool { return s.rank(a, m) < s.rank(b, m) }

// rank orders the paths, best first: those that are chosen, the base path, others. The base path comes last while it is
// down, and until it is steady again.
func (s *Paths) rank(p *Path, m microproto.Mode) int {
	k := len(s.List)
	switch i := slices.Index(s.List, p); {
	case p == nil && (s.Base.Down() || s.Base.fresh):
		return 2*k + 1
	case p == nil:
		return k
	case p.ChosenFor(m):
		return i
	default:
		return k + 1 + i
	}
}

// Settled reports whether every path was up, or known to be down, once.
func (s *Paths) Settled() bool {
	return !slices.ContainsFunc(s.List, func(p *Path) bool { return !p.settled })
}

// Begin starts the first round of every rail that both ends have, once. own and theirs are the
// networks of both ends' rails, best first; the order of the end with the lower name holds.
func (s *Paths) Begin(now microproto.Instant, rails []*Rail, own, theirs []path.Network) {
	if s.List != nil {
		return
	}
	if s.Node > s.Peer {
		own, theirs = theirs, own
	}
	for _, k := range own {
		if i := slices.IndexFunc(rails, func(r *Rail) bool { return r.Network == k }); slices.Contains(theirs, k) {
			s.List = append(s.List, &Path{Rail: rails[i], retry: microproto.Never, Reason: "not offered yet"})
		}
	}
	for _, p := range s.List {
		if p.Rail.Standby {
			p.settled, p.Reason = true, "it connects when "+s.Config.Base.Network.String()+" is down"
			continue // unless the other end begins
		}
		s.beginRound(now, p)
	}
}

// Release gives all connections up.
func (s *Paths) Release() {
	for _, p := range s.List {
		p.Rail.Release(p.Addr)
	}
	s.List = nil
}

// Receive takes the state of a path at the other end.
func (s *Paths) Receive(now microproto.Instant, m *control.PathState) error {
	if m.Network == s.Config.Base.Network {
		return s.receiveBase(now, m)
	}
	p := s.Find(m.Network)
	if p == nil || m.Round > p.Round+1 || m.Round == p.Round+1 && m.Stage == control.Ready {
		return fmt.Errorf("%w: rail %v in round %d out of turn", control.ErrMalformed, m.Network, m.Round)
	}
	if m.Round < p.Round {
		return nil // of a round that is over
	}
	if m.Round > p.Round {
		s.endRound(now, p, "the peer has begun anew")
		p.Round = m.Round
		if m.Stage == control.Offered {
			s.offer(now, p)
		}
	}
	switch {
	case m.Stage == control.Down:
		s.endRound(now, p, "the peer says: "+m.Reason)
	case !p.offered: // this end has given the round up
	case m.Stage == control.Ready:
		p.ready = true
		s.complete(now, p)
	case p.Addr != 0:
		return fmt.Errorf("%w: rail %v: a second offer in round %d", control.ErrMalformed, m.Network, m.Round)
	default:
		s.accept(now, p, m.Offer)
	}
	return nil
}

// RailUp schedules the next round of the path over a rail that came back.
func (s *Paths) RailUp(now microproto.Instant, r *Rail) {
	for _, p := range s.List {
		if p.Rail == r && !p.offered {
			p.retry = now.Add(p.backoff)
		}
	}
}

// RailDown ends the round of the path over a rail that went down.
func (s *Paths) RailDown(now microproto.Instant, r *Rail, err error) {
	for _, p := range s.List {
		if p.Rail == r {
			s.fail(now, p, err)
			p.retry = microproto.Never // until it is up
		}
	}
}

// ConnectionUp completes the round of the path over a rail that has connected with an address.
func (s *Paths) ConnectionUp(now microproto.Instant, r *Rail, addr microproto.LinkAddr) {
	for _, p := range s.List {
		if p.Rail == r && p.Addr == addr && p.connecting {
			s.announceReady(now, p)
		}
	}
}

// ConnectionDown ends the round of the path over a rail whose connection with an address broke.
func (s *Paths) ConnectionDown(now microproto.Instant, r *Rail, addr microproto.LinkAddr, err error) {
	for _, p := range s.List {
		if p.Rail == r && p.Addr == addr {
			s.fail(now, p, err)
		}
	}
}

// Advance does what is due at now.
func (s *Paths) Advance(now microproto.Instant) {
	for _, p := range s.List {
		if !p.offered && now >= p.retry && s.mayRetry(p) {
			s.beginRound(now, p)
		}
		if p.Up() && !p.steady && now >= s.steadyAt(p) {
			p.steady = true
			s.Host.PathSteady(now)
		}
	}
	if s.Base.fresh && now >= s.steadyBase() {
		s.Base.fresh = false
		s.Host.PathSteady(now)
	}
}

// Deadline returns when Advance has something to do next.
func (s *Paths) Deadline() microproto.Instant {
	d := microproto.Never
	for _, p := range s.List {
		switch {
		case !p.offered && s.mayRetry(p):
			d = min(d, p.retry)
		case p.Up() && !p.steady:
			d = min(d, s.steadyAt(p))
		}
	}
	if s.Base.fresh {
		d = min(d, s.steadyBase())
	}
	return d
}
