package ctp

import (
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// cubicRun drives a CUBIC in congestion avoidance: each round trip acknowledges a window, segment
// by segment.
type cubicRun struct {
	*CUBIC
	now microproto.Instant
	rtt time.Duration
}

const cubicUnit = 1000

func newCubicRun(t *testing.T, window int, rtt time.Duration) *cubicRun {
	c, err := NewCUBIC(nil)
	require.NoError(t, err)
	c.Open(ControllerStart{Unit: cubicUnit, Window: window * cubicUnit, Threshold: 2 * cubicUnit})
	return &cubicRun{c, 0, rtt}
}

// trip simulates a round trip, with a full window or not.
func (r *cubicRun) trip(full bool) {
	n := r.Window() / cubicUnit
	for i := range n {
		r.Acked(Progress{Now: r.now.Add(time.Duration(i) * r.rtt / time.Duration(n)), Count: cubicUnit,
			InFlight: r.Window(), RTT: r.rtt, Full: full})
	}
	r.now = r.now.Add(r.rtt)
}

// After a loss at 1000 segments the window follows W_cubic(t) = C(t − K)³ + W_max
// with K = ∛(W_max(1 − β)/C) (RFC 9438 §4.2): first concave, flat at K, then convex.
func TestCubicCurve(t *testing.T) {
	const wMax = 1000.0
	r := newCubicRun(t, wMax, 100*time.Millisecond) // long enough for Reno to be slower
	r.Congested(0, wMax*cubicUnit)
	require.Equal(t, 700*cubicUnit, r.Window(), "β = 0.7")
	require.Equal(t, 700*cubicUnit, r.Threshold())
	k := math.Cbrt(wMax * (1 - 0.7) / 0.4)
	require.InDelta(t, 9.0856, k, 1e-4)
	for time.Duration(r.now) < 12*time.Second {
		r.trip(true)
		// The window is W_cubic one round trip ahead, by at most one window late.
		at, later := r.formula(wMax, k, 0), r.formula(wMax, k, r.rtt)
		require.GreaterOrEqual(t, r.cwnd, at-1.0, "at %v", time.Duration(r.now))
		require.LessOrEqual(t, r.cwnd, later+1.0, "at %v", time.Duration(r.now))
	}
	require.Greater(t, r.cwnd, 1005.0, "beyond the flat it probes")
	require.Less(t, r.cwnd, 1015.0)
	require.Less(t, r.est, 800.0)
}

func (r *cubicRun) formula(wMax, k float64, ahead time.Duration) float64 {
	return 0.4*math.Pow(time.Duration(r.now).Seconds()+ahead.Seconds()-k, 3) + wMax
}

// On a short path with a small window the cubic function grows more slowly than Reno. The window
// is then W_est, which grows by 3(1 − β)/(1 + β) segments a round trip, and by one beyond the
// window before the loss (§4.3).
func TestCubicIsFriendlyToReno(t *testing.T) {
	r := newCubicRun(t, 20, 2*time.Millisecond)
	r.Congested(0, 20*cubicUnit)
	require.Equal(t, 14.0, r.cwnd)
	alpha := 3 * 0.3 / 1.7
	for n := 1.0; r.cwnd < 20; n++ {
		r.trip(true)
		require.InDelta(t, 14+alpha*n, r.cwnd, 0.05*n+0.2, "after %v round trips", n)
		require.Less(t, n, 20.0)
	}
	from := r.cwnd
	for range 5 {
		r.trip(true)
	}
	require.InDelta(t, from+5, r.cwnd, 0.3)
}

// A flow with a loss below its last maximum releases bandwidth: W_max becomes smaller than the
// window (§4.7).
func TestCubicFastConvergence(t *testing.T) {
	r := newCubicRun(t, 100, 50*time.Millisecond)
	r.Congested(r.now, 100*cubicUnit)
	require.Equal(t, 100.0, r.wMax)
	r.trip(true)
	cwnd := r.cwnd
	require.Less(t, cwnd, 100.0)
	r.Congested(r.now, int(cwnd)*cubicUnit)
	require.InDelta(t, cwnd*0.85, r.wMax, 1e-9)
	require.Equal(t, cwnd, r.prior)
}

// After a time-out the window is one segment; slow start ends at β of the flight, and the curve
// starts at its flat part (§4.8).
func TestCubicTimeout(t *testing.T) {
	r := newCubicRun(t, 100, 200*time.Millisecond)
	r.TimedOut(0, 100*cubicUnit, false)
	require.Equal(t, cubicUnit, r.Window())
	require.Equal(t, 70*cubicUnit, r.Threshold())
	r.TimedOut(0, 100*cubicUnit, true)
	require.Equal(t, 70*cubicUnit, r.Threshold())
	for n, want := range []int{2, 4, 8, 16, 32, 64} {
		r.trip(true)
		require.Equal(t, want*cubicUnit, r.Window(), "round trip %d", n)
	}
	r.trip(true)
	require.True(t, r.started)
	require.Zero(t, r.k)
	require.InDelta(t, 70, r.wMax, 1)
	begun := r.epoch
	for range 30 {
		r.trip(true)
		d := r.now.Sub(begun).Seconds()
		require.GreaterOrEqual(t, r.cwnd, 0.4*math.Pow(d, 3)+r.wMax-1)
		require.LessOrEqual(t, r.cwnd, max(r.est, 0.4*math.Pow(d+r.rtt.Seconds(), 3)+r.wMax)+1)
	}
	require.Greater(t, r.cwnd, 150.0)
}

// Times in which the window was not full do not count (§5.8).
func TestCubicIgnoresUnusedTime(t *testing.T) {
	a, b := newCubicRun(t, 500, 20*time.Millisecond), newCubicRun(t, 500, 20*time.Millisecond)
	for _, r := range []*cubicRun{a, b} {
		r.Congested(0, 500*cubicUnit)
		r.trip(true)
	}
	before := b.Window()
	for range 200 {
		b.trip(false)
	}
	require.Equal(t, before, b.Window(), "what is not used does not grow")
	for range 100 {
		a.trip(true)
		b.trip(true)
	}
	require.InDelta(t, a.cwnd, b.cwnd, 1)
	b.Idled(b.now.Add(time.Hour), time.Hour, time.Second)
	require.Equal(t, 4*cubicUnit, b.Window())
	b.now = b.now.Add(time.Hour)
	for range 8 {
		b.trip(true)
	}
	require.InDelta(t, a.cwnd, b.cwnd, 0.15*a.cwnd, "after slow start the window continues from there")
}

// The window stays within its bounds for any numbers.
func TestCubicBounds(t *testing.T) {
	r := newCubicRun(t, 1, time.Nanosecond)
	r.now = microproto.Never - 1
	for range 200 {
		r.Acked(Progress{Now: r.now, Count: math.MaxInt, RTT: time.Hour, Full: true})
		require.GreaterOrEqual(t, r.Window(), cubicUnit)
		require.LessOrEqual(t, r.Window(), 1<<50)
	}
	r.Congested(r.now, 0)
	require.Equal(t, 2*cubicUnit, r.Window())
	r.Recovered(r.now, 0)
	require.Equal(t, 2*cubicUnit, r.Window())
	r.TimedOut(r.now, 0, false)
	require.Equal(t, cubicUnit, r.Window())
}
