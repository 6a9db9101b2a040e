package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Frames that have become too long for the path are lost without a report from below. A synchronous session
// notices that a long segment does not get through while small frames do. Asynchronous sessions send nothing
// again, so each end reports in its heartbeats how many long frames have arrived. All sessions of the peer
// continue in epochs of shorter frames, which every path carries.

// ShortFrame is the length in bytes of frames that every path is assumed to carry, the starting point
// of RFC 8899 §5.1.2 and RFC 9000 §14.
const ShortFrame = 1200

// raiseAfter is the time from the end of a search for the longest frame to the next: PMTU_RAISE_TIMER of RFC 8899
// §5.1.1.
const raiseAfter = 10 * time.Minute

// limitFrames has sessions keep to short frames, and a search begin at the next heartbeat.
func (p *peer) limitFrames(now microproto.Instant) {
	p.frameLimit, p.limitUntil, p.search = ShortFrame, now, frameSearch{}
}

// raiseFrameLimit proposes the longer frames that a search has found; false: it has not.
func (n *Node) raiseFrameLimit(now microproto.Instant, s *session) bool {
	c := s.channel
	return n.frameBytes(s.peer, nil, c.mode()) > c.frameBytes && n.proposeConditions(now, s, s.conditions) == nil
}

// shortenFrames has all sessions with a peer go on in shorter frames.
func (n *Node) shortenFrames(now microproto.Instant, p *peer) {
	p.limitFrames(now)
	for _, s := range n.sessionsWith(p) {
		n.keepToFrameLimit(now, s)
	}
	n.reschedule = true
}

// keepToFrameLimit proposes shorter frames where a session's are longer than the path is known to carry. A change
// under way takes the shorter frames too, and the monitor tries again. It reports whether it has proposed.
func (n *Node) keepToFrameLimit(now microproto.Instant, s *session) bool {
	c := s.channel
	return s.state == SessionOpen && c.Path == nil && c.frameBytes > n.frameBytes(s.peer, nil, c.mode()) &&
		n.proposeConditions(now, s, s.conditions) == nil
}

// frameCounts counts frames that go to a peer and come from it by the base rail. Those of more than ShortFrame
// bytes are long. Sent probes count as sent, and received ones as received.
type frameCounts struct {
	sent, received control.Heartbeat
	heard          control.Heartbeat // the last one received
	heardAt        microproto.Instant

	at       microproto.Instant // of the last report that counted; 0: there was none
	arrived  control.Heartbeat  // by that report
	sentThen control.Heartbeat
	vain     control.Heartbeat // sent when the first report came since which no long frame has arrived
	shorts   int               // reports since then by which short frames have arrived

	// For the loss: frames sent, and arrived, by the last heartbeat that counted, and the share lost before it.
	lossAt                microproto.Instant
	lossSent, lossArrived uint64
	lossBefore            float64

	first firstFrames

	reported control.Heartbeat  // the last one sent
	reportAt microproto.Instant // no heartbeat is sent early before
	// beat is true from the time that a regular heartbeat is sent until the other end's next one arrives. The search
	// for the longest frame continues then: frames that were sent before have arrived by that time, or are lost.
	beat bool
}

const (
	// lossFrames is the number of frames from one heartbeat to the next from which a loss is computed: fewer congest
	// no path.
	lossFrames = 40
	// lossEvery is the least time between two early heartbeats, and earlyFrames the number of frames that must have
	// arrived: congestion control should not begin seconds after congestion.
	lossEvery   = 100 * time.Millisecond
	earlyFrames = 4 * lossFrames
)

// reportFrames sends a heartbeat early if the other end can compute the loss from it.
func (n *Node) reportFrames(now microproto.Instant, p *peer) {
	f := &p.frames
	if got := f.received.Total() - f.reported.Total(); now < f.reportAt || got < earlyFrames {
		return
	}
	n.beatEarly(now, p)
}

// beatEarly sends a heartbeat that does not count as a regular one.
func (n *Node) beatEarly(now microproto.Instant, p *peer) {
	f := &p.frames
	beat := f.beat
	n.associations.Beat(p.Peer)
	f.reportAt, f.beat = now.Add(lossEvery), beat
}

// measureLoss takes a heartbeat and updates the share of frames that are lost. Retransmissions do not tell it: many are
// not needed, and asynchronous sessions have none. What is lost before one heartbeat only, or frames that begin to wait
// in queues meanwhile, and an outage, in which nothing arrives at all, are no congestion. Early heartbeats show that loss
// begins. While there is some, only those about a regular interval apart count: congestion control loses frames now
// and then.
func (c *frameCounts) measureLoss(now microproto.Instant, interval time.Duration, h control.Heartbeat, loss *float64) {
	if *loss == 0 {
		interval = min(interval, lossEvery)
	}
	if c.lossAt != 0 && now.Sub(c.lossAt) < interval*3/4 {
		return
	}
	c.lossAt = now
	sent, arrived := c.sent.Total(), h.Total()
	of, got := sent-c.lossSent, arrived-c.lossArrived
	c.lossSent, c.lossArrived = sent, arrived
	if of < lossFrames {
		return
	}
	share := 0.0
	if got > 0 {
		share = max(0, 1-float64(got)/float64(of))
	}
	*loss += (min(share, c.lossBefore) - *loss) / 2
	c.lossBefore = share
}

