package ctp

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// The path of tests that count windows: a round trip of 20 ms without a bandwidth limit, so that a
// flight of segments arrives at one instant.
const (
	way   = 10 * time.Millisecond
	round = 2 * way
)

// flights is a rig that records which segments end 0 sends in which round trip.
type flights struct {
	*rig
	first  uint32 // number of the first segment
	lose   func(number uint32, copy int) bool
	copies []int
	rounds [][]int // the segments of each round trip, numbered from 1
	trains []int   // the lengths of those that left
}

// newFlights joins two ends of the synchronous column between clusters. Segments have 100 bytes,
// and each is acknowledged.
func newFlights(tb require.TestingT, o microproto.Options, names ...string) *flights {
	return newTrainFlights(tb, o, 0, names...)
}

// newTrainFlights is newFlights over a link that takes trains of up to so many bytes and delivers
// them as trains, except for the segments that it loses.
func newTrainFlights(tb require.TestingT, o microproto.Options, train int, names ...string) *flights {
	all := microproto.Options{OptionAckEvery: 1, OptionRTOFloor: int64(200 * time.Millisecond),
		OptionRTOInitial: int64(200 * time.Millisecond), OptionInitialWindow: 3}
	for _, k := range []string{OptionAckEvery, OptionRTOFloor, OptionRTOInitial, OptionRTOMax, OptionInitialWindow,
		OptionGranularity, OptionProbeMargin, OptionSelective, OptionFirst, OptionReceive, OptionPeerReceive} {
		if v, ok := o[k]; ok {
			all[k] = v
		}
	}
	f := &flights{first: 1, lose: func(uint32, int) bool { return false }, copies: make([]int, 10_000)}
	if v, ok := o[OptionFirst]; ok {
		f.first = uint32(v)
	}
	f.rig = newTrainRig(tb, append(slices.Clone(syncInter), names...), all, 160, train, 1, mptest.Faults{Delay: way})
	at, flags := offsetOf(f.ends[0], attrNumber), offsetOf(f.ends[0], attrFlags)
	f.OnFrame = func(end int, frame microproto.Frame) bool {
		if end != 0 || frame.Data[flags]&flagData == 0 {
			return true
		}
		n := binary.BigEndian.Uint32(frame.Data[at:]) - f.first + 1
		if frame.Segment > 0 {
			f.train(n, frame)
			return false
		}
		return f.leaves(n)
	}
	f.open()
	return f
}

// leaves records a transmission, and reports whether the segment will arrive.
func (f *flights) leaves(n uint32) bool {
	k := int(time.Duration(f.Clock.Now()) / round)
	for len(f.rounds) <= k {
		f.rounds = append(f.rounds, nil)
	}
	f.rounds[k] = append(f.rounds[k], int(n))
	f.copies[n]++
	return !f.lose(n, f.copies[n])
}

// train delivers a train whose first segment is n: the parts between lost segments arrive as
// trains.
func (f *flights) train(n uint32, frame microproto.Frame) {
	arrive := func(part microproto.Frame) {
		f.Clock.At(f.Clock.Now().Add(way), func() { require.NoError(f.tb, f.ends[1].Input(f.Clock.Now(), part)) })
	}
	f.trains = append(f.trains, frame.Count())
	from := 0
	for i := range frame.Count() {
		to := min((i+1)*frame.Segment, len(frame.Data))
		lost := !f.leaves(n + uint32(i))
		if lost && from < i*frame.Segment {
			part := frame.Retain()
			part.Data = frame.Data[from : i*frame.Segment]
			arrive(part)
		}
		if lost {
			from = to
		}
	}
	if from < len(frame.Data) {
		part := frame.Retain()
		part.Data = frame.Data[from:]
		arrive(part)
	}
}

// segment returns the payload of a full segment.
func (f *flights) segment() int {
	return *f.ends[0].Protocol("WindowCongestionControl").(*WindowCongestionControl).segment
}

// write sends a message of n full segments.
func (f *flights) write(n int) {
	_, err := f.send(0, tag, 1, pattern(n*f.segment(), uint64(n)))
	require.NoError(f.tb, err)
}

