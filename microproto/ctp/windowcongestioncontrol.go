package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// WindowCongestionControl holds new segments while the congestion window is full:
// one may go when its last byte lies at most a window behind what is acknowledged
// in order (RFC 5681 §3.1). Segments go in the order of their numbers and none is
// skipped; a train is cut where the window ends. How large the window is, the rows behind it say, in the cell
// CellCongestion; what is sent again after a time-out obeys the same limit.
// Acknowledgements alone are not held.
type WindowCongestionControl struct {
	hold                   microproto.HoldBit
	end                    microproto.Attr[uint64]
	segment                *int
	ackedTo, sentTo, limit *uint64
	sentAt                 *microproto.Instant
	rto                    *time.Duration
	shared                 *Congestion

	held fifo[*microproto.Message]
	last uint64 // position behind the newest segment
	cut  cutting
}

// windowRelease looks, after the segments already on their way have gone, whether
// more may.
var windowRelease = microproto.NewEvent[*WindowCongestionControl]("ctp.window.release")

func newWindowCongestionControl(microproto.Options) (microproto.MicroProtocol, error) {
	return &WindowCongestionControl{}, nil
}

// Name implements microproto.MicroProtocol.
func (w *WindowCongestionControl) Name() string { return "WindowCongestionControl" }

// Attach implements microproto.MicroProtocol.
func (w *WindowCongestionControl) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	w.end = microproto.LookupAttr[uint64](b, attrEnd)
	w.segment = microproto.LookupCell[int](b, microproto.CellSegmentBytes)
	w.sentAt = microproto.LookupCell[microproto.Instant](b, cellSentAt)
	w.rto = microproto.LookupCell[time.Duration](b, cellRTO)
	w.ackedTo = microproto.LookupCell[uint64](b, cellAckedTo)
	w.sentTo = microproto.LookupCell[uint64](b, cellSentTo)
	w.limit = microproto.LookupCell[uint64](b, cellLimit)
	w.shared = microproto.DeclareCell(b, CellCongestion, Congestion{})
	w.hold = b.HoldBit("WindowCongestionControl.window")
	microproto.Bind(b, microproto.OpenSession, microproto.Early, w.open)
	// The rows behind it have put their window in by then.
	microproto.Bind(b, microproto.OpenSession, microproto.Last, func(*microproto.Exec, struct{}) { w.measure() })
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Last, w.take)
	microproto.Bind(b, AckArrived, microproto.Last, func(x *microproto.Exec, _ Ack) { w.move(x) })
	microproto.Bind(b, microproto.SegmentTimeout, microproto.Last, func(*microproto.Exec, *microproto.Message) { w.measure() })
	microproto.Bind(b, windowRelease, microproto.Normal, func(x *microproto.Exec, _ *WindowCongestionControl) { w.release(x) })
	return nil
}

// open announces the unit: a full segment with its header. Without a row behind it
// that says otherwise, one may be in flight.
func (w *WindowCongestionControl) open(x *microproto.Exec, _ struct{}) {
	w.shared.Unit = *w.segment + x.HeaderBytes()
	w.last = *w.sentTo
	w.measure()
}

// measure sets the limit. One segment may be in flight whatever the window.
func (w *WindowCongestionControl) measure() {
	*w.limit = *w.ackedTo + uint64(max(w.shared.Window, w.shared.Unit))
}

// take holds a new segment that does not fit, that others stand before, or that
// another micro-protocol holds: the window may be smaller when that lets it go.
func (w *WindowCongestionControl) take(x *microproto.Exec, m *microproto.Message) {
	idle := *w.ackedTo == w.last
	if idle {
		w.restart(x)
	}
	ready := w.last == *w.sentTo && (idle || x.Held(m) == 0)
	w.last = w.end.Get(m)
	if ready && w.last <= *w.limit {
		return
	}
	x.Hold(m, w.hold)
	w.held.push(m)
	if w.fitting(x, m) > 0 {
		microproto.Enqueue(x, windowRelease, w)
	}
}

// restart: nothing is in flight. After an idle time the window says nothing about
// the path any more (RFC 5681 §4.1).
func (w *WindowCongestionControl) restart(x *microproto.Exec) {
	c := w.shared
	idle := x.Now().Sub(*w.sentAt)
	if c.Begun && c.Controller != nil && idle > *w.rto {
		c.Controller.Idled(x.Now(), idle, *w.rto)
		c.Window = c.Controller.Window()
		w.measure()
	}
	c.Begun = true
}

// move follows an acknowledgement: what a time-out left goes first, then new segments.
func (w *WindowCongestionControl) move(x *microproto.Exec) {
	w.measure()
	if *w.ackedTo == w.last {
		return // nothing is in flight, and nothing waits
	}
	microproto.Raise(x, WindowMoved, struct{}{})
	w.release(x)
}

// fitting is how many segments of m the window lets go.
func (w *WindowCongestionControl) fitting(x *microproto.Exec, m *microproto.Message) int {
	end, n := w.end.Get(m), m.Segments()
	switch {
	case end <= *w.limit:
		return n
	case n == 1:
		return 0
	}
	start := end - uint64(n*x.HeaderBytes()+m.Length())
	if start >= *w.limit {
		return 0
	}
	return int((*w.limit - start) / uint64(x.HeaderBytes()+m.Unit()))
}

// release lets go what fits. What another micro-protocol holds waits for it while
// something is in flight: then there will be an acknowledgement to come back at.
func (w *WindowCongestionControl) release(x *microproto.Exec) {
	idle := *w.ackedTo == *w.sentTo
	for ; w.held.n > 0; idle = false {
		m := *w.held.front()
		others := x.Held(m) != w.hold
		k := w.fitting(x, m)
		if k == 0 || others && !idle {
			return
		}
		if k < m.Segments() && !others {
			w.cut = cutting{m: m, k: k}
			microproto.Raise(x, trainCut, &w.cut)
			if w.cut.rest == nil && !idle {
				return // there is no message for the rest; an acknowledgement will come
			}
		}
		if w.cut.rest != nil {
			*w.held.front() = w.cut.rest
		} else {
			w.held.pop()
		}
		w.cut = cutting{}
		x.Release(m, w.hold)
	}
}
