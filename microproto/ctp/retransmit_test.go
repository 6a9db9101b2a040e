package ctp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// RFC 6298 §2 computed by hand: K = 4, alpha = 1/8, beta = 1/4.
func TestRTOByHand(t *testing.T) {
	const ms = time.Millisecond
	s := &settings{options: microproto.Options{
		OptionRTOFloor: int64(ms), OptionRTOInitial: int64(1000 * ms),
		OptionRTOMax: int64(60_000 * ms), OptionGranularity: int64(ms),
	}}
	r := s.rttEstimation()
	require.NoError(t, s.err)
	var rto time.Duration
	r.rto = &rto
	for _, step := range []struct{ rtt, srtt, rttvar, rto time.Duration }{
		{100 * ms, 100 * ms, 50 * ms, 300 * ms},                  // SRTT = R, RTTVAR = R/2, RTO = SRTT + 4·RTTVAR
		{100 * ms, 100 * ms, 37500 * time.Microsecond, 250 * ms}, // RTTVAR = ¾·50
		{180 * ms, 110 * ms, 48125 * time.Microsecond, 302500 * time.Microsecond},
	} {
		r.update(step.rtt)
		require.Equal(t, step.srtt, r.srtt)
		require.Equal(t, step.rttvar, r.rttvar)
		require.Equal(t, step.rto, rto)
	}
	for range 200 {
		r.update(10 * ms)
	}
	require.Equal(t, 11*ms, rto, "a variance that has died away leaves the granularity: SRTT + G")
	for range 200 {
		r.update(10 * time.Microsecond)
	}
	require.InDelta(t, float64(ms), float64(rto), float64(20*time.Microsecond),
		"and the floor or G bounds it from below")
}

// events records the instants at which end 0 transmits data frames.
func watchData(r *rig) *[]time.Duration {
	var at []time.Duration
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			at = append(at, time.Duration(r.Clock.Now()))
		}
		return true
	}
	return &at
}

// RFC 6298 §5.5 and §2.5: each time-out doubles the next, up to the maximum.
func TestBackOffDoublesUpToTheCap(t *testing.T) {
	const ms = time.Millisecond
	o := microproto.Options{OptionRTOFloor: int64(2 * ms), OptionRTOInitial: int64(10 * ms),
		OptionRTOMax: int64(70 * ms)}
	r := newRig(t, syncEther, o, 1500, 1, calm).open()
	r.Link.Partition(0, true)
	at := watchData(r)
	_, err := r.send(0, tag, 1, []byte("x"))
	require.NoError(t, err)
	r.run(300 * ms)
	require.Equal(t, []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 140 * ms, 210 * ms, 280 * ms}, *at)
}

// Karn's rule: the acknowledgement of a retransmitted segment gives no measurement.
func TestKarn(t *testing.T) {
	const ms = time.Millisecond
	o := microproto.Options{OptionRTOInitial: int64(10 * ms)}
	r := newRig(t, syncEther, o, 1500, 1, calm).open()
	rtt := r.ends[0].Protocol("RTTEstimation").(*RTTEstimation)
	r.Link.Partition(0, true)
	_, err := r.send(0, tag, 1, []byte("x"))
	require.NoError(t, err)
	r.run(5 * ms)
	r.Link.Partition(0, false)
	r.run(100 * ms)
	require.EqualValues(t, 1, r.accepted(0))
	require.False(t, rtt.sampled)
	require.Equal(t, 20*ms, *rtt.rto, "the backed-off time-out stays until a measurement (RFC 6298 §5.7)")
	_, err = r.send(0, tag, 2, []byte("y"))
	require.NoError(t, err)
	r.run(100 * ms)
	require.True(t, rtt.sampled)
	require.Equal(t, 100*time.Microsecond, rtt.srtt, "two ways of 50 µs")
	require.Equal(t, 2*ms, *rtt.rto, "the floor")
}

