package main

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Vegas is the congestion control of Brakmo and Peterson (TCP Vegas, IEEE JSAC 1995), which uses
// delay in addition to loss. With a window of cwnd and a round trip rtt, of which the smallest ever
// was base, cwnd·(1 − base/rtt) segments are in queues. Vegas keeps that between alpha and beta
// segments, so queues stay short; a controller that waits for losses fills them.
//
// It works in both columns between clusters over Ethernet: amounts are in the unit of the column,
// bytes or packets.
type Vegas struct {
	unit              int
	window, threshold int
	base              time.Duration // shortest smoothed round trip
	next              microproto.Instant
	slow              bool // slow start doubles the window in every other round trip only
}

// Bounds of the segments in queues; gamma ends slow start.
const (
	alpha = 2
	beta  = 4
	gamma = 1
)

// NewVegas returns a Vegas, for ctp.ControllerRow.
func NewVegas(microproto.Options) (ctp.Controller, error) { return &Vegas{}, nil }

// Open implements ctp.Controller.
func (v *Vegas) Open(s ctp.ControllerStart) {
	*v = Vegas{unit: s.Unit, window: 2 * s.Unit, threshold: math.MaxInt32}
	if s.Window > 0 {
		v.window, v.threshold = max(s.Window, v.unit), max(s.Threshold, 2*v.unit)
	}
}

// queued returns the number of segments in queues.
func (v *Vegas) queued(rtt time.Duration) int {
	return int(int64(v.window) * int64(rtt-v.base) / int64(rtt) / int64(v.unit))
}

// Acked implements ctp.Controller: it decides once in each round trip.
func (v *Vegas) Acked(p ctp.Progress) {
	if p.RTT <= 0 {
		return
	}
	if v.base == 0 || p.RTT < v.base {
		v.base = p.RTT
	}
	if p.Now < v.next {
		return
	}
	v.next = p.Now.Add(p.RTT)
	switch queued := v.queued(p.RTT); {
	case v.window < v.threshold && queued > gamma:
		v.window = max(v.window*7/8, 2*v.unit)
		v.threshold = v.window
	case v.window < v.threshold:
		if v.slow = !v.slow; v.slow && p.Full {
			v.window *= 2
		}
	case queued > beta:
		v.window = max(v.window-v.unit, 2*v.unit)
	case queued < alpha && p.Full:
		v.window += v.unit
	}
}

// Congested implements ctp.Controller.
func (v *Vegas) Congested(microproto.Instant, int) {
	v.window = max(v.window*3/4, 2*v.unit)
	v.threshold = v.window
}

// Recovered implements ctp.Controller.
func (v *Vegas) Recovered(microproto.Instant, int) {}

// TimedOut implements ctp.Controller.
func (v *Vegas) TimedOut(_ microproto.Instant, _ int, again bool) {
	if !again {
		v.threshold = max(v.window/2, 2*v.unit)
	}
	v.window = v.unit
}

// Idled implements ctp.Controller: the path may have changed.
func (v *Vegas) Idled(microproto.Instant, time.Duration, time.Duration) {
	v.window, v.base = min(v.window, 2*v.unit), 0
}

// Underused implements ctp.Controller.
func (v *Vegas) Underused(_ microproto.Instant, used int) {
	v.window = max(min(v.window, (v.window+used)/2), 2*v.unit)
}

// Window implements ctp.Controller.
func (v *Vegas) Window() int { return v.window }

// Threshold implements ctp.Controller.
func (v *Vegas) Threshold() int { return v.threshold }
