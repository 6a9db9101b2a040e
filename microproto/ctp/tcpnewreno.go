package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// TCPNewRenoCongestionAvoidance decides what is in flight and what a duplicate
// acknowledgement means, as TCP NewReno does: slow start and congestion avoidance
// (RFC 5681) by its Controller, limited transmit (RFC 3042), fast retransmit and the
// fast recovery of RFC 6582 with its Impatient timer. Another Controller may take
// the place of its own; loss recovery stays.
type TCPNewRenoCongestionAvoidance struct {
	reno            *Reno
	shared          *Congestion
	ackedTo, sentTo *uint64
	timerKept       *bool
	together        *int
	rto, smoothed   *time.Duration

	// Positions are Retransmit's.
	una        uint64 // position acknowledged when the last acknowledgement came
	recover    uint64 // position that ends an episode of losses, by the name of RFC 6582
	episode    bool   // there has been one: recover means something
	recovering bool   // in fast recovery
	inflation  int    // of the window in recovery and limited transmit
	sent       uint64 // position sent when the first duplicate came
	timedOut   uint64 // position acknowledged at the last time-out
	expired    bool   // there has been one: timedOut means something
	used       int    // most in flight since the window was full
	since      microproto.Instant
}

func newTCPNewReno(o microproto.Options) (microproto.MicroProtocol, error) {
	r, err := NewReno(o)
	return &TCPNewRenoCongestionAvoidance{reno: r}, err
}

// Name implements microproto.MicroProtocol.
func (n *TCPNewRenoCongestionAvoidance) Name() string { return "TCPNewRenoCongestionAvoidance" }

// Attach implements microproto.MicroProtocol.
func (n *TCPNewRenoCongestionAvoidance) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	n.shared = microproto.LookupCell[Congestion](b, CellCongestion)
	n.ackedTo = microproto.LookupCell[uint64](b, cellAckedTo)
	n.sentTo = microproto.LookupCell[uint64](b, cellSentTo)
	n.timerKept = microproto.LookupCell[bool](b, cellTimer)
	n.together = microproto.LookupCell[int](b, cellTogether)
	n.rto = microproto.LookupCell[time.Duration](b, cellRTO)
	n.smoothed = microproto.LookupCell[time.Duration](b, cellSmoothed)
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(x *microproto.Exec, _ struct{}) {
		n.una, n.since = *n.ackedTo, x.Now()
		n.shared.Use(x.Now(), n.reno)
	})
	microproto.Bind(b, AckArrived, microproto.Late, n.acked)
	microproto.Bind(b, AckDuplicated, microproto.Normal, n.duplicated)
	microproto.Bind(b, microproto.SegmentTimeout, microproto.Normal, n.timeout)
	return nil
}

// duplicateThreshold is the number of duplicate acknowledgements that make a loss
// (RFC 5681 §3.2).
const duplicateThreshold = 3

// duplicated: the first two let a new segment go each (RFC 3042), the third begins
// recovery (RFC 6582 §3.2 steps 2 and 3), each further one tells that a segment has
// left the network (step 4). What does not acknowledge more than the last episode's
// end begins none: its duplicates may come from segments that were sent twice.
func (n *TCPNewRenoCongestionAvoidance) duplicated(x *microproto.Exec, count int) {
	c := n.shared
	switch {
	case n.recovering:
		n.inflation += c.Unit
	case n.episode && *n.ackedTo <= n.recover:
		return
	case count < duplicateThreshold:
		if count == 1 || n.sent <= *n.ackedTo {
			n.sent = *n.sentTo
		}
		n.inflation = count * c.Unit
	default:
		if n.sent <= *n.ackedTo {
			n.sent = *n.sentTo
		}
		// What limited transmit sent does not count (RFC 5681 §3.2 step 2).
		c.Controller.Congested(x.Now(), int(n.sent-*n.ackedTo))
		n.recovering, n.episode, n.recover = true, true, *n.sentTo
		n.inflation = duplicateThreshold * c.Unit
		microproto.Raise(x, RetransmitOldest, struct{}{})
	}
	n.announce()
}

// announce tells the window of the controller and the recovery.
func (n *TCPNewRenoCongestionAvoidance) announce() {
	n.shared.Window = max(n.shared.Controller.Window()+n.inflation, n.shared.Unit)
}

func (n *TCPNewRenoCongestionAvoidance) acked(x *microproto.Exec, _ Ack) {
	if *n.ackedTo == n.una {
		return
	}
	acked, flight := int(*n.ackedTo-n.una), int(*n.sentTo-n.una)
	n.una = *n.ackedTo
	switch {
	case !n.recovering:
		n.inflation = 0
		n.grow(x, acked, flight)
	case n.una >= n.recover:
		n.recovering, n.inflation, *n.timerKept = false, 0, false
		n.shared.Controller.Recovered(x.Now(), int(*n.sentTo-n.una))
	default:
		n.partial(x, acked)
	}
	n.announce()
}

// partial: the acknowledgement ends before the episode does, so the segment behind
// it is lost too (RFC 6582 §3.2 step 5). The first one starts the timer afresh,
// later ones do not: many losses are repaired sooner by a time-out (§4, Impatient).
func (n *TCPNewRenoCongestionAvoidance) partial(x *microproto.Exec, acked int) {
	n.inflation -= acked
	if acked >= n.shared.Unit {
		n.inflation += n.shared.Unit
	}
	*n.timerKept = true
	microproto.Raise(x, RetransmitOldest, struct{}{})
}

// grow lets the controller see an acknowledgement, and whether the window was used:
// within a segment, or by half in slow start, where acknowledgements of one flight
// double it.
func (n *TCPNewRenoCongestionAvoidance) grow(x *microproto.Exec, acked, flight int) {
	c := n.shared.Controller
	window := c.Window()
	full := flight+n.shared.Unit > window || window < c.Threshold() && 2*flight > window
	if n.used = max(n.used, flight); full {
		n.used, n.since = 0, x.Now()
	} else if x.Now().Sub(n.since) >= *n.rto {
		c.Underused(x.Now(), n.used)
		n.used, n.since = 0, x.Now()
	}
	c.Acked(Progress{Now: x.Now(), Count: acked, Acks: (*n.together + 1) / 2, InFlight: flight, RTT: *n.smoothed, Full: full})
}

// timeout: recovery ends, and what is in flight will be sent again from its
// beginning, in slow start (RFC 5681 §3.1, RFC 6582 §3.2 step 6).
func (n *TCPNewRenoCongestionAvoidance) timeout(x *microproto.Exec, _ *microproto.Message) {
	flight := int(*n.sentTo - *n.ackedTo)
	if !n.recovering && n.episode && *n.ackedTo < n.recover {
		// Of what was sent before the last time-out no more than the window is out.
		flight = min(flight, n.shared.Window)
	}
	// In recovery the threshold is that of its beginning: what was sent since stays
	// unacknowledged behind the gap, and half of that is more than the path bears.
	again := n.recovering || n.expired && n.timedOut == *n.ackedTo
	n.shared.Controller.TimedOut(x.Now(), flight, again)
	n.expired, n.timedOut = true, *n.ackedTo
	n.recovering, n.episode, n.recover = false, true, *n.sentTo
	n.inflation, *n.timerKept = 0, false
	n.announce()
}