func (f *flights) shared() *Congestion {
	return f.ends[0].Protocol("WindowCongestionControl").(*WindowCongestionControl).shared
}

// window and threshold return those of the controller, in segments.
func (f *flights) window() float64 {
	return float64(f.shared().Controller.Window()) / float64(f.shared().Unit)
}

func (f *flights) threshold() float64 {
	return float64(f.shared().Controller.Threshold()) / float64(f.shared().Unit)
}

// until runs to the middle of a round trip, before its acknowledgements arrive.
func (f *flights) until(k int) { f.run(time.Duration(k)*round + way/2 - time.Duration(f.Clock.Now())) }

// span returns the numbers from a to b.
func span(a, b int) (out []int) {
	for i := a; i <= b; i++ {
		out = append(out, i)
	}
	return out
}

// losing makes a link lose the first copies of some segments.
func losing(numbers ...int) func(uint32, int) bool {
	return func(n uint32, copy int) bool { return copy == 1 && slices.Contains(numbers, int(n)) }
}

// Each acknowledgement admits two segments: 3, 6, 12, 24.
func TestSlowStart(t *testing.T) {
	f := newFlights(t, nil)
	f.write(100)
	f.until(3)
	require.Equal(t, [][]int{span(1, 3), span(4, 9), span(10, 21), span(22, 45)}, f.rounds)
	require.EqualValues(t, 24, f.window())
}

// With delayed acknowledgements slow start is as fast (RFC 3465, L = 2).
func TestSlowStartWithDelayedAcknowledgements(t *testing.T) {
	f := newFlights(t, microproto.Options{OptionAckEvery: 2, OptionInitialWindow: 4})
	f.write(100)
	f.until(3)
	require.Equal(t, [][]int{span(1, 4), span(5, 12), span(13, 28), span(29, 60)}, f.rounds)
}

// The initial window of RFC 5681 §3.1 by the size of a segment.
func TestInitialWindow(t *testing.T) {
	for unit, want := range map[int]int{1095: 4, 1096: 3, 2190: 3, 2191: 2} {
		r := Reno{}
		r.Open(ControllerStart{Unit: unit})
		require.Equal(t, want*unit, r.Window())
		require.Equal(t, math.MaxInt, r.Threshold())
	}
}

// One segment of the third flight is lost. By RFC 3042 the first two duplicates admit 22 and 23.
// The third sends 10 again, with a threshold of half the flight of 12, and each further one
// inflates the window of 6 + 3. The acknowledgement of all segments sent before ends the recovery
// with a window of 6.
func TestFastRecovery(t *testing.T) {
	for _, first := range []uint32{1, math.MaxUint32 - 14} { // numbers wrap in recovery
		f := newFlights(t, microproto.Options{OptionFirst: int64(first)})
		f.lose = losing(10)
		f.write(200)
		f.until(3)
		require.EqualValues(t, 6, f.threshold())
		require.Equal(t, 17*f.shared().Unit, f.shared().Window, "6 + 3 + 8 more duplicates")
		f.until(4)
		require.EqualValues(t, 6, f.window())
		f.until(5)
		require.Equal(t, [][]int{
			span(1, 3), span(4, 9), span(10, 21),
			{22, 23, 10, 24, 25, 26},
			{27, 28, 29, 30, 31, 32}, // 29 after the full acknowledgement, then one for one
			{33, 34, 35, 36, 37, 38, 39},
		}, f.rounds)
		require.EqualValues(t, 7, f.window(), "congestion avoidance: a segment for a window of data")
		f.run(2 * time.Second)
		require.EqualValues(t, 1, f.accepted(0))
	}
}

