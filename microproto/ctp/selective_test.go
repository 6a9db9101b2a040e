package ctp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// selectively returns the options of selective recovery with probes.
func selectively() microproto.Options {
	o := between(5 * time.Millisecond)
	o[OptionSelective] = 1
	return o
}

// checkAccounts compares what selective recovery counts with its entries.
// It calls require only on failure: calls for every segment of every frame would take most of the time.
func checkAccounts(tb require.TestingT, r *Retransmit, header int) {
	if !*r.selective.on {
		return
	}
	left, lost := uint64(0), 0
	for i := range r.entries.Len() {
		e := r.entries.At(i)
		if i >= r.transmitted() {
			if e.state != inNetwork {
				require.Fail(tb, "the state of a segment that waits", "segment %d: %v", i, e.state)
			}
			continue
		}
		if r.has(i) && e.state != inNetwork {
			require.Fail(tb, "the state of a segment that has arrived", "segment %d: %v", i, e.state)
		}
		if e.isLost() && before(r.una+uint32(i), r.selective.first) {
			require.Fail(tb, "first is behind a lost segment", "segment %d", i)
		}
		if r.has(i) || e.state >= unknown {
			left += uint64(int(e.length) + header)
		}
		if e.isLost() {
			lost++
		}
	}
	if lost != r.selective.lost || left != *r.selective.left {
		require.Equal(tb, lost, r.selective.lost)
		require.Equal(tb, left, *r.selective.left)
	}
}

// Twelve of a flight of 24 segments are lost. All are sent again within a round trip, as the window allows, the
// window is halved once, and no time-out is needed, as it is without selective recovery (TestImpatientTimer).
func TestSelectiveRecovery(t *testing.T) {
	f := newFlights(t, microproto.Options{OptionSelective: 1})
	var lost []int
	for n := 22; n < 46; n += 2 {
		lost = append(lost, n)
	}
	f.lose = losing(lost...)
	f.write(200)
	timeouts := f.timeouts()
	f.until(4)
	require.EqualValues(t, 12, f.threshold(), "half of 24")
	f.until(5)
	again := []int{}
	for _, r := range f.rounds[4:] {
		for _, n := range r {
			if n < 46 {
				again = append(again, n)
			}
		}
	}
	require.Equal(t, lost, again)
	require.EqualValues(t, 12, f.window())
	f.run(2 * time.Second)
	require.Empty(t, *timeouts)
	require.EqualValues(t, 1, f.accepted(0))
	require.EqualValues(t, 12, *f.ends[0].Protocol("Retransmit").(*Retransmit).resent)
}

// A retransmission is lost. Segments sent after it arrive, so it is sent again without a time-out, and the window is
// halved twice (RFC 5681 §4.3).
func TestLostRetransmission(t *testing.T) {
	for _, copies := range []int{2, 3} {
		f := newFlights(t, microproto.Options{OptionSelective: 1})
		f.lose = func(n uint32, copy int) bool { return n == 30 && copy <= copies }
		f.write(200)
		timeouts := f.timeouts()
		f.until(4 + copies)
		require.Equal(t, copies+1, f.copies[30])
		require.EqualValues(t, 32>>copies, f.threshold(), "the window was 32")
		f.run(2 * time.Second)
		require.Empty(t, *timeouts)
		require.EqualValues(t, 1, f.accepted(0))
	}
}

// delayed delivers the first copy of some segments later than the others.
func (f *flights) delayed(by time.Duration, numbers ...int) {
	at, flags := offsetOf(f.ends[0], attrNumber), offsetOf(f.ends[0], attrFlags)
	late := losing(numbers...)
	copies := map[uint32]int{}
	f.OnFrame = func(end int, frame microproto.Frame) bool {
		if end != 0 || frame.Data[flags]&flagData == 0 {
			return true
		}
		n := binary.BigEndian.Uint32(frame.Data[at:]) - f.first + 1
		if copies[n]++; late(n, copies[n]) {
			kept := microproto.Frame{Peer: 1, Data: append([]byte(nil), frame.Data...)}
			f.Clock.At(f.Clock.Now().Add(way+by), func() { require.NoError(f.tb, f.ends[1].Input(f.Clock.Now(), kept)) })
			return false
		}
		return f.leaves(n)
	}
}

