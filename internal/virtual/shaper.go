package virtual

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/microproto"
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

// shape takes a flight, whose frames are ready evenly between its first and its last, through
// the shaper and the line behind it, frame by frame. What does not fit the shaper's queue is
// lost; it returns how many frames are.
func (l *line) shape(f *flight, w *way) (lost int) {
	s, all := &w.shaper, int(f.count)
	gap := time.Duration(0)
	if all > 1 {
		gap = f.last.Sub(f.first) / time.Duration(all-1)
	}
	begins, leaves := microproto.Never, microproto.Instant(0)
	for i := range all {
		came, bytes := f.first.Add(time.Duration(i)*gap), int(f.unit)
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