// Two losses in one flight: the acknowledgement of 12 is partial, so 13 is sent again at once, the
// window is deflated by the bytes acknowledged less a segment, and the threshold is halved once.
func TestPartialAcknowledgement(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(10, 13)
	f.write(200)
	f.until(6)
	require.Equal(t, [][]int{
		span(1, 3), span(4, 9), span(10, 21),
		{22, 23, 10, 24, 25},
		{26, 27, 13, 28, 29, 30},
		{31, 32, 33, 34, 35, 36},
		{37, 38, 39, 40, 41, 42, 43},
	}, f.rounds)
	require.EqualValues(t, 6, f.threshold())
	f.run(2 * time.Second)
	require.EqualValues(t, 1, f.accepted(0))
}

// RFC 6582 §4, Impatient: only the first partial acknowledgement restarts the timer, so a time-out
// repairs a flight with many losses.
func TestImpatientTimer(t *testing.T) {
	f := newFlights(t, nil)
	var lost []int
	for n := 22; n < 46; n += 2 {
		lost = append(lost, n)
	}
	f.lose = losing(lost...)
	f.write(200)
	timeouts := f.timeouts()
	f.run(2 * time.Second)
	// 22 is sent again in round 4 (t = 80 ms); the partial acknowledgement of 23 arrives at 100 ms
	// and starts a timer of 200 ms.
	require.Equal(t, []time.Duration{300 * time.Millisecond}, *timeouts)
	require.EqualValues(t, 1, f.accepted(0))
}

func (f *flights) timeouts() *[]time.Duration {
	var at []time.Duration
	require.NoError(f.tb, f.Do(0, func(x *microproto.Exec) {
		_, err := microproto.BindNow(x, microproto.SegmentTimeout, microproto.Normal,
			func(x *microproto.Exec, _ *microproto.Message) { at = append(at, time.Duration(x.Now())) })
		require.NoError(f.tb, err)
	}))
	return &at
}

// Duplicates below the end of the last recovery start none (RFC 6582 §3.2 step 2): 24 is the first
// segment after it.
func TestNoSecondFastRetransmit(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(10, 24)
	f.write(200)
	timeouts := f.timeouts()
	f.until(7)
	require.Equal(t, 1, f.copies[24])
	require.EqualValues(t, 6, f.threshold())
	f.run(2 * time.Second)
	require.Len(t, *timeouts, 1)
	require.EqualValues(t, 1, f.accepted(0))
}

// The first of three segments is lost. There are only two duplicates, but the segments that they
// admit cause the third (RFC 3042). Those segments do not count in the flight whose half becomes
// the threshold.
func TestLimitedTransmit(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(1)
	f.write(30)
	timeouts := f.timeouts()
	f.until(2)
	require.Equal(t, [][]int{span(1, 3), {4, 5}, {1, 6}}, f.rounds)
	require.EqualValues(t, 2, f.threshold())
	f.run(time.Second)
	require.Empty(t, *timeouts)
	require.EqualValues(t, 1, f.accepted(0))
}

// A complete flight is lost. After the time-out one segment is sent, then slow start goes up to
// half of the flight, and retransmissions obey the window.
func TestTimeout(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(span(10, 21)...)
	f.write(200)
	timeouts := f.timeouts()
	// Flight 3 is sent at 40 ms and starts the timer: 240 ms.
	f.until(12)
	require.Equal(t, []time.Duration{240 * time.Millisecond}, *timeouts)
	require.EqualValues(t, 1, f.window())
	require.EqualValues(t, 6, f.threshold())
	f.until(16)
	require.Equal(t, [][]int{{10}, {11, 12}, span(13, 16), span(17, 22), span(23, 29)}, f.rounds[12:17])
	f.run(2 * time.Second)
	require.EqualValues(t, 1, f.accepted(0))
	require.EqualValues(t, 12, *f.ends[0].Protocol("Retransmit").(*Retransmit).resent)
}

