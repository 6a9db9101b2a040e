package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Frames that have become too long for the path. Nothing below tells, so the session
// finds out: a long segment does not come through, and small frames do. Then the session
// goes on in an epoch of shorter frames, which any path carries.

// ShortFrame is the length of frames that every path is taken to carry, in bytes: what
// RFC 8899 §5.1.2 and RFC 9000 §14 start from.
const ShortFrame = 1200

// raiseAfter is how long a session keeps to short frames before it tries longer ones
// again: PMTU_RAISE_TIMER of RFC 8899 §5.1.1.
const raiseAfter = 10 * time.Minute

func (p *peer) limitFrames(now microproto.Instant) {
	p.frameLimit, p.limitUntil = ShortFrame, now.Add(raiseAfter)
}

// raise tries longer frames again when it is time; false: it is not.
func (n *Node) raise(now microproto.Instant, s *session) bool {
	p := s.peer
	if p.frameLimit != 0 && now >= p.limitUntil {
		p.frameLimit = 0
	}
	return p.frameLimit == 0 && n.wish(now, s, s.conditions) == nil
}

// probing is what is known of a segment that is stuck.
type probing struct {
	asked  bool
	frames uint64 // that had come when it was asked first
}

// frameBytes is the longest frame for a session on a way in a mode, as this end knows it.
func (n *Node) frameBytes(p *peer, w *way, mode microproto.Mode) int {
	if w != nil {
		return w.rail.link.Caps(mode).MTU
	}
	most := n.base().link.Caps(mode).MTU
	if p.frameLimit != 0 {
		most = min(most, p.frameLimit)
	}
	return most
}

// probe looks whether a session's oldest segment is stuck while smaller frames pass.
func (n *Node) probe(now microproto.Instant, s *session) {
	c := s.channel
	if c == nil || c.prober == nil || c.way != nil || n.config.Monitor.Off || c.frameBytes <= ShortFrame || s.change.mine.Cause != 0 {
		return
	}
	if !c.prober.Stuck() {
		s.probing = probing{}
		return
	}
	came := c.composite.Counters().FramesIn
	if !s.probing.asked {
		s.probing = probing{true, came}
	}
	if came == s.probing.frames {
		n.settle(now, s, c, c.composite.Do(now, c.prober.Probe), -1)
		return
	}
	s.probing = probing{}
	s.peer.limitFrames(now)
	_ = n.wish(now, s, s.conditions) // if another change is under way, it takes the shorter frames too
}
