package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// TCPCongestionAvoidance is the Controller of the asynchronous column between clusters over
// Ethernet: slow start and congestion avoidance of CCID 2 (RFC 4341 §5), in packets.
//
// Below the threshold the window grows by one packet for two acknowledged ones, of which at most
// R, the ack ratio, count in one acknowledgement. Above it, the window grows by one packet for
// each window of them. It does not grow unless it limited the sender. A loss halves it; a
// time-out sets it to one packet. While the channel is idle or its user sends less, it decreases
// by RFC 2861, but not below the initial window of RFC 3390.
type TCPCongestionAvoidance struct {
	controllerProtocol
	packetController
}

// packetController is the algorithm, independent of the composite.
type packetController struct {
	window, threshold int
	initial           int // RFC 3390 §1, in packets
	credit            int // acknowledged packets that have not increased the window yet
	importedThreshold int // of the composition before, 0: none
	ratio             *int
}

func newTCPCongestionAvoidance(s *settings) microproto.MicroProtocol {
	t := &TCPCongestionAvoidance{}
	t.controllerProtocol = controllerProtocol{named: s.named, own: &t.packetController}
	return t
}

// Attach implements microproto.MicroProtocol.
func (t *TCPCongestionAvoidance) Attach(b *microproto.Binder) error {
	lookupCell(b, cellAckRatio, &t.ratio)
	t.initial = initialSegments(b.MTU())
	return t.controllerProtocol.Attach(b)
}

// Open implements Controller.
func (c *packetController) Open(s ControllerStart) {
	c.window, c.threshold = c.initial, math.MaxInt32
	c.credit = 0
	if c.importedThreshold > 0 {
		c.threshold = c.importedThreshold
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

// Recovered implements Controller. The window was halved at the detection, and nothing is
// retransmitted.
func (c *packetController) Recovered(microproto.Instant, int) {}

// TimedOut implements Controller. Consecutive time-outs count as one congestion (compare RFC 5681
// §3.1: ssthresh is held).
func (c *packetController) TimedOut(_ microproto.Instant, _ int, again bool) {
	if !again {
		c.threshold = max(c.window/2, 2)
	}
	c.window, c.credit = 1, 0
}

// Idled implements Controller: it halves the window for each time-out (RFC 2861 §3.2).
func (c *packetController) Idled(_ microproto.Instant, idle, rto time.Duration) {
	restart := min(c.initial, c.window)
	c.threshold = max(c.threshold, 3*c.window/4)
	for ; idle > rto && c.window > restart; idle -= max(rto, 1) {
		c.window = max(c.window/2, restart)
	}
	c.credit = 0
}

// Underused implements Controller (RFC 2861 §3.1).
func (c *packetController) Underused(_ microproto.Instant, used int) {
	if used = max(used, c.initial); used < c.window {
		c.threshold = max(c.threshold, 3*c.window/4)
		c.window = (c.window + used) / 2
		c.credit = 0
	}
}

// Window implements Controller.
func (c *packetController) Window() int { return c.window }

// Threshold implements Controller.
func (c *packetController) Threshold() int { return c.threshold }

// ExportState implements microproto.StateExporter: it returns the threshold up to which slow
// start may go. The window is not exported, because the next composition starts with nothing in
// flight.
func (t *TCPCongestionAvoidance) ExportState() microproto.State {
	return packetThreshold(max(t.threshold, 3*t.window/4))
}

type packetThreshold int

// ImportState implements microproto.StateExporter.
func (t *TCPCongestionAvoidance) ImportState(s microproto.State) error {
	threshold, err := imported[packetThreshold](t.named, s)
	if err == nil {
		t.importedThreshold = max(int(threshold), 2)
	}
	return err
}