// A segment is overtaken by many, so it seems lost: the window is halved and the segment sent again. Then its
// acknowledgement arrives sooner than a round trip: nothing was lost, and the window is as before. The next segment
// that is as late counts as lost only if it is later still.
func TestOvertakenSegment(t *testing.T) {
	f := newFlights(t, microproto.Options{OptionSelective: 1})
	f.delayed(4*time.Millisecond, 10, 60)
	f.write(200)
	timeouts := f.timeouts()
	f.run(3*round + time.Millisecond - time.Duration(f.Clock.Now()))
	require.Equal(t, 1, f.copies[10])
	require.EqualValues(t, 6, f.threshold(), "half of 12, while 10 seems lost")
	f.run(5 * time.Millisecond)
	require.GreaterOrEqual(t, f.window(), 12.0)
	f.run(2 * time.Second)
	require.Zero(t, f.copies[60], "no copy besides the one that is late")
	require.Empty(t, *timeouts)
	require.EqualValues(t, 1, f.accepted(0))
}

// The window is larger than a bitmap, and every third segment of the flight beyond is lost. What is out of the
// network makes room before the bitmap reaches it, so that the repair takes a few round trips more.
func TestLossesBeyondTheBitmap(t *testing.T) {
	f := newFlights(t, microproto.Options{OptionSelective: 1})
	var lost []int
	for n := 190; n < 380; n += 3 {
		lost = append(lost, n)
	}
	f.lose = losing(lost...)
	f.write(1200)
	timeouts := f.timeouts()
	for f.accepted(0) == 0 {
		f.until(int(time.Duration(f.Clock.Now())/round) + 1)
	}
	require.Empty(t, *timeouts)
	require.Less(t, time.Duration(f.Clock.Now()), 20*round)
	require.EqualValues(t, len(lost), *f.ends[0].Protocol("Retransmit").(*Retransmit).resent)
}

// The round trip becomes shorter than any that was measured, and with it a window that is longer than a bitmap loses
// every third segment. Their retransmissions are acknowledged sooner than a round trip used to take, and still count as
// retransmissions. Segments beyond the bitmap are acknowledged long after they have arrived: that is no round trip, and
// the time-out stays as it was.
func TestLossesOnAPathThatBecomesFaster(t *testing.T) {
	o := between(5 * time.Millisecond)
	o[OptionSelective] = 1
	f := newFlights(t, o)
	f.Link.SetFaults(mptest.Faults{Delay: 3 * way})
	var lost []int
	for n := 190; n < 380; n += 3 {
		lost = append(lost, n)
	}
	f.lose = func(n uint32, copy int) bool {
		if n == uint32(lost[0]) && copy == 2 {
			f.Link.SetFaults(mptest.Faults{Delay: way})
		}
		return losing(lost...)(n, copy)
	}
	f.write(1200)
	r := f.ends[0].Protocol("Retransmit").(*Retransmit)
	var begin, longest, trip time.Duration
	for f.accepted(0) == 0 {
		f.run(round)
		if f.copies[lost[0]] == 0 {
			begin = time.Duration(f.Clock.Now())
		}
		longest, trip = max(longest, *r.rto), max(trip, r.selective.rtt)
	}
	require.Less(t, time.Duration(f.Clock.Now())-begin, 30*round)
	require.Less(t, longest, 400*time.Millisecond)
	require.LessOrEqual(t, trip, 6*way, "the round trip by which losses are judged")
	require.Equal(t, len(lost), int(*r.resent))
}