// When the same segment times out again, the threshold stays half of the lost flight (RFC 5681
// §3.1), and slow start goes up to it.
func TestSecondTimeoutKeepsTheThreshold(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = func(n uint32, copy int) bool { return losing(span(10, 21)...)(n, copy) || n == 10 && copy == 2 }
	f.write(200)
	timeouts := f.timeouts()
	f.run(800 * time.Millisecond)
	require.Equal(t, []time.Duration{240 * time.Millisecond, 640 * time.Millisecond}, *timeouts)
	require.EqualValues(t, 6, f.threshold())
	// Of a flight that is sent again, at most a window is in flight.
	f = newFlights(t, nil)
	f.lose = func(n uint32, copy int) bool {
		return losing(span(10, 21)...)(n, copy) || n >= 13 && n < 17 && copy == 2
	}
	f.write(200)
	timeouts = f.timeouts()
	f.run(800 * time.Millisecond)
	require.Len(t, *timeouts, 2)
	require.EqualValues(t, 2, f.threshold(), "half of four")
}

// The amount in flight at the end of a recovery bounds the window, so that no burst follows (RFC
// 6582 §3.2 step 5, option 1).
func TestNoBurstAfterRecovery(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(10)
	f.write(21)
	f.until(5)
	require.EqualValues(t, 1, f.accepted(0))
	require.EqualValues(t, 6, f.threshold())
	require.EqualValues(t, 2, f.window())
}

// After a time-out L is 1: an acknowledgement of two segments increases the window by one (RFC
// 3465 §2.3).
func TestCautiousAfterTimeout(t *testing.T) {
	r := Reno{initial: 10}
	r.Open(ControllerStart{Unit: 1000})
	r.Acked(Progress{Count: 2000, Full: true})
	require.Equal(t, 12_000, r.Window())
	r.Acked(Progress{Count: 9000, Full: true})
	require.Equal(t, 14_000, r.Window(), "however much was acknowledged")
	r.TimedOut(0, 12_000, false)
	require.Equal(t, 1000, r.Window())
	require.Equal(t, 6000, r.Threshold())
	r.Acked(Progress{Count: 2000, Full: true})
	require.Equal(t, 2000, r.Window())
	r.TimedOut(0, 2000, true)
	require.Equal(t, 6000, r.Threshold(), "the same segment again")
	r.TimedOut(0, 3000, false)
	require.Equal(t, 2000, r.Threshold(), "never below two segments")
}

// Segments in the bitmap are not sent again after a time-out, but count in the window.
func TestTimeoutSkipsSegmentsThatHaveArrived(t *testing.T) {
	f := newFlights(t, nil)
	lost := losing(slices.Concat(span(10, 12), span(14, 21))...) // 13 arrives: one duplicate, which admits 22
	f.lose = func(n uint32, copy int) bool { return lost(n, copy) || n == 22 && copy == 1 }
	f.write(200)
	f.run(2 * time.Second)
	require.Equal(t, 1, f.copies[13])
	require.Equal(t, 2, f.copies[12])
	require.Equal(t, 2, f.copies[14])
	require.EqualValues(t, 1, f.accepted(0))
}

// RFC 6298 §5.5 and §2.5 with a window of one: each time-out doubles the next up to the maximum
// and sends one segment; the first sets the threshold.
func TestCongestionBackOff(t *testing.T) {
	const ms = time.Millisecond
	f := newFlights(t, microproto.Options{OptionRTOMax: int64(900 * ms)})
	f.Link.Partition(0, true)
	f.write(50)
	timeouts := f.timeouts()
	f.run(4 * time.Second)
	require.Equal(t, []time.Duration{200 * ms, 600 * ms, 1400 * ms, 2300 * ms, 3200 * ms}, *timeouts)
	require.Equal(t, [][]int{span(1, 3), {1}, {1}, {1}, {1}, {1}},
		slices.DeleteFunc(f.rounds, func(r []int) bool { return r == nil }))
	require.EqualValues(t, 2, f.threshold())
	f.Link.Partition(0, false)
	f.run(3 * time.Second)
	require.EqualValues(t, 1, f.accepted(0))
}

// By Karn's rule retransmitted segments give no measurement, and the back-off lasts until there is
// one.
func TestCongestionKarn(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(1)
	rtt := f.ends[0].Protocol("RTTEstimation").(*RTTEstimation)
	f.write(1)
	f.run(time.Second)
	require.False(t, rtt.sampled)
	require.Equal(t, 400*time.Millisecond, *rtt.rto)
	f.write(1)
	f.run(time.Second)
	require.Equal(t, round, *rtt.smoothed)
	require.Equal(t, 200*time.Millisecond, *rtt.rto)
}

