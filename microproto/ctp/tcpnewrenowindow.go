package ctp

import (
	"cmp"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Reno is the Controller of RFC 5681: slow start and congestion avoidance, with appropriate byte
// counting (RFC 3465, L = 2 for each delayed acknowledgement). Embed it to change some methods.
type Reno struct {
	initial           int // units of the initial window, 0: by RFC 5681 §3.1
	unit              int
	window, threshold int
	counted           int  // acknowledged since the window grew last
	cautious          bool // slow start after a time-out: L = 1 (RFC 3465 §2.3)
}

// OptionInitialWindow is the number of segments of the first flight and of a flight after an
// idle time: 0 to 10. 0 stands for RFC 5681 §3.1, two to four depending on their size. RFC 6928
// allows ten.
const OptionInitialWindow = "congestion.initial.segments"

// NewReno returns a Reno with the settings of a composition.
func NewReno(o microproto.Options) (*Reno, error) {
	s := &settings{options: o}
	r := s.reno()
	return r, s.err
}

func (s *settings) reno() *Reno { return &Reno{initial: option(s, OptionInitialWindow, 0, 0, 10)} }

// Open implements Controller.
func (r *Reno) Open(s ControllerStart) {
	r.unit = max(s.Unit, 1)
	r.counted, r.cautious = 0, false
	r.window, r.threshold = r.initialWindow(), math.MaxInt
	if s.Window > 0 {
		r.window, r.threshold = max(s.Window, r.unit), max(s.Threshold, 2*r.unit)
	}
}

// initialWindow returns IW of RFC 5681 §3.1, unless a setting replaces it.
func (r *Reno) initialWindow() int { return cmp.Or(r.initial, initialSegments(r.unit)) * r.unit }

// initialSegments returns the initial window of RFC 5681 §3.1 and RFC 3390 §1, in segments of
// that many bytes.
func initialSegments(bytes int) int {
	switch {
	case bytes <= 1095:
		return 4
	case bytes <= 2190:
		return 3
	}
	return 2
}

// Acked implements Controller. In slow start the window grows by the bytes acknowledged, at most
// two segments for each acknowledgement; afterwards by a segment for each window of data. An
// acknowledgement of many segments ends slow start at the same window as many of one would.
func (r *Reno) Acked(p Progress) {
	if !p.Full {
		return
	}
	count := p.Count
	if r.window < r.threshold {
		most := 2 * r.unit
		if r.cautious {
			most = r.unit
		}
		short := (r.threshold - r.window + r.unit - 1) / r.unit * r.unit
		grown := min(count, most*max(p.Acks, 1), short)
		r.window += grown
		if r.window < r.threshold {
			return
		}
		count -= grown
	}
	r.cautious = false
	r.counted += count
	if r.counted >= r.window {
		r.counted -= r.window
		r.window += r.unit
		r.counted = min(r.counted, r.window)
	}
}

// Congested implements Controller (RFC 5681 §3.2, equation 4).
func (r *Reno) Congested(_ microproto.Instant, inFlight int) {
	r.threshold = max(inFlight/2, 2*r.unit)
	r.window = r.threshold
	r.counted, r.cautious = 0, false
}

// Recovered implements Controller. It avoids a burst (RFC 6582 §3.2 step 5, option 1).
func (r *Reno) Recovered(_ microproto.Instant, inFlight int) {
	r.window = min(r.threshold, max(inFlight, r.unit)+r.unit)
}

// TimedOut implements Controller (RFC 5681 §3.1). The threshold does not change if the same
// segment times out again.
func (r *Reno) TimedOut(_ microproto.Instant, inFlight int, again bool) {
	if !again {
		r.threshold = max(inFlight/2, 2*r.unit)
	}
	r.window = r.unit
	r.counted, r.cautious = 0, true
}

// Idled implements Controller (RFC 5681 §4.1).
func (r *Reno) Idled(microproto.Instant, time.Duration, time.Duration) {
	r.window = min(r.window, r.initialWindow())
	r.counted = 0
}

// Underused implements Controller. The window does not change.
func (r *Reno) Underused(microproto.Instant, int) {}

// Window implements Controller.
func (r *Reno) Window() int { return r.window }

// Threshold implements Controller.
func (r *Reno) Threshold() int { return r.threshold }
