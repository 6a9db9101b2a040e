package p2psap

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// frameSearch looks for the longest frame that a path carries in this end's direction (RFC 8899 §5.3). It sends frames
// without data, which may be lost, and bisects. The other end's heartbeats report those that have arrived.
type frameSearch struct {
	low, high int    // the longest frame known to pass, and the shortest that does not, or is longer than the link takes
	size      int    // of the frames that are sent now; 0: the search is over
	sent      int    // of that size
	arrived   uint64 // probes, when they were first sent
}

const (
	// probesOfSize is MAX_PROBES of RFC 8899 §5.1.2, one for each heartbeat.
	probesOfSize = 3
	// probeBytes is the size of frames that show whether the path carries any.
	probeBytes = 64
	// searchStep is the number of bytes within which the longest frame is found.
	searchStep = 16
)

// begin starts a search between a length that the path carries and the longest frame of the link, which is tried first.
func (f *frameSearch) begin(low, most int, arrived uint64) {
	*f = frameSearch{low: low, high: most + 1, size: most, arrived: arrived}
}

// next takes the number of probes that have arrived, and whether the path is congested. It returns the size of a probe
// to send, or 0 when the search is over.
func (f *frameSearch) next(arrived uint64, congested bool) int {
	most := probesOfSize
	if congested { // the loss of a few probes says nothing about their length (RFC 8899 §3)
		most = longLost
	}
	switch {
	case f.size == 0:
		return 0
	case f.sent > 0 && arrived != f.arrived:
		f.low, f.sent = f.size, 0
	case f.sent < most:
		f.sent++
		return f.size
	default:
		f.high, f.sent = f.size, 0
	}
	if f.size = (f.low + f.high) / 2; f.high-f.low <= searchStep {
		f.size = 0
		return 0
	}
	f.sent, f.arrived = 1, arrived
	return f.size
}

// searchFrames goes on with the search, or begins another when it is time. arrived is the number of probes that the
// other end has reported.
func (n *Node) searchFrames(now microproto.Instant, p *peer, arrived uint64) {
	if p.frameLimit == 0 {
		return
	}
	most := n.rails[0].Link.Caps(microproto.ModeSynchronous).MTU
	if p.search.size == 0 {
		if now < p.limitUntil {
			return
		}
		p.search.begin(p.frameLimit, most, arrived)
	}
	if size := p.search.next(arrived, p.metrics.Loss > n.config.Monitor.LossyAbove); size > 0 {
		n.sendProbe(now, p, size)
		return
	}
	p.limitUntil = now.Add(raiseAfter)
	p.raiseLimit(p.search.low, most)
}

// raiseLimit sets the limit to a length that the path carries. The sessions change when the monitor runs for them.
func (p *peer) raiseLimit(length, most int) {
	p.search = frameSearch{}
	if p.frameLimit = length; length >= most {
		p.frameLimit = 0
	}
}

// sendProbe sends a frame of a size that the other end counts and drops: its epoch is neither the present one nor close
// to it.
func (n *Node) sendProbe(now microproto.Instant, p *peer, size int) {
	for _, s := range n.sessionsWith(p) {
		c, base := s.channel, n.rails[0]
		if s.state != SessionOpen || c == nil || c.held || base.Window.Len() >= n.config.Limits.QueuedFrames {
			continue
		}
		f := base.Link.Acquire(size)
		clear(f.Data)
		h := c.header
		h.epoch += 128
		h.sealed = s.sealed
		h.put(f.Data)
		f.Peer, f.Mode = s.peer.Link, c.mode()
		base.Window.Push(f, rail.Owner{Session: uint32(s.id), Index: -1, Class: rail.Class(ClassBulk)})
		countFrame(&p.frames.sent, &f)
		if isLong(&f) {
			p.frames.sent.Probes++
		}
		p.paths.Base.Sent(now)
		return
	}
}
