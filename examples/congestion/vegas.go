package main

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Vegas is the congestion control of Brakmo and Peterson (TCP Vegas, IEEE JSAC 1995): it
// looks at delay and not only at loss. A window of cwnd over a round trip that is longer
// than the shortest one ever seen has cwnd·(1 − base/rtt) of its segments standing in
// queues. Vegas keeps that between alpha and beta segments and so leaves queues short,
// where a controller that waits for losses fills them.
//
// It works in both inter-cluster Ethernet columns: amounts are in their unit, bytes or
// packets.
type Vegas struct {
	unit              int
	window, threshold int
	base              time.Duration // shortest smoothed round trip
	next              microproto.Instant
	slow              bool // every other round of slow start the window rests, to be measured
}

// Segments that may stand in queues, and how many end slow start.
const (
	alpha = 2
	beta  = 4
	gamma = 1
)

// NewVegas makes a Vegas; ctp.ControllerRow makes an optional row of it.
func NewVegas(microproto.Options) (ctp.Controller, error) { return &Vegas{}, nil }

// Open implements ctp.Controller.
func (v *Vegas) Open(s ctp.ControllerStart) {
	*v = Vegas{unit: s.Unit, window: 2 * s.Unit, threshold: math.MaxInt32}
	if s.Window > 0 {
		v.window, v.threshold = max(s.Window, v.unit), max(s.Threshold, 2*v.unit)
	}
}

// queued is how many segments stand in queues.
func (v *Vegas) queued(rtt time.Duration) int {
	return int(int64(v.window) * int64(rtt-v.base) / int64(rtt) / int64(v.unit))
}

// Acked implements ctp.Controller: one decision for each round trip.
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

// Idled implements ctp.Controller: after an idle time the path is another one.
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