// Without a congestion window the acknowledgement of a retransmitted segment ends the back-off: a
// few times in a row, and not if it arrives too early to be of the last copy.
func TestBackOffEndsWithoutMeasurement(t *testing.T) {
	const ms = time.Millisecond
	o := microproto.Options{OptionRTOFloor: int64(2 * ms), OptionRTOInitial: int64(10 * ms)}
	r := newRig(t, syncEther, o, 1500, 1, calm).open()
	rtt := r.ends[0].Protocol("RTTEstimation").(*RTTEstimation)
	label := uint64(0)
	send := func(lost time.Duration) {
		r.Link.Partition(0, lost > 0)
		_, err := r.send(0, tag, label, []byte("x"))
		require.NoError(t, err)
		label++
		r.run(lost)
		r.Link.Partition(0, false)
		r.run(100 * ms)
		require.EqualValues(t, label, r.accepted(0))
	}
	send(0)
	require.Equal(t, 2*ms, *rtt.rto)
	for range maxAmbiguous {
		send(5 * ms) // two time-outs
		require.Equal(t, 2*ms, *rtt.rto)
	}
	send(5 * ms)
	require.Equal(t, 8*ms, *rtt.rto, "perhaps round trips have become longer")
	send(0)
	require.Equal(t, 2*ms, *rtt.rto)

	*rtt.rto = 8 * ms
	rtt.endBackoff(rtt.srtt/2 - 1)
	require.Equal(t, 8*ms, *rtt.rto, "the first copy's")
	*rtt.limit = 1 << 20
	rtt.endBackoff(rtt.srtt)
	require.Equal(t, 8*ms, *rtt.rto, "a congestion window needs the back-off (RFC 6298 §5.7)")
}

// A segment is sent again without a time-out when three later ones have arrived.
func TestOvertakenByThree(t *testing.T) {
	r := newRig(t, syncEther, nil, 150, 1, calm).open()
	n := 0
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			n++
		}
		return end != 0 || n != 2
	}
	_, err := r.send(0, tag, 1, pattern(480, 1))
	require.NoError(t, err)
	r.run(400 * time.Microsecond)
	require.EqualValues(t, 1, r.accepted(0), "long before the initial time-out of 100 ms")
	require.EqualValues(t, 1, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent)
}

// Acknowledgements of segments not sent are dropped and counted.
func TestForgedAcknowledgement(t *testing.T) {
	r := newRig(t, syncEther, nil, 1500, 1, calm)
	r.open()
	r.Link.Partition(0, true)
	_, err := r.send(0, tag, 1, []byte("x"))
	require.NoError(t, err)
	var ack []byte
	require.NoError(t, r.ends[1].Do(r.Clock.Now(), func(x *microproto.Exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		x.Forward(m)
	}))
	for _, o := range r.ends[1].Drain(nil) {
		ack = append([]byte(nil), o.Frame.Data...)
		o.Frame.Release()
	}
	lie := func(n uint32) {
		at := offsetOf(r.ends[0], "ack.next")
		binary.BigEndian.PutUint32(ack[at:], n)
		require.NoError(t, r.ends[0].Input(r.Clock.Now(), microproto.Frame{Peer: 1, Data: append([]byte(nil), ack...)}))
	}
	lie(3) // 1 was sent, so 2 is the most that can be asked for
	require.EqualValues(t, 0, r.accepted(0))
	require.EqualValues(t, 1, r.drops(0, "acknowledgement of a segment not sent"))
	lie(2)
	require.EqualValues(t, 1, r.accepted(0))
}

func offsetOf(c *microproto.Composite, name string) int {
	for _, g := range c.Layout() {
		if g.Name == name {
			return g.Offset
		}
	}
	return -1
}

