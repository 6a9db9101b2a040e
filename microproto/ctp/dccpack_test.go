package ctp

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The bounds of RFC 4341 §6.1.2, computed by hand for some windows.
func TestAckRatioBounds(t *testing.T) {
	for window, want := range map[int][2]int{1: {1, 1}, 2: {1, 1}, 3: {1, 2}, 4: {2, 2}, 5: {2, 3}, 8: {2, 4},
		31: {2, 16}, 1000: {2, 16}} {
		for asked := range 40 {
			r := ackRatio{value: asked}
			r.clamp(window)
			require.Equal(t, min(max(asked, want[0]), want[1]), r.value, "window %d, %d asked", window, asked)
		}
	}
}

func TestAckRatioStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := ackRatio{value: defaultRatio}
		next := rapid.Uint32().Draw(rt, "first")
		r.mark = next
		for range 200 {
			window := rapid.IntRange(1, 100).Draw(rt, "window")
			next += uint32(window)
			r.progress(next-uint32(rapid.IntRange(0, window).Draw(rt, "in flight")), next, window,
				rapid.Bool().Draw(rt, "lossy"))
			r.clamp(window)
			require.GreaterOrEqual(rt, r.value, 1)
			require.LessOrEqual(rt, r.value, (window+1)/2)
			if window >= 4 {
				require.GreaterOrEqual(rt, r.value, 2)
			}
		}
	})
}

// The ratio doubles after a window in which acknowledgements were lost, and decreases by one after
// cwnd/(R²−R) windows without a loss.
func TestAckRatioFollowsTheLoss(t *testing.T) {
	const window = 60
	r := ackRatio{value: 2}
	now := uint32(math.MaxUint32 - 100)
	r.mark = now
	windows := func(n int, lossy bool) {
		for range n {
			now += window
			r.progress(now-window-1, now, window, lossy)
			r.progress(now-window, now, window, false)
		}
	}
	windows(1, true)
	require.Equal(t, 4, r.value)
	windows(4, false)
	require.Equal(t, 4, r.value, "60/12 = 5 windows are wanted")
	windows(1, false)
	require.Equal(t, 3, r.value)
	windows(9, false)
	require.Equal(t, 3, r.value, "60/6 = 10")
	windows(1, false)
	require.Equal(t, 2, r.value)
	windows(100, false)
	require.Equal(t, 2, r.value, "never 1 with four packets or more")
	windows(4, true)
	require.Equal(t, 16, r.value)
}

// fixedWindow is a Controller with a constant window.
type fixedWindow int

func (f fixedWindow) Open(ControllerStart)                           {}
func (f fixedWindow) Acked(Progress)                                 {}
func (f fixedWindow) Congested(microproto.Instant, int)              {}
func (f fixedWindow) Recovered(microproto.Instant, int)              {}
func (f fixedWindow) TimedOut(microproto.Instant, int, bool)         {}
func (f fixedWindow) Idled(_ microproto.Instant, _, _ time.Duration) {}
func (f fixedWindow) Underused(microproto.Instant, int)              {}
func (f fixedWindow) Window() int                                    { return int(f) }
func (f fixedWindow) Threshold() int                                 { return 2 }

// fixed returns the micro-protocols of the column with a window of w packets.
func fixed(tb require.TestingT, w int, o microproto.Options) []microproto.MicroProtocol {
	mp, err := ControllerRow("FixedWindow", "a test",
		func(microproto.Options) (Controller, error) { return fixedWindow(w), nil }).New(o)
	require.NoError(tb, err)
	return append(build(tb, asyncInter, o), mp)
}

// A small window is not delayed by acknowledgements: with a delay of ten seconds a window is still
// sent in each round trip.
func TestSmallWindowsDoNotStarve(t *testing.T) {
	const delay = 5 * time.Millisecond
	for window := 1; window <= 9; window++ {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			o := microproto.Options{OptionAckDelay: int64(time.Second), OptionRTOFloor: int64(10 * time.Second),
				OptionRTOMax: int64(time.Minute)}
			r := &rig{tb: t}
			for i := range r.ends {
				c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 400},
					fixed(t, window, o)...)
				require.NoError(t, err)
				require.NoError(t, c.Endpoint().Slot(tag, 80_000))
				r.ends[i] = c
			}
			r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, mptest.Faults{Delay: delay})
			r.open()
			for round := range uint64(20) {
				_, err := r.send(0, tag, round, make([]byte, 80_000))
				require.NoError(t, err)
				r.run(10 * delay)
			}
			sent := r.Link.Stats(0).Sent
			ratio := r.ends[0].Protocol("DCCPAck").(*DCCPAck).ratio.value
			// The last R − 1 packets of a window are acknowledged with the first of the next.
			require.GreaterOrEqual(t, int(sent), (window-ratio+1)*99,
				"a window of %d packets in each of 100 round trips", window)
			require.LessOrEqual(t, int(sent), window*101)
			require.LessOrEqual(t, int(r.Link.Stats(1).Sent), int(sent)/ratio+1, "one acknowledgement for %d packets",
				ratio)
		})
	}
}