// After an idle time longer than the time-out the window restarts (RFC 5681 §4.1), after a shorter
// one it does not.
func TestAfterIdle(t *testing.T) {
	for _, c := range []struct {
		idle time.Duration
		want int
	}{{100 * time.Millisecond, 16}, {200 * time.Millisecond, 3}} {
		f := newFlights(t, nil)
		f.write(21)
		f.until(3)
		require.EqualValues(t, 1, f.accepted(0))
		require.EqualValues(t, 16, f.window(), "12 in flight, and no more to send: it grows while half of it is used")
		f.run(round)
		f.Clock.Advance(f.Clock.Now().Add(c.idle))
		f.rounds = nil
		f.write(60)
		require.Len(t, f.rounds[len(f.rounds)-1], c.want)
		require.Equal(t, float64(c.want), f.window())
	}
}

// A sender with two segments a round trip does not increase its window, so it cannot burst later.
func TestApplicationLimited(t *testing.T) {
	f := newFlights(t, nil)
	for range 30 {
		f.write(2)
		f.run(round)
	}
	require.LessOrEqual(t, f.window(), 4.0)
	f.rounds = nil
	f.write(60)
	require.LessOrEqual(t, len(f.rounds[len(f.rounds)-1]), 4)
}

// With data in both directions acknowledgements travel with data, which RFC 5681 does not count as
// duplicates. The bitmap shows that a segment has arrived, and recovery starts without a time-out.
func TestDuplicatesThatCarryData(t *testing.T) {
	f := newFlights(t, nil)
	f.lose = losing(10)
	f.write(60)
	_, err := f.send(1, tag, 1, pattern(60*f.segment(), 7))
	require.NoError(t, err)
	timeouts := f.timeouts()
	f.run(400 * time.Millisecond)
	require.Empty(t, *timeouts)
	require.EqualValues(t, 6, f.threshold())
	require.EqualValues(t, 1, f.accepted(0))
	require.EqualValues(t, 1, f.accepted(1))
	for end := range 2 {
		got, _ := f.drain(end, 60*f.segment())
		require.Len(t, got, 1)
		require.True(t, bytes.Equal(pattern(60*f.segment(), []uint64{7, 60}[end]), got[0]))
	}
}

// An acknowledgement without data that increases the credit is no duplicate (RFC 5681 §2, e), one
// that changes nothing is, and none is while nothing is in flight.
func TestWhatIsADuplicate(t *testing.T) {
	for _, c := range []struct {
		name string
		acks []Ack
		want int
	}{
		{"repeated", []Ack{{Next: 2, Credit: 9, Alone: true}, {Next: 2, Credit: 9, Alone: true},
			{Next: 2, Credit: 9, Alone: true}}, 2},
		{"new credit", []Ack{{Next: 2, Credit: 9, Alone: true}, {Next: 2, Credit: 10, Alone: true}}, 0},
		{"with data", []Ack{{Next: 2, Credit: 9}, {Next: 2, Credit: 9}}, 0},
		{"with data and news", []Ack{{Next: 2, Credit: 9}, {Next: 2, Seen: 1, Credit: 9}, {Next: 2, Seen: 1, Credit: 9},
			{Next: 2, Seen: 5, Credit: 10}}, 2},
		{"older", []Ack{{Next: 3, Credit: 9, Alone: true}, {Next: 2, Credit: 9, Alone: true}}, 0},
		{"nothing in flight", []Ack{{Next: 9, Credit: 9, Alone: true}, {Next: 9, Credit: 9, Alone: true}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, syncInter, nil, 200, 1, calm).open()
			d := r.ends[0].Protocol("DuplicateAck").(*DuplicateAck)
			*d.sentNext = 9
			require.NoError(t, r.Do(0, func(x *microproto.Exec) {
				for _, a := range c.acks {
					d.acked(x, a)
				}
			}))
			require.Equal(t, c.want, d.count)
		})
	}
}
