package path

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Metrics are what open sessions measured on the way to a peer. Loss and rate are
// exponentially weighted averages; a new sample counts a quarter.
type Metrics struct {
	RTT  time.Duration // from segments and their acknowledgements, smallest of the last second; 0: none
	Loss float64       // share of segments that were retransmitted
	Rate float64       // bytes of messages per second, both ways
}

// rttWindow is how long a round trip counts. A session's own segments may wait in queues, and
// within a second a queue is empty once. A longer window would be late to notice a longer path
// (compare RFC 8985, min_RTT).
const rttWindow = time.Second

// MinRTT is the smallest round trip of the last second: a windowed minimum of two halves.
type MinRTT struct {
	began             microproto.Instant // of the current half
	current, previous time.Duration      // 0: no sample
}

// Add takes a sample and returns the minimum.
func (l *MinRTT) Add(now microproto.Instant, rtt time.Duration) time.Duration {
	age := now.Sub(l.began)
	if age >= rttWindow/2 {
		l.previous = l.current
		if age >= rttWindow {
			l.previous = 0
		}
		l.began, l.current = now, 0
	}
	if l.current == 0 || rtt < l.current {
		l.current = rtt
	}
	if l.previous != 0 {
		return min(l.current, l.previous)
	}
	return l.current
}
