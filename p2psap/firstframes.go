package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// firstFrames asks whether a path carries the long frames with which a session begins, sooner than heartbeats tell: the
// path may always have been narrower than the link. An end reports the first long frame that arrives at once. Where this
// report is missing, the other end sends a short and a long probe a few times, and the short ones are answered. Frames
// arrive in the order in which they were sent, or are lost: a short one that has arrived says that no long one before it
// comes.
type firstFrames struct {
	next   microproto.Instant // of the probes; 0: there is no doubt
	rounds int                // of probes so far
	passed int                // rounds whose short probes have arrived
	shorts uint64             // short frames that had arrived then
}

const (
	// firstEvery is the time from one round of probes to the next, unless the path is longer.
	firstEvery = 125 * time.Millisecond
	// firstRounds is the largest number of rounds. The path is narrow when the short probes of probesOfSize rounds have
	// arrived and no long one has.
	firstRounds = 2 * probesOfSize
)

// sentLong begins to ask at the first long frame to a life of the other end, unless that is on this host.
func (n *Node) sentLong(now microproto.Instant, s *session) {
	p, f := s.peer, &s.peer.frames
	if f.first != (firstFrames{}) || f.sent.LongFrames == 0 || f.heard.LongFrames > 0 || p.frameLimit != 0 ||
		n.config.Monitor.Off || n.onOneHost(s) {
		return
	}
	f.first.next = now.Add(max(firstEvery, 2*p.metrics.RTT))
	n.peersDue = min(n.peersDue, f.first.next)
}

// askForLong sends a round of probes.
func (n *Node) askForLong(now microproto.Instant, p *peer) {
	f := &p.frames.first
	if f.rounds == firstRounds || p.frameLimit != 0 {
		f.next = 0 // heartbeats tell the rest
		return
	}
	f.rounds++
	f.next = now.Add(max(firstEvery, 2*p.metrics.RTT))
	n.sendProbe(now, p, probeBytes)
	n.sendProbe(now, p, n.rails[0].Link.Caps(microproto.ModeSynchronous).MTU)
}

// heard takes a heartbeat and reports whether short frames arrive and long ones do not.
func (f *firstFrames) heard(h *control.Heartbeat) bool {
	switch {
	case f.next == 0:
		return false
	case h.LongFrames > 0:
		f.next, f.rounds = 0, firstRounds
		return false
	case h.ShortFrames > f.shorts && f.passed < f.rounds:
		f.passed++
	}
	f.shorts = h.ShortFrames
	if f.passed < probesOfSize {
		return false
	}
	f.next = 0
	return true
}

// countArrived counts a frame from the peer, of any epoch: the path has carried it. It reports the first long one, and
// until then the probes.
func (n *Node) countArrived(now microproto.Instant, s *session, r *rail.Rail, f *microproto.Frame, probe bool) {
	if r.Number != 0 {
		return
	}
	c := &s.peer.frames
	first := c.received.LongFrames == 0
	countFrame(&c.received, f)
	if first && (c.received.LongFrames > 0 || probe && now >= c.reportAt) && !n.onOneHost(s) {
		n.beatEarly(now, s.peer)
	}
}
