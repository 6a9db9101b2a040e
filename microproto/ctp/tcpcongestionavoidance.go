package ctp

import (
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// TCPCongestionAvoidance is the Controller of the asynchronous inter-cluster Ethernet
// column: CCID 2's slow start and congestion avoidance (RFC 4341 §5), counted in
// packets.
//
// Below the threshold the window grows by one packet for two that were acknowledged,
// counting at most R, the ack ratio, in one acknowledgement; above it by one packet
// for a window of them; not at all where the window was not what held the sender
// back. A loss halves it; a time-out makes it one packet. While the channel is idle or
// its user sends less, it falls as RFC 2861 says, but never below the initial window
// of RFC 3390.
type TCPCongestionAvoidance struct {
	controllerProtocol
	packetController
}

// packetController is the algorithm. It embeds nothing of the composite.
type packetController struct {
	window, threshold int
	initial           int // RFC 3390 §1, in packets
	credit            int // acknowledged packets not yet turned into growth
	inherited         int // threshold that the last composition left, 0: none
	ratio             *int
}

func newTCPCongestionAvoidance(microproto.Options) (microproto.MicroProtocol, error) {
	t := &TCPCongestionAvoidance{}
	t.controllerProtocol = controllerProtocol{name: "TCPCongestionAvoidance", own: &t.packetController}
	return t, nil
}

// Attach implements microproto.MicroProtocol.
func (t *TCPCongestionAvoidance) Attach(b *microproto.Binder) error {
	t.ratio = microproto.LookupCell[int](b, cellAckRatio)
	t.initial = initialPackets(b.MTU())
	return t.controllerProtocol.Attach(b)
}

// initialPackets is the initial window of RFC 3390 §1 in packets of that many bytes.
func initialPackets(bytes int) int {
	switch {
	case bytes <= 1095:
		return 4
	case bytes <= 2190:
		return 3
	}
	return 2
}

// Open implements Controller.
func (c *packetController) Open(s ControllerStart) {
	c.window, c.threshold, c.credit = c.initial, math.MaxInt32, 0
	if c.inherited > 0 {
		c.threshold = c.inherited
	}
	if s.Window > 0 {
		c.window, c.threshold = s.Window, max(s.Threshold, 2)
	}
}

// Acked implements Controller.
func (c *packetController) Acked(p Progress) {
	if !p.Full {
		return
	}
	if c.window < c.threshold {
		c.credit += min(p.Count, *c.ratio)
		c.window += c.credit / 2
		c.credit %= 2
		return
	}
	c.credit += p.Count
	if c.credit >= c.window {
		c.credit -= c.window
		c.window++
	}
}

// Congested implements Controller.
func (c *packetController) Congested(microproto.Instant, int) {
	c.window, c.credit = max(c.window/2, 1), 0
	c.threshold = max(c.window, 2)
}

// Recovered implements Controller: the window was halved when the losses were noticed,
// and nothing is sent again.
func (c *packetController) Recovered(microproto.Instant, int) {}

// TimedOut implements Controller. Time-outs one after the other are of one congestion
// (compare RFC 5681 §3.1: ssthresh is held).
func (c *packetController) TimedOut(_ microproto.Instant, _ int, again bool) {
	if !again {
		c.threshold = max(c.window/2, 2)
	}
	c.window, c.credit = 1, 0
}

// Idled implements Controller: RFC 2861 §3.2, one halving for each time-out.
func (c *packetController) Idled(_ microproto.Instant, idle, rto time.Duration) {
	restart := min(c.initial, c.window)
	c.threshold = max(c.threshold, 3*c.window/4)
	for ; idle > rto && c.window > restart; idle -= max(rto, 1) {
		c.window = max(c.window/2, restart)
	}
	c.credit = 0
}

// Underused implements Controller: RFC 2861 §3.1.
func (c *packetController) Underused(_ microproto.Instant, used int) {
	if used = max(used, c.initial); used < c.window {
		c.threshold = max(c.threshold, 3*c.window/4)
		c.window = (c.window + used) / 2
		c.credit = 0
	}
}

// Window implements Controller: packets.
func (c *packetController) Window() int { return c.window }

// Threshold implements Controller: packets.
func (c *packetController) Threshold() int { return c.threshold }

// ExportState implements microproto.StateExporter: slow start may go where the window was. The window
// itself is not handed on; what was in flight says nothing to the next composition.
func (t *TCPCongestionAvoidance) ExportState() microproto.State {
	return packetThreshold(max(t.threshold, 3*t.window/4))
}

type packetThreshold int

// ImportState implements microproto.StateExporter.
func (t *TCPCongestionAvoidance) ImportState(s microproto.State) error {
	threshold, ok := s.(packetThreshold)
	if !ok {
		return fmt.Errorf("ctp: TCPCongestionAvoidance cannot import %T", s)
	}
	t.inherited = max(int(threshold), 2)
	return nil
}
