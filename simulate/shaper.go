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

// shape passes a flight through the shaper and the line behind it, frame by frame. The frames of a
// train enter together when the last is ready, which decides what finds room between two trains.
// Frames that do not fit the shaper's queue are lost; shape returns their number.
func (l *line) shape(f *flight, w *route) (lost int) {
	s, all := &w.shaper, int(f.count)
	came := f.last
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
		// With enough tokens the frame leaves at once, at the speed of the line.
		l.free = max(l.free.Add(w.of(bytes)), came.Add(w.of(bytes)), l.shaped)
		begins, leaves = min(begins, l.free), l.free
	}
	if lost < all {
		f.first, f.last = begins, leaves
	}
	return lost
}
