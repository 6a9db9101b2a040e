package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// shaper bounds what a host sends: a token bucket in front of its line.
type shaper struct {
	each         float64 // nanoseconds per byte; 0: there is none
	burst, queue time.Duration
}

func newShaper(s *cluster.Shaper) shaper {
	if s.Rate == 0 {
		return shaper{}
	}
	each := 1e9 / s.Rate
	return shaper{each, time.Duration(float64(s.Burst) * each), time.Duration(float64(s.Queue) * each)}
}

// shape takes a flight through the shaper and the line behind it, frame by frame. Frames that
// leave as one come there as one, when the last is ready: what finds room between two flights
// depends on it. What does not fit the shaper's queue is lost; it returns how many frames are.
func (l *line) shape(f *flight, w *route) (lost int) {
	s, all, came := &w.shaper, int(f.count), f.last
	begins, leaves := microproto.Never, microproto.Instant(0)
	for i := range all {
		bytes := int(f.unit)
		if i == all-1 {
			bytes = len(f.frame.Data) - i*bytes
		}
		l.shaped = max(l.shaped, came.Add(-s.burst))
		took := time.Duration(float64(bytes+w.around)*s.each + 0.5)
		if l.shaped.Add(took).Sub(came) > s.queue {
			f.lost |= 1 << i
			lost++
			continue
		}
		l.shaped = l.shaped.Add(took)
		// With tokens enough it goes at once, as fast as the line is.
		l.free = max(l.free.Add(w.of(bytes)), came.Add(w.of(bytes)), l.shaped)
		begins, leaves = min(begins, l.free), l.free
	}
	if lost < all {
		f.first, f.last = begins, leaves
	}
	return lost
}
