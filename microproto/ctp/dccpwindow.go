package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// DCCPWindowCongestionControl bounds the packets in flight by a congestion window (RFC 4341 §5). A
// segment that finds the window full waits in memory of its own, and a newer value of the same
// segment replaces it (Asynchronous): an asynchronous Send never waits, and at most one copy of
// each slot waits. While a segment that has passed is held by another micro-protocol, the others
// wait here. While the link is full, two packets in flight are enough: a path that loses
// nothing lets the window grow far beyond what the link takes, and values would become old behind it.
//
// A Controller computes the window. This micro-protocol reports acknowledgements to it, losses
// (those of packets sent before the last reduction count as one), time-outs, and times when the
// window was not used (RFC 2861).
type DCCPWindowCongestionControl struct {
	named
	hold      microproto.HoldBit
	shared    *Congestion
	announced *int // packets
	inFlight  *int
	rto       *time.Duration
	limit     int
	linkBusy  *bool
	waiting   fifo.Queue[*microproto.Message]
	passed    messageRef // the last segment that did not wait here, or was released
	releasing bool
	replaced  *uint64 // waiting segments replaced by newer values

	// What was sent:
	first    uint32 // all packets before it have arrived or are lost
	recover  uint32 // packets before it were sent before the last reduction
	reduced  bool   // some of those are in flight
	filled   uint32 // number after the last packet that filled the window
	full     bool   // that packet is in flight
	used     int    // most in flight since checked
	checked  microproto.Instant
	lastSent microproto.Instant
}

var dccpWindowRelease = microproto.NewEvent[*DCCPWindowCongestionControl]("ctp.dccp.window.release")

func newDCCPWindow(s *settings) microproto.MicroProtocol {
	return &DCCPWindowCongestionControl{named: s.named}
}

// Attach implements microproto.MicroProtocol.
func (w *DCCPWindowCongestionControl) Attach(b *microproto.Binder) error {
	lookupCell(b, cellPackets, &w.announced)
	lookupCell(b, cellInFlight, &w.inFlight)
	lookupCell(b, cellPacketRTO, &w.rto)
	declareCell(b, CellCongestion, &w.shared, Congestion{Unit: 1})
	declareCell(b, microproto.CellReplaced, &w.replaced, 0)
	declareCell(b, microproto.CellLinkBusy, &w.linkBusy, false)
	w.limit = max(1, b.Limits().Messages/2)
	w.hold = b.HoldBit("DCCPWindowCongestionControl.window")
	b.Flow(func(f *microproto.FlowState) {
		f.Window, f.InFlight, f.Waiting = *w.announced, *w.inFlight, w.waiting.Len()
	})
	// The rows below have set their controller by then.
	microproto.Bind(b, microproto.OpenSession, microproto.Last, func(x *microproto.Exec, _ struct{}) { w.announce(x) })
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Last, w.admit)
	bind(b, PacketSent, w.sent)
	bind(b, PacketsAcked, w.acked)
	bind(b, PacketsTimedOut, w.timedOut)
	bind(b, microproto.SegmentReplaced, func(x *microproto.Exec, _ *microproto.Message) {
		*w.replaced++
		w.releaseNext(x)
	})
	bind(b, dccpWindowRelease, func(x *microproto.Exec, _ *DCCPWindowCongestionControl) {
		w.releasing = false
		w.releaseNext(x)
	})
	return nil
}

// announce sets the shared window and releases the segments that fit.
func (w *DCCPWindowCongestionControl) announce(x *microproto.Exec) {
	if c := w.shared; c.Controller != nil {
		c.Window = c.Controller.Window()
	}
	*w.announced = min(max(w.shared.Window, 1), maxFlight/2)
	w.releaseNext(x)
}

