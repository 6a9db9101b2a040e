package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// WindowCongestionControl holds new segments while the congestion window is full: a segment may
// be sent if its last byte is within a window of the bytes acknowledged in order (RFC 5681
// §3.1). Segments are sent in the order of their numbers; a train is split where the window
// ends. The rows below set the window in the cell CellCongestion. Retransmissions after a
// time-out obey the same limit. Acknowledgements without payload are not held.
type WindowCongestionControl struct {
	named
	hold                   microproto.HoldBit
	end                    microproto.Attr[uint64]
	segment                *int
	ackedTo, sentTo, limit *uint64
	left                   *uint64
	sentAt                 *microproto.Instant
	rto                    *time.Duration
	shared                 *Congestion

	held  fifo.Queue[*microproto.Message]
	last  uint64 // position after the newest segment
	split splitRequest
}

// windowRelease releases segments after those already released were transmitted.
var windowRelease = microproto.NewEvent[*WindowCongestionControl]("ctp.window.release")

func newWindowCongestionControl(s *settings) microproto.MicroProtocol {
	return &WindowCongestionControl{named: s.named}
}

// Attach implements microproto.MicroProtocol.
func (w *WindowCongestionControl) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrEnd, &w.end)
	lookupCell(b, microproto.CellSegmentBytes, &w.segment)
	lookupCell(b, cellSentAt, &w.sentAt)
	lookupCell(b, cellRTO, &w.rto)
	lookupCell(b, cellAckedTo, &w.ackedTo)
	lookupCell(b, cellSentTo, &w.sentTo)
	lookupCell(b, cellLimit, &w.limit)
	lookupCell(b, cellLeft, &w.left)
	declareCell(b, CellCongestion, &w.shared, Congestion{})
	w.hold = b.HoldBit("WindowCongestionControl.window")
	b.Flow(func(f *microproto.FlowState) {
		f.Window, f.InFlight = w.shared.Window, int(*w.sentTo-*w.ackedTo-*w.left)
	})
	microproto.Bind(b, microproto.OpenSession, microproto.Early, w.open)
	// The rows below have set their window by then.
	microproto.Bind(b, microproto.OpenSession, microproto.Last, func(*microproto.Exec, struct{}) { w.updateLimit() })
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Last, w.admit)
	microproto.Bind(b, AckArrived, microproto.Last, func(x *microproto.Exec, _ Ack) { w.acked(x) })
	microproto.Bind(b, microproto.SegmentTimeout, microproto.Last,
		func(*microproto.Exec, *microproto.Message) { w.updateLimit() })
	microproto.Bind(b, LossesDetected, microproto.Last, func(*microproto.Exec, bool) { w.updateLimit() })
	microproto.Bind(b, LossesRefuted, microproto.Last, func(*microproto.Exec, struct{}) { w.updateLimit() })
	// After a time-out Retransmit has sent the oldest segment again; then it sends again what the window allows.
	microproto.Bind(b, WindowMoved, microproto.Early, func(*microproto.Exec, struct{}) { w.updateLimit() })
	microproto.Bind(b, WindowMoved, microproto.Last, func(*microproto.Exec, struct{}) { w.updateLimit() })
	bind(b, windowRelease, func(x *microproto.Exec, _ *WindowCongestionControl) { w.release(x) })
	return nil
}

// open sets the unit: a full segment with its header. Without a row below, the window is one
// segment.
func (w *WindowCongestionControl) open(x *microproto.Exec, _ struct{}) {
	w.shared.Unit = *w.segment + x.HeaderBytes()
	w.last = *w.sentTo
	w.updateLimit()
}

// updateLimit computes the limit. One segment may be in flight whatever the window. What has left the
// network makes room for as much (RFC 6675 §4).
func (w *WindowCongestionControl) updateLimit() {
	*w.limit = *w.ackedTo + *w.left + uint64(max(w.shared.Window, w.shared.Unit))
}

// admit holds a new segment that does not fit, that has others before it, or that another
// micro-protocol holds: the window may be smaller when that one releases it.
func (w *WindowCongestionControl) admit(x *microproto.Exec, m *microproto.Message) {
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
	if r := x.RecordFlow(trace.WindowFull); r != nil {
		r.Count, r.Bytes = uint16(m.Segments()), trace.Clamp(m.Length())
	}
	w.held.Push(m)
	if w.fitting(x, m) > 0 {
		microproto.Enqueue(x, windowRelease, w)
	}
}

// restart reports an idle time to the controller when nothing is in flight: the window then says
// nothing about the path any more (RFC 5681 §4.1).
func (w *WindowCongestionControl) restart(x *microproto.Exec) {
	c := w.shared
	idle := x.Now().Sub(*w.sentAt)
	if c.Begun && c.Controller != nil && idle > *w.rto {
		c.Controller.Idled(x.Now(), idle, *w.rto)
		c.Window = c.Controller.Window()
		w.updateLimit()
		if r := x.RecordFlow(trace.IdleRestart); r != nil {
			r.Number = uint64(idle)
		}
	}
	c.Begun = true
}

// acked updates the limit. Retransmissions after a time-out are sent first, then new segments.
func (w *WindowCongestionControl) acked(x *microproto.Exec) {
	w.updateLimit()
	if *w.ackedTo == w.last {
		return // nothing is in flight and nothing waits
	}
	microproto.Raise(x, WindowMoved, struct{}{})
	w.release(x)
}

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

// release releases the segments that fit. A segment that another micro-protocol holds has to
// wait while something is in flight, whose acknowledgement calls release again.
func (w *WindowCongestionControl) release(x *microproto.Exec) {
	idle := *w.ackedTo == *w.sentTo
	for ; w.held.Len() > 0; idle = false {
		m := *w.held.Front()
		others := x.Held(m) != w.hold
		k := w.fitting(x, m)
		if k == 0 || others && !idle {
			return
		}
		if k < m.Segments() && !others {
			w.split = splitRequest{m: m, k: k}
			microproto.Raise(x, trainSplit, &w.split)
			if w.split.rest == nil && !idle {
				return // the pool has no message for the rest; an acknowledgement will arrive
			}
		}
		if w.split.rest != nil {
			*w.held.Front() = w.split.rest
		} else {
			w.held.Drop()
		}
		w.split = splitRequest{}
		x.Release(m, w.hold)
	}
}