// data returns a packet of the other end.
func (s *packetSender) incoming(number uint32, ratio uint8) {
	f := s.frame(flagData, number, 0, 0, 0, s.data[:800])
	f[s.at("asynchronous.tag")+3] = tag + 1
	f[s.at(attrTotal)+2], f[s.at(attrTotal)+3] = 800>>8, 800&255
	s.label++
	f[s.at("asynchronous.label")+6], f[s.at("asynchronous.label")+7] = byte(s.label>>8), byte(s.label)
	f[s.at("dccp.ratio")] = ratio
	s.input(f)
}

// An acknowledgement is sent for every R packets, where R is the ratio that the newest packet
// requests. The others are acknowledged after the delay, or by a packet in the other direction.
func TestOneAcknowledgementForEachRatio(t *testing.T) {
	for _, first := range firsts {
		s := newPacketSender(t, slowOptions)
		n := first
		come := func(packets int, ratio uint8) {
			for range packets {
				s.incoming(n, ratio)
				n++
			}
		}
		come(8, 4)
		require.Equal(t, 2, s.alone)
		come(3, 1)
		require.Equal(t, 5, s.alone)
		come(2, 3)
		require.Equal(t, 5, s.alone)
		s.pass(24 * time.Millisecond)
		require.Equal(t, 5, s.alone)
		s.pass(time.Millisecond)
		require.Equal(t, 6, s.alone, "25 ms are the longest wait")
		come(2, 3)
		s.sendOne()
		s.pass(time.Second)
		require.Equal(t, 6, s.alone, "the packet has acknowledged them")
		come(1, 0)
		require.Equal(t, 7, s.alone, "an absurd ratio counts as 1")
		n++
		come(2, 4)
		s.incoming(n-3, 1)
		require.Equal(t, 7, s.alone, "the late one does not say what is wanted now")
		come(1, 4)
		require.Equal(t, 8, s.alone)
		come(15, 255)
		require.Equal(t, 8, s.alone)
		come(1, 255)
		require.Equal(t, 9, s.alone, "and as 16")
	}
}

// Packets are acknowledged by number: gaps, packets that fill them, and none older than the
// bitmap. Duplicates are not passed on; packets with invalid numbers change nothing.
func TestPacketArrivals(t *testing.T) {
	for _, first := range firsts {
		var a packetArrivals
		for _, c := range []struct {
			number  uint32
			kind    arrivalKind
			highest uint32
			seen    uint64
		}{
			{0, arrivalNewest, 0, 0},
			{1, arrivalNewest, 1, 1},
			{4, arrivalNewest, 4, 0b1100},
			{3, arrivalLate, 4, 0b1101},
			{3, arrivalDuplicate, 4, 0b1101},
			{4, arrivalDuplicate, 4, 0b1101},
			{67, arrivalNewest, 67, 3 << 62},
			{2, arrivalLate, 67, 3 << 62},
			{maxJump + 68, arrivalInvalid, 67, 3 << 62},
			{math.MaxUint32 - maxJump, arrivalInvalid, 67, 3 << 62},
			{67 + 64, arrivalNewest, 131, 1 << 63},
			{67 + 64 + 65, arrivalNewest, 196, 0},
		} {
			seen := c.seen
			require.Equal(t, c.kind, a.take(first+c.number, 0), "packet %d", c.number)
			require.Equal(t, Received{first + c.highest, seen}, a.Received, "after packet %d", c.number)
		}
	}
	s := newPacketSender(t, slowOptions)
	s.incoming(1, 1)
	s.incoming(1, 1)
	s.incoming(1+maxJump+1, 1)
	require.EqualValues(t, 1, s.drops("duplicate"))
	require.EqualValues(t, 1, s.drops("beyond the window"))
}

// A lost acknowledgement is counted when the third after it has arrived.
func TestLostAcknowledgements(t *testing.T) {
	for _, first := range firsts {
		var a ackArrivals
		come := func(numbers ...uint32) {
			for _, n := range numbers {
				a.take(first+n, 0)
			}
		}
		come(0, 1, 2, 3, 4, 5)
		require.Zero(t, a.lost)
		come(7, 8, 6, 9)
		require.Zero(t, a.lost, "out of order by two")
		come(11, 12)
		require.Zero(t, a.lost)
		come(13)
		require.EqualValues(t, 1, a.lost, "10 is lost")
		come(16, 17, 20)
		require.EqualValues(t, 3, a.lost, "14 and 15")
		come(1000)
		require.EqualValues(t, 3+980, a.lost, "18 to 997: 20 is not recorded any more")
	}
	// The sender then requests fewer of them.
	s := newPacketSender(t, slowOptions)
	s.grow(40)
	require.Equal(t, 2, s.ack().ratio.value)
	s.acks += 5
	s.ackedAll()
	s.ackedAll()
	require.EqualValues(t, 5, s.ack().acks.lost)
	require.GreaterOrEqual(t, s.ack().ratio.value, 4)
}

