package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// CUBIC is the Controller of RFC 9438: in congestion avoidance the window is a cubic function of
// the time since the last loss, flat around the window of that loss, and never below Reno's
// window (§4.3). It counts in segments, as the RFC does. Slow start is Reno's.
//
// Products are rounded before they are added, so that all machines compute the same window.
type CUBIC struct {
	Reno          // slow start, the initial window, the unit
	cwnd  float64 // segments
	limit float64 // ssthresh in segments; +Inf at first

	wMax, k float64 // where the curve is flat: window in segments, time in seconds
	prior   float64 // cwnd before the last reduction, cwnd_prior of §4.1
	est     float64 // W_est: the window of Reno
	started bool    // an epoch of congestion avoidance runs
	epoch   microproto.Instant
	paused  microproto.Instant // since then the window was not full, 0: it is
	flat    bool               // the next epoch starts at its own W_max (§4.8)
}

// Constants of RFC 9438 §4.1 and §5.1: C in segments/s³, and the factor of decrease.
const (
	cubicC    = 0.4
	cubicBeta = 0.7
	// cubicAlpha lets W_est grow as Reno with that factor does (§4.3).
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// NewCUBIC returns a CUBIC with the settings of a composition.
func NewCUBIC(o microproto.Options) (*CUBIC, error) {
	r, err := NewReno(o)
	return &CUBIC{Reno: *r}, err
}

// Open implements Controller.
func (c *CUBIC) Open(s ControllerStart) {
	c.Reno.Open(s)
	*c = CUBIC{Reno: c.Reno, cwnd: c.segments(c.window), limit: math.Inf(1)}
	if c.threshold != math.MaxInt {
		c.limit = c.segments(c.threshold)
	}
}

func (c *CUBIC) segments(units int) float64 { return float64(units) / float64(c.unit) }

// Acked implements Controller.
func (c *CUBIC) Acked(p Progress) {
	if !p.Full {
		if c.started && c.paused == 0 {
			c.paused = p.Now
		}
		return
	}
	n := c.segments(p.Count)
	if c.cwnd < c.limit {
		most := 2.0
		if c.cautious {
			most = 1
		}
		grown := min(n, float64(most*float64(max(p.Acks, 1))), math.Ceil(c.limit-c.cwnd))
		c.cwnd += grown
		if n -= grown; c.cwnd < c.limit || n <= 0 {
			return
		}
	}
	c.cautious = false
	if c.started && c.paused != 0 {
		c.epoch += p.Now - c.paused // times of an unused window do not count (§5.8)
		c.paused = 0
	}
	if !c.started {
		c.begin(p.Now)
	}
	c.avoid(p.Now.Sub(c.epoch), p.RTT, n)
}

// begin starts an epoch of congestion avoidance (§4.2).
func (c *CUBIC) begin(now microproto.Instant) {
	c.started, c.epoch = true, now
	c.est = c.cwnd
	if c.flat || c.wMax < c.cwnd {
		c.wMax = c.cwnd
	}
	c.flat = false
	c.k = math.Cbrt((c.wMax - c.cwnd) / cubicC)
}

// curve returns W_cubic(t) (§4.2, figure 1), in segments.
func (c *CUBIC) curve(t time.Duration) float64 {
	d := t.Seconds() - c.k
	cube := float64(d * d * d)
	return float64(cubicC*cube) + c.wMax
}

// avoid changes the window at time t of the epoch for an acknowledgement of n segments.
func (c *CUBIC) avoid(t, rtt time.Duration, n float64) {
	alpha := cubicAlpha
	if c.est >= c.prior {
		alpha = 1
	}
	c.est += float64(alpha * n / c.cwnd)
	if c.curve(t) < c.est {
		c.cwnd = max(c.cwnd, c.est) // the Reno-friendly region (§4.3)
		return
	}
	target := min(max(c.curve(t+rtt), c.cwnd), 1.5*c.cwnd)
	c.cwnd += float64((target - c.cwnd) * min(n/c.cwnd, 1)) // §4.4, §4.5
}

// reduce sets W_max, lower than before if the path has become smaller (fast convergence, §4.7),
// and ssthresh (§4.6).
func (c *CUBIC) reduce(inFlight int) {
	c.prior = c.cwnd
	if c.cwnd < c.wMax {
		c.wMax = c.cwnd * (1 + cubicBeta) / 2
	} else {
		c.wMax = c.cwnd
	}
	c.started, c.paused = false, 0
	c.limit = max(cubicBeta*c.segments(inFlight), 2)
}

// Congested implements Controller.
func (c *CUBIC) Congested(_ microproto.Instant, inFlight int) {
	c.reduce(inFlight)
	c.cwnd = c.limit
	c.flat, c.cautious = false, false
}

// Recovered implements Controller. It avoids a burst.
func (c *CUBIC) Recovered(_ microproto.Instant, inFlight int) {
	c.cwnd = min(c.limit, max(c.segments(inFlight), 1)+1)
}

// TimedOut implements Controller. The next congestion avoidance starts at the flat part of its
// curve (§4.8).
func (c *CUBIC) TimedOut(_ microproto.Instant, inFlight int, again bool) {
	if !again {
		c.reduce(inFlight)
	}
	c.cwnd = 1
	c.flat, c.started = true, false
	c.cautious = true
}

// Idled implements Controller (RFC 5681 §4.1).
func (c *CUBIC) Idled(now microproto.Instant, idle, _ time.Duration) {
	c.cwnd = min(c.cwnd, c.segments(c.initialWindow()))
	if c.started && c.paused == 0 {
		c.paused = now - microproto.Instant(idle)
	}
}

// Window implements Controller.
func (c *CUBIC) Window() int { return c.units(c.cwnd) }

// Threshold implements Controller.
func (c *CUBIC) Threshold() int { return c.units(c.limit) }

func (c *CUBIC) units(segments float64) int {
	const most = 1 << 50
	return max(c.unit, int(min(float64(segments*float64(c.unit)), most)))
}

// CUBICCongestionAvoidance is the name of CUBIC as a micro-protocol.
const CUBICCongestionAvoidance = "CUBICCongestionAvoidance"