const (
	// reportBeats is the least time between two reports that count, in heartbeats, which come a little irregularly.
	// Frames sent before one of them have arrived, or are lost, when the next is sent.
	reportBeats = 0.75
	// longLost is the number of long frames that were sent in vain. Random losses of half of all frames lose so
	// many in a row once in 65 536 times.
	longLost = 16
	// fewLost is the number that suffices where few are sent, as by a session whose congestion window has closed since
	// all were lost. If that was chance, a search soon finds that longer frames pass.
	fewLost = 2
	// shortReports is the number of reports of short frames that tell a path for short frames from the end of an
	// outage.
	shortReports = 3
)

func isLong(f *microproto.Frame) bool {
	return f.Bytes() > ShortFrame && (f.Segment == 0 || f.Segment > ShortFrame)
}

// countFrame adds a frame, or several as one, to counts.
func countFrame(to *control.Heartbeat, f *microproto.Frame) { *countOf(to, f) += uint64(f.Count()) }

// uncountFrame takes a frame off that was added.
func uncountFrame(from *control.Heartbeat, f *microproto.Frame) {
	*countOf(from, f) -= uint64(f.Count())
}

func countOf(c *control.Heartbeat, f *microproto.Frame) *uint64 {
	if isLong(f) {
		return &c.LongFrames
	}
	return &c.ShortFrames
}

// report takes a heartbeat and reports whether long frames are lost and short ones are not: fewLost long ones or more
// were sent in vain, while short ones have arrived by shortReports reports. suspect: short frames would tell.
func (c *frameCounts) report(now microproto.Instant, apart time.Duration, h control.Heartbeat) (lost, suspect bool) {
	if c.at != 0 && now.Sub(c.at) < apart {
		return false, false
	}
	switch {
	case h.LongFrames != c.arrived.LongFrames:
		c.vain, c.shorts = c.sent, 0
	case h.ShortFrames > c.arrived.ShortFrames:
		c.shorts++
	}
	vain := func(of *control.Heartbeat) int64 { // probes may be longer than what the path carries
		return int64(of.LongFrames-of.Probes) - int64(c.vain.LongFrames-c.vain.Probes)
	}
	lost = vain(&c.sentThen) >= fewLost && c.shorts >= shortReports
	c.at, c.arrived, c.sentThen = now, h, c.sent
	return lost, vain(&c.sent) > 0
}

func (n *Node) receiveHeartbeat(now microproto.Instant, p *peer, h *control.Heartbeat) {
	first := p.frames.heard.LongFrames == 0 && h.LongFrames > 0 // sent at once: most frames are still on their way, not lost
	p.frames.heard, p.frames.heardAt = *h, now
	if p.frames.first.heard(h) {
		n.shortenFrames(now, p)
	}
	rtt := max(p.metrics.RTT, p.RTT) // no session may have measured any yet
	probes := p.paths.HeardBase(now, n.config.Heartbeat, rtt, p.frames.sent.Total(), h.Total())
	if !first {
		p.frames.measureLoss(now, n.config.Heartbeat, *h, &p.metrics.Loss)
	}
	if p.metrics.Loss > n.config.Monitor.LossyAbove { // of a session that only sends, no frame arrives
		for _, s := range n.sessionsWith(p) {
			n.monitor(now, s)
		}
		n.reschedule = true
	}
	apart := max(time.Duration(reportBeats*float64(n.config.Heartbeat)), 2*rtt)
	if !n.config.Monitor.Off && p.frames.beat {
		p.frames.beat = false
		lost, suspect := p.frames.report(now, apart, *h)
		if lost && p.frameLimit != ShortFrame {
			n.shortenFrames(now, p)
		}
		if suspect {
			probes = max(probes, 1)
		}
		n.searchFrames(now, p, h.Probes)
	}
	for range probes {
		n.sendProbe(now, p, probeBytes)
	}
}

// probeState is what a session knows of a segment that does not get through.
type probeState struct {
	at                      microproto.Instant // when the first probe was sent; 0: none was
	framesIn, sent, arrived uint64             // frames from the other end, and long ones to it, until then
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
	framesIn, f := c.composite.Counters().FramesIn, &s.peer.frames
	if s.probe.at == 0 {
		s.probe = probeState{now, framesIn, f.sent.LongFrames, f.heard.LongFrames}
	}
	switch {
	case framesIn == s.probe.framesIn:
		n.collect(now, s, c, c.composite.Do(now, c.prober.Probe), -1)
	case f.heard.LongFrames != s.probe.arrived:
		s.probe = probeState{} // a full queue that only short frames fit, since other long ones arrive
	case f.sent.LongFrames-s.probe.sent >= longLost && f.heardAt <= s.probe.at:
		// Whether any of these arrives will be reported.
	default:
		s.probe = probeState{}
		n.shortenFrames(now, s.peer)
	}
}
