package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// TCPNewRenoCongestionAvoidance is TCP NewReno: slow start and congestion avoidance (RFC 5681) by
// its Controller, limited transmit (RFC 3042), fast retransmit, and fast recovery with the
// Impatient timer (RFC 6582). Another Controller may replace its own; loss recovery does not
// change.
type TCPNewRenoCongestionAvoidance struct {
	reno            *Reno
	shared          *Congestion
	ackedTo, sentTo *uint64
	timerKept       *bool
	ackedTrain      *int
	rto, smoothed   *time.Duration

	// Positions are Retransmit's.
	una        uint64 // position acknowledged by the last acknowledgement
	recover    uint64 // position at the end of the last recovery (RFC 6582)
	episode    bool   // recover is set
	recovering bool   // in fast recovery
	inflation  int    // of the window in recovery and limited transmit
	sent       uint64 // position sent at the first duplicate
	timedOut   uint64 // position acknowledged at the last time-out
	expired    bool   // timedOut is set
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
	n.timerKept = microproto.LookupCell[bool](b, cellKeepTimer)
	n.ackedTrain = microproto.LookupCell[int](b, cellAckedTrain)
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

// duplicated processes a duplicate acknowledgement. The first two admit a new segment each (RFC
// 3042), the third starts recovery (RFC 6582 §3.2 steps 2 and 3), and each further one shows
// that a segment has left the network (step 4). Duplicates below the end of the last recovery
// start none: they may be due to segments that were sent twice.
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
		// Segments of limited transmit do not count (RFC 5681 §3.2 step 2).
		c.Controller.Congested(x.Now(), int(n.sent-*n.ackedTo))
		n.recovering, n.episode = true, true
		n.recover = *n.sentTo
		n.inflation = duplicateThreshold * c.Unit
		microproto.Raise(x, RetransmitOldest, struct{}{})
	}
	n.announce()
}

// announce sets the shared window: that of the controller and the inflation.
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
		n.recovering, *n.timerKept = false, false
		n.inflation = 0
		n.shared.Controller.Recovered(x.Now(), int(*n.sentTo-n.una))
	default:
		n.partial(x, acked)
	}
	n.announce()
}

// partial processes a partial acknowledgement: it ends before the recovery, so the next segment
// is lost too (RFC 6582 §3.2 step 5). The first restarts the timer, later ones do not: a
// time-out repairs many losses sooner (§4, Impatient).
func (n *TCPNewRenoCongestionAvoidance) partial(x *microproto.Exec, acked int) {
	n.inflation -= acked
	if acked >= n.shared.Unit {
		n.inflation += n.shared.Unit
	}
	*n.timerKept = true
	microproto.Raise(x, RetransmitOldest, struct{}{})
}

// grow reports an acknowledgement to the controller, and whether the window was full: used up to
// a segment, or by half in slow start, where the acknowledgements of one flight double it.
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
	c.Acked(Progress{
		Now: x.Now(), Count: acked, Acks: (*n.ackedTrain + 1) / 2, InFlight: flight, RTT: *n.smoothed, Full: full,
	})
}

// timeout ends a recovery. The segments in flight will be sent again from the first, in slow
// start (RFC 5681 §3.1, RFC 6582 §3.2 step 6).
func (n *TCPNewRenoCongestionAvoidance) timeout(x *microproto.Exec, _ *microproto.Message) {
	flight := int(*n.sentTo - *n.ackedTo)
	if !n.recovering && n.episode && *n.ackedTo < n.recover {
		// Of the segments sent before the last time-out, at most a window is in flight.
		flight = min(flight, n.shared.Window)
	}
	// In recovery the threshold stays that of its start: segments sent since then are not
	// acknowledged because of the gap, and half of them is more than the path can carry.
	again := n.recovering || n.expired && n.timedOut == *n.ackedTo
	n.shared.Controller.TimedOut(x.Now(), flight, again)
	n.expired, n.timedOut = true, *n.ackedTo
	n.recovering, n.episode = false, true
	n.recover = *n.sentTo
	n.inflation, *n.timerKept = 0, false
	n.announce()
}