// Most acknowledgements are lost, so one acknowledges more segments than a bitmap holds. None of them was sent again:
// the acknowledgement measures the round trip, which has become longer.
func TestSampleOfManySegmentsAcknowledgedAtOnce(t *testing.T) {
	f := newFlights(t, microproto.Options{OptionSelective: 1})
	frames, acks := f.OnFrame, 0
	f.OnFrame = func(end int, frame microproto.Frame) bool {
		if end == 1 && len(f.rounds) > 6 {
			f.Link.SetFaults(mptest.Faults{Delay: 2 * way})
			acks++
			return acks%100 == 0
		}
		return frames(end, frame)
	}
	acked, sampled := map[microproto.Instant]int{}, map[microproto.Instant]bool{}
	r, trip := f.ends[0].Protocol("Retransmit").(*Retransmit), time.Duration(0)
	f.do(0, func(x *microproto.Exec) {
		_, err := microproto.BindNow(x, microproto.SegmentAcked, microproto.Normal,
			func(x *microproto.Exec, _ *microproto.Message) {
				if acked[x.Now()]++; acked[x.Now()] > seenNumbers+1 {
					trip = max(trip, r.selective.rtt)
				}
			})
		require.NoError(t, err)
		_, err = microproto.BindNow(x, SegmentSampled, microproto.Normal,
			func(x *microproto.Exec, _ *microproto.Message) { sampled[x.Now()] = true })
		require.NoError(t, err)
	})
	f.write(1200)
	f.run(time.Second)
	many := 0
	for at, n := range acked {
		if n > seenNumbers+1 {
			many++
			require.True(t, sampled[at], "%d segments acknowledged at %v", n, at)
		}
	}
	require.Positive(t, many)
	require.Greater(t, trip, 3*way)
}

// faultyRate returns the payload rate in MB/s of a greedy sender over a link that loses 10 per cent, doubles 5 and
// delays 30 by up to four round trips.
func faultyRate(t *testing.T, names []string, o microproto.Options, way time.Duration) float64 {
	r := newRig(t, names, o, 1464, 1, mptest.Faults{Delay: way, Loss: 0.1, Duplicate: 0.05, Reorder: 0.3})
	r.open()
	const seconds = 10
	return float64(greedy(t, r, seconds*time.Second, time.Millisecond)) / seconds / 1e6
}

// On a faulty path the congestion window lets through what Reno's equation admits, about 2.4 MB/s at a tenth of a
// millisecond; NewReno with its time-outs a twentieth of that.
func TestFaultyPath(t *testing.T) {
	for _, c := range []struct {
		way   time.Duration
		least float64
	}{{100 * time.Microsecond, 1.6}, {time.Millisecond, 0.6}, {10 * time.Millisecond, 0.09}} {
		with := faultyRate(t, syncInter, selectively(), c.way)
		without := faultyRate(t, syncInter, between(5*time.Millisecond), c.way)
		t.Logf("%v: %.3f MB/s, %.3f with NewReno's recovery", c.way, with, without)
		require.Greater(t, with, c.least)
		require.Greater(t, with, without)
	}
}

// While a loss is repaired the window decreases in proportion to what arrives, so that the sender does not pause (RFC
// 6937), and ends at that of the controller.
func TestWindowDecreasesInProportion(t *testing.T) {
	const rate = 6.25e6
	r := newRig(t, syncInter, selectively(), 1464, 1, mptest.Faults{Delay: 10 * time.Millisecond, Rate: rate}).open()
	reno := r.ends[0].Protocol("TCPNewRenoCongestionAvoidance").(*TCPNewRenoCongestionAvoidance)
	var last microproto.Instant
	var pause time.Duration
	n, sent := 0, 0
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end != 0 || len(f.Data) < 1000 {
			return true
		}
		n++
		if reno.recovering {
			pause = max(pause, r.Clock.Now().Sub(last))
			sent++
		}
		last = r.Clock.Now()
		return n != 150 // the window is about 128 segments, more than the path holds
	}
	greedy(t, r, time.Second, time.Millisecond)
	t.Logf("longest pause %v, %d segments in the recovery", pause, sent)
	require.Greater(t, sent, 20)
	require.Less(t, pause, 5*time.Millisecond)
	require.EqualValues(t, 1, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent)
	require.Equal(t, reno.shared.Controller.Window(), reno.shared.Window)
}