// The amount in flight stays within the bounds in bytes and in segments.
func TestWindow(t *testing.T) {
	for _, o := range []microproto.Options{{OptionInFlight: 3000}, {OptionInFlightCount: 3}} {
		r := newRig(t, syncEther, o, 1060, 1, calm).open()
		r.Link.Partition(0, true)
		_, err := r.send(0, tag, 1, pattern(100_000, 1))
		require.NoError(t, err)
		require.LessOrEqual(t, r.Link.Stats(0).Sent, uint64(3))
		require.GreaterOrEqual(t, r.Link.Stats(0).Sent, uint64(2))
		r.Link.Partition(0, false)
		r.run(10 * time.Second)
		require.EqualValues(t, 1, r.accepted(0))
	}
}

// A lossy path with many segments in flight is repaired mostly without time-outs.
func TestThroughputUnderLoss(t *testing.T) {
	f := mptest.Faults{Delay: time.Millisecond, Loss: 0.02}
	r := newRig(t, syncEther, nil, 1400, 5, f).open()
	_, err := r.send(0, tag, 1, pattern(2<<20, 1))
	require.NoError(t, err)
	ok, err := r.RunUntil(500*time.Millisecond, func() bool { return r.accepted(0) == 1 })
	require.NoError(t, err)
	require.True(t, ok, "about 1600 segments, 32 of them lost, a round trip of 2 ms")
	sent, resent := r.Link.Stats(0).Sent, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent
	require.Less(t, float64(resent), 0.06*float64(sent), "%d of %d sent again", resent, sent)
}

// While a channel drains, its time-out is little more than the round trip, even if the variance
// has a floor.
func TestDrainForgetsTheFloors(t *testing.T) {
	const ms = time.Millisecond
	s := &settings{options: microproto.Options{OptionRTOFloor: int64(200 * ms), OptionGranularity: int64(200 * ms)}}
	r := s.rttEstimation()
	require.NoError(t, s.err)
	var rto time.Duration
	r.rto = &rto
	for range 100 {
		r.update(20 * ms)
	}
	require.Equal(t, 220*ms, rto)
	r.drain(nil, struct{}{})
	require.Equal(t, 21*ms, rto)
}

// An end that waits for credit, with nothing in flight, delays its probe after every segment that
// arrives, and sends none once it has credit.
func TestProbeWhileOtherEndSends(t *testing.T) {
	o := microproto.Options{OptionReceive: 1000, OptionPeerReceive: 1000}
	r := newRig(t, syncEther, o, 600, 1, calm).open()
	_, err := r.send(0, tag, 1, pattern(900, 1))
	require.NoError(t, err)
	_, err = r.send(0, tag, 2, pattern(900, 1))
	require.ErrorIs(t, err, microproto.ErrBusy)
	r.run(time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0))
	p := r.ends[0].Protocol("Retransmit").(*Retransmit)
	due := p.timeoutAt
	require.Positive(t, due)
	_, err = r.send(1, tag, 1, pattern(8, 1))
	require.NoError(t, err)
	r.run(time.Millisecond)
	require.Greater(t, p.timeoutAt, due)
	got, _ := r.drain(1, 900)
	require.Len(t, got, 1)
	r.run(60 * time.Microsecond) // before the timer fires
	require.False(t, p.blocked)
	require.Zero(t, p.timeoutAt)
}

// Without options, few segments are sent again where the round trip takes longer than the first time-out, which doubles
// until it is longer. With a cap of a second, all were.
func TestDefaultsOverLongRoundTrips(t *testing.T) {
	for _, delay := range []time.Duration{600 * time.Millisecond, 2 * time.Second} {
		r := newRig(t, syncInter, nil, 1400, 1, mptest.Faults{Delay: delay}).open()
		sent := 0
		for k := range 200 {
			if _, err := r.send(0, 1, uint64(k), make([]byte, 1000)); err == nil {
				sent++
			}
			r.rest(500 * time.Millisecond)
		}
		r.rest(time.Minute)
		require.Greater(t, sent, 100)
		require.EqualValues(t, sent, r.accepted(0))
		again, ok := microproto.CompositeCell[uint64](r.ends[0], microproto.CellRetransmitted)
		require.True(t, ok)
		require.Less(t, *again, uint64(20))
	}
}
