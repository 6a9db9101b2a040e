package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Frames that have become too long for the path are lost without a report from below. The session
// notices: a long segment does not get through while small frames do. It continues in an epoch of
// shorter frames, which every path carries.

// ShortFrame is the length in bytes of frames that every path is assumed to carry, the starting point
// of RFC 8899 §5.1.2 and RFC 9000 §14.
const ShortFrame = 1200

// raiseAfter is how long a session keeps to short frames before it tries longer ones again:
// PMTU_RAISE_TIMER of RFC 8899 §5.1.1.
const raiseAfter = 10 * time.Minute

func (p *peer) limitFrames(now microproto.Instant) {
	p.frameLimit, p.limitUntil = ShortFrame, now.Add(raiseAfter)
}

// raiseFrameLimit tries longer frames again when it is time; false: it is not.
func (n *Node) raiseFrameLimit(now microproto.Instant, s *session) bool {
	p := s.peer
	if p.frameLimit != 0 && now >= p.limitUntil {
		p.frameLimit = 0
	}
	return p.frameLimit == 0 && n.proposeConditions(now, s, s.conditions) == nil
}

// probeState is what a session knows of a segment that does not get through.
type probeState struct {
	sent     bool
	framesIn uint64 // when the first probe was sent
}

// frameBytes returns the longest frame on a path in a mode, as this end knows it.
func (n *Node) frameBytes(p *peer, w *rail.Path, mode microproto.Mode) int {
	if w != nil {
		return w.Rail.Link.Caps(mode).MTU
	}
	most := n.rails[0].Link.Caps(mode).MTU
	if p.frameLimit != 0 {
		most = min(most, p.frameLimit)
	}
	return most
}

// probeFrameLimit checks whether a session's oldest segment is stuck while smaller frames pass.
func (n *Node) probeFrameLimit(now microproto.Instant, s *session) {
	c := s.channel
	if c == nil || c.prober == nil || c.Path != nil || n.config.Monitor.Off || c.frameBytes <= ShortFrame ||
		s.renegotiation.Mine.Cause != 0 {
		return
	}
	if !c.prober.Stuck() {
		s.probe = probeState{}
		return
	}
	framesIn := c.composite.Counters().FramesIn
	if !s.probe.sent {
		s.probe = probeState{true, framesIn}
	}
	if framesIn == s.probe.framesIn {
		n.collect(now, s, c, c.composite.Do(now, c.prober.Probe), -1)
		return
	}
	s.probe = probeState{}
	s.peer.limitFrames(now)
	_ = n.proposeConditions(now, s, s.conditions) // a change under way takes the shorter frames too
}