func (w *DCCPWindowCongestionControl) admit(x *microproto.Exec, m *microproto.Message) {
	if w.waiting.Len() == 0 && !w.releasing {
		w.restart(x)
		if w.open(x) {
			w.passed = refTo(m)
			return
		}
	}
	if err := x.Own(m); err != nil {
		x.Drop(m, "no memory to wait in")
		return
	}
	if w.waiting.Len() >= w.limit {
		x.Drop(m, "window full")
		return
	}
	w.waiting.Push(m)
	x.Hold(m, w.hold)
	if r := x.RecordFlow(trace.WindowFull); r != nil {
		r.Count, r.Bytes = 1, trace.Clamp(m.Length())
	}
	w.releaseNext(x)
}

// open reports whether another packet may be sent. With two packets in flight an acknowledgement is due, after
// which this is asked again.
func (w *DCCPWindowCongestionControl) open(x *microproto.Exec) bool {
	return *w.inFlight < *w.announced && (!*w.linkBusy || *w.inFlight < 2) && !w.passed.held(x)
}

// restart reports an idle time to the controller: nothing is in flight, and nothing was sent for
// longer than the time-out.
func (w *DCCPWindowCongestionControl) restart(x *microproto.Exec) {
	if *w.inFlight > 0 || !w.shared.Begun {
		return
	}
	if idle := x.Now().Sub(w.lastSent); idle > *w.rto && w.shared.Controller != nil {
		w.shared.Controller.Idled(x.Now(), idle, *w.rto)
		w.checked, w.used = x.Now(), 0
		w.announce(x)
		if r := x.RecordFlow(trace.IdleRestart); r != nil {
			r.Number = uint64(idle)
		}
	}
}

// sent measures how much of the window is used.
func (w *DCCPWindowCongestionControl) sent(x *microproto.Exec, number uint32) {
	now := x.Now()
	if w.waiting.Len() > 0 && !w.releasing {
		w.continueLater(x) // another micro-protocol held the segment
	}
	if !w.shared.Begun {
		w.shared.Begun, w.checked = true, now
		w.first = number
	}
	w.lastSent = now
	w.used = max(w.used, *w.inFlight)
	if *w.inFlight >= *w.announced {
		w.filled, w.full = number+1, true
		w.checked, w.used = now, 0
		return
	}
	if now.Sub(w.checked) > *w.rto {
		used := w.used
		w.checked, w.used = now, *w.inFlight
		if w.shared.Controller != nil && !w.reduced {
			w.shared.Controller.Underused(now, used)
			w.announce(x)
		}
	}
}

func (w *DCCPWindowCongestionControl) acked(x *microproto.Exec, r PacketReport) {
	c := w.shared.Controller
	if c == nil {
		w.releaseNext(x)
		return
	}
	full := w.full && before(w.first, w.filled)
	w.first, w.full = r.First, full
	if r.Lost > 0 && (!w.reduced || !before(r.LastLost, w.recover)) {
		w.recover, w.reduced = r.Next, true
		c.Congested(x.Now(), r.InFlight)
	}
	switch {
	case w.reduced && !before(r.First, w.recover):
		w.reduced = false
		c.Recovered(x.Now(), *w.inFlight)
	case !w.reduced && r.Acked > 0:
		c.Acked(Progress{Now: x.Now(), Count: r.Acked, InFlight: r.InFlight, RTT: r.RTT, Full: full})
	}
	w.announce(x)
}

func (w *DCCPWindowCongestionControl) timedOut(x *microproto.Exec, r PacketReport) {
	w.first = r.First
	w.reduced, w.full = false, false
	if c := w.shared.Controller; c != nil {
		c.TimedOut(x.Now(), r.InFlight, r.Again)
	}
	w.announce(x)
}

// releaseNext releases the oldest waiting segment if there is room, and is called again when that
// was transmitted.
func (w *DCCPWindowCongestionControl) releaseNext(x *microproto.Exec) {
	if w.releasing || w.waiting.Len() == 0 || !w.open(x) {
		return
	}
	m := *w.waiting.Front()
	w.waiting.Drop()
	w.passed = refTo(m)
	x.Release(m, w.hold)
	w.continueLater(x)
}

// continueLater calls releaseNext after what is enqueued.
func (w *DCCPWindowCongestionControl) continueLater(x *microproto.Exec) {
	w.releasing = true
	microproto.Enqueue(x, dccpWindowRelease, w)
}