// An acknowledgement gives one measurement of the round trip, of the newest packet that it covers,
// less the delay at the other end. A repeated one gives none.
func TestRoundTripOncePerAcknowledgement(t *testing.T) {
	const ms = time.Millisecond
	s := newPacketSender(t, slowOptions)
	estimate := s.ack().estimate
	for range 4 {
		s.sendOne()
		s.pass(10 * ms)
	}
	ack := func(i int, elapsed time.Duration) {
		s.acks++
		s.input(s.frame(flagAcknowledges, s.acks, s.numbers[i], ^uint64(0), elapsed, nil))
	}
	s.pass(10 * ms)
	ack(3, 0)
	require.Equal(t, 20*ms, estimate.srtt, "of the last, although four are acknowledged")
	require.Equal(t, 10*ms, estimate.rttvar)
	s.pass(time.Second)
	ack(3, 0)
	ack(2, 0)
	require.Equal(t, 20*ms, estimate.srtt, "acknowledged before")
	s.sendOne()
	s.pass(120 * ms)
	ack(4, 100*ms)
	require.Equal(t, 20*ms, estimate.srtt, "100 of 120 ms it waited there")
	require.Equal(t, 7500*time.Microsecond, estimate.rttvar)
	s.sendOne()
	s.pass(20 * ms)
	ack(5, time.Hour)
	require.Equal(t, 7500*time.Microsecond, estimate.rttvar, "longer than the round trip: a lie, no measurement")
	require.Equal(t, 200*ms, s.ack().rto, "the floor")
	s.sendOne()
	s.sendOne()
	s.pass(20 * ms)
	s.acked(7, 6)
	variance := estimate.rttvar
	s.pass(50 * ms)
	s.acked(7)
	require.Equal(t, variance, estimate.rttvar,
		"a packet that fills a gap gives no measurement: its delay is not known")
}

// Malformed frames are dropped and counted, and change nothing.
func TestMalformedPackets(t *testing.T) {
	s := newPacketSender(t, slowOptions)
	s.sendOne()
	for i, c := range []struct {
		reason string
		frame  []byte
	}{
		{"malformed acknowledgement", s.frame(0, 1, 0, 0, 0, nil)},
		{"malformed acknowledgement", s.frame(8, 1, 0, 0, 0, nil)},
		{"malformed segment", s.frame(flagAcknowledges, 1, 1, 0, 0, s.data[:8])},
		{"acknowledgement of a segment not sent", s.frame(flagAcknowledges, 1, 2, 0, 0, nil)},
		{"acknowledgement of a segment not sent", s.frame(flagAcknowledges, 1, 1<<31-1, 0, 0, nil)},
	} {
		before := s.drops(c.reason)
		s.input(c.frame)
		require.Equal(t, before+1, s.drops(c.reason), "frame %d", i)
		require.Equal(t, 1, s.inFlight())
	}
	require.False(t, s.ack().estimate.sampled)
}

// The number of a packet for which there was no room below is used again.
func TestNoRoomBelow(t *testing.T) {
	c, err := microproto.NewComposite(microproto.Config{Name: "sender", MTU: packetMTU,
		Limits: microproto.Limits{Outputs: 2}}, build(t, asyncInter, nil)...)
	require.NoError(t, err)
	require.NoError(t, c.Endpoint().Slot(tag, 8000))
	require.NoError(t, c.Open(0))
	require.NoError(t, c.Do(0, func(x *microproto.Exec) { _, _ = c.Endpoint().Send(x, tag, 1, make([]byte, 8000)) }))
	d := c.Protocol("DCCPAck").(*DCCPAck)
	require.Equal(t, 2, d.flight.inFlight)
	require.EqualValues(t, 3, d.flight.next())
	require.Len(t, c.Drain(nil), 2)
}

// The time-out of a large window exceeds SRTT by the margin of the column, that of a small one by
// 2 ms. Neither exceeds the maximum.
func TestMarginOfThePacketTimeout(t *testing.T) {
	const ms = time.Millisecond
	o := microproto.Options{OptionRTOFloor: int64(200 * ms), OptionGranularity: int64(200 * ms),
		OptionRTOMax: int64(time.Minute)}
	s := &settings{options: o}
	d := newDCCPAck(s).(*DCCPAck)
	require.NoError(t, s.err)
	window := 2
	d.window = &window
	for range 100 {
		d.estimate.update(250 * ms)
	}
	require.Equal(t, 252*ms, d.timeout())
	window = smallWindow + 1
	require.Equal(t, 450*ms, d.timeout())
	d.estimate.max = 300 * ms
	require.Equal(t, 300*ms, d.timeout())
}
