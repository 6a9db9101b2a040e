package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// TCPNewRenoCongestionAvoidance is TCP NewReno: slow start and congestion avoidance (RFC 5681) by
// its Controller, limited transmit (RFC 3042), fast retransmit, and fast recovery with the
// Impatient timer (RFC 6582). Another Controller may replace its own; loss recovery does not
// change. With OptionSelective, Retransmit finds and repairs the losses, and this row only sets the
// window.
type TCPNewRenoCongestionAvoidance struct {
	named
	reno            *Reno
	shared          *Congestion
	ackedTo, sentTo *uint64
	timerKept       *bool
	selective       *bool
	left            *uint64
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
	before     ControllerStart // the window at the start of a selective recovery, or at a time-out
	from       int             // bytes in the network at the last reduction, at most the window
	outside    uint64          // position up to which bytes had left the network then
}

func newTCPNewReno(s *settings) microproto.MicroProtocol {
	return &TCPNewRenoCongestionAvoidance{named: s.named, reno: s.reno()}
}

// Attach implements microproto.MicroProtocol.
func (n *TCPNewRenoCongestionAvoidance) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupCell(b, CellCongestion, &n.shared)
	lookupCell(b, cellAckedTo, &n.ackedTo)
	lookupCell(b, cellSentTo, &n.sentTo)
	lookupCell(b, cellKeepTimer, &n.timerKept)
	lookupCell(b, cellSelective, &n.selective)
	lookupCell(b, cellLeft, &n.left)
	lookupCell(b, cellAckedTrain, &n.ackedTrain)
	lookupCell(b, cellRTO, &n.rto)
	lookupCell(b, cellSmoothed, &n.smoothed)
	bind(b, microproto.OpenSession, func(x *microproto.Exec, _ struct{}) {
		n.una, n.since = *n.ackedTo, x.Now()
		n.shared.Use(x.Now(), n.reno)
	})
	microproto.Bind(b, AckArrived, microproto.Late, n.acked)
	bind(b, AckDuplicated, n.duplicated)
	bind(b, microproto.SegmentTimeout, n.timeout)
	bind(b, TailLost, n.tailLost)
	bind(b, LossesDetected, n.lossesDetected)
	bind(b, LossesRefuted, n.lossesRefuted)
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
	if *n.selective {
		return
	}
	if !n.recovering && n.episode && *n.ackedTo <= n.recover {
		return
	}
	if !n.recovering && (count == 1 || n.sent <= *n.ackedTo) {
		n.sent = *n.sentTo
	}
	switch {
	case n.recovering:
		n.inflation += c.Unit
	case count < duplicateThreshold:
		n.inflation = count * c.Unit
	default:
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
	n.shared.Window = max(n.shared.Controller.Window()+n.inflation, n.proportion(), n.shared.Unit)
}

// proportion returns the window during a selective recovery, otherwise 0. The window falls from the bytes in the network to
// the window of the controller, in proportion to the bytes that leave the network (RFC 6937). So the sender does not pause.
func (n *TCPNewRenoCongestionAvoidance) proportion() int {
	if !n.recovering || !*n.selective || n.from == 0 {
		return 0
	}
	left := float64(max(0, int(*n.ackedTo+*n.left-n.outside))) // sending again takes bytes back
	return n.from - int(float64(n.from-n.shared.Controller.Window())*left/float64(n.from))
}

func (n *TCPNewRenoCongestionAvoidance) acked(x *microproto.Exec, _ Ack) {
	if *n.ackedTo == n.una {
		if n.recovering && *n.selective {
			n.announce()
		}
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
		if inFlight := int(*n.sentTo - n.una); *n.selective {
			n.shared.Controller.Recovered(x.Now(), max(inFlight, n.shared.Controller.Threshold()))
		} else {
			n.shared.Controller.Recovered(x.Now(), inFlight)
		}
	case *n.selective:
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

// lossesDetected halves the window, as tailLost does. Half of the bytes in flight (RFC 5681) would be too few at the
// end of a message, when the window is not full.
func (n *TCPNewRenoCongestionAvoidance) lossesDetected(x *microproto.Exec, reduce bool) {
	if !reduce {
		return
	}
	c := n.shared
	if !n.recovering {
		n.keepWindow()
	}
	c.Controller.Congested(x.Now(), c.Controller.Window())
	n.recovering, n.episode = true, true
	n.recover = *n.sentTo
	n.outside = *n.ackedTo + *n.left
	n.from = min(c.Window, int(*n.sentTo-n.outside))
	n.announce()
}

// keepWindow keeps the window before a reduction.
func (n *TCPNewRenoCongestionAvoidance) keepWindow() {
	c := n.shared
	n.before = ControllerStart{Unit: c.Unit, Window: c.Controller.Window(), Threshold: c.Controller.Threshold()}
}

// lossesRefuted undoes the reduction of a recovery, or of a time-out after which nothing was acknowledged (compare
// RFC 4015).
func (n *TCPNewRenoCongestionAvoidance) lossesRefuted(x *microproto.Exec, _ struct{}) {
	if n.recovering || n.waiting() {
		n.before.Now = x.Now()
		n.shared.Controller.Open(n.before)
		n.recovering, n.episode = false, false
		n.expired = false
		n.announce()
	}
}

// waiting reports whether nothing was acknowledged since a time-out.
func (n *TCPNewRenoCongestionAvoidance) waiting() bool { return n.expired && n.timedOut == *n.ackedTo }

// tailLost reduces the window as at the end of a fast recovery, once for each window (RFC 8985
// §7.4.2). What is in flight then is the rest of a message and says little, so the window is
// halved.
func (n *TCPNewRenoCongestionAvoidance) tailLost(x *microproto.Exec, _ struct{}) {
	if n.recovering || n.episode && *n.ackedTo < n.recover {
		return
	}
	n.shared.Controller.Congested(x.Now(), n.shared.Controller.Window())
	n.episode, n.recover = true, *n.sentTo
	n.announce()
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
	if !n.waiting() {
		n.keepWindow()
	}
	again := n.recovering || n.waiting()
	n.shared.Controller.TimedOut(x.Now(), flight, again)
	n.expired, n.timedOut = true, *n.ackedTo
	n.recovering, n.episode = false, true
	n.recover = *n.sentTo
	n.inflation, *n.timerKept = 0, false
	n.announce()
}
