package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// shaper bounds the rate of a host by a token bucket before its line.
type shaper struct {
	each         float64 // nanoseconds per byte; 0: there is none
	burst, queue time.Duration
	outside      bool // the host's link does not become full
}

func newShaper(s *cluster.Shaper) shaper {
	if s.Rate == 0 {
		return shaper{}
	}
	each := 1e9 / s.Rate
	return shaper{each, time.Duration(float64(s.Burst) * each), time.Duration(float64(s.Queue) * each), s.Outside}
}

// shape passes the frames of a train, of unit bytes each, through the shaper and the line behind it. They enter together
// when the last is ready, which decides what finds room between two trains, and leave one by one: a token bucket
// takes trains apart. Frames that do not fit the shaper's queue are lost.
func (m *machine) shape(f microproto.Frame, to, unit int, ready microproto.Instant) {
	w := &m.e.routes[m.index]
	for at := 0; at < len(f.Data); at += unit {
		bytes := min(unit, len(f.Data)-at)
		leaves, lost := m.line.shape(w, bytes, ready)
		if lost {
			m.gone.Add(1)
			continue
		}
		piece := f.Retain()
		piece.Data, piece.Segment = f.Data[at:at+bytes], 0
		fl := m.flight()
		*fl = flight{frame: piece, from: m.index, to: int32(to), count: 1, unit: int32(bytes), first: leaves, last: leaves}
		m.leave(fl, w, ready)
	}
	f.Release()
}

// shape returns when a frame that comes at an instant has left the line behind the shaper, or that it is lost.
func (l *line) shape(w *route, bytes int, came microproto.Instant) (leaves microproto.Instant, lost bool) {
	s := &w.shaper
	l.shaped = max(l.shaped, came.Add(-s.burst))
	took := time.Duration(float64(bytes+w.around)*s.each + 0.5)
	if l.shaped.Add(took).Sub(came) > s.queue {
		return 0, true
	}
	l.shaped = l.shaped.Add(took)
	// With enough tokens the frame leaves at once, at the speed of the line.
	l.free = max(l.free.Add(w.of(bytes)), came.Add(w.of(bytes)), l.shaped)
	return l.free, false
}
