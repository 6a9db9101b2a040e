package ctp

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// firsts are first packet numbers, so that the tests below run over the wrap too.
var firsts = []uint32{1, math.MaxUint32 - 2, math.MaxUint32 - 30}

func eachFirst(t *testing.T, test func(t *testing.T, s *packetSender)) {
	for _, first := range firsts {
		o := maps.Clone(slowOptions)
		o[OptionFirst] = int64(first)
		test(t, newPacketSender(t, o))
	}
}

// RFC 4341 §5: the window starts with four packets of up to 1095 bytes and grows by one for two
// acknowledged ones.
func TestPacketSlowStart(t *testing.T) {
	eachFirst(t, func(t *testing.T, s *packetSender) {
		s.send()
		require.Len(t, s.numbers, 4)
		for acked, want := 2, 5; want < 60; acked, want = acked+2, want+1 {
			s.acked(acked - 1)
			require.Equal(t, want, s.window())
			require.Len(t, s.numbers, acked+want, "a window of packets is in flight")
		}
		for i := 1; i < len(s.numbers); i++ {
			require.Equal(t, s.numbers[i-1]+1, s.numbers[i], "numbers follow one another, over the wrap too")
		}
	})
}

// In an acknowledgement of many packets only R of them count (2 here).
func TestPacketSlowStartCountsTheAckRatio(t *testing.T) {
	s := newPacketSender(t, slowOptions)
	s.grow(16)
	require.Equal(t, 2, s.ack().ratio.value)
	w := s.window()
	s.acked(len(s.numbers) - 1)
	require.Equal(t, w+1, s.window())
}

func TestInitialPackets(t *testing.T) {
	for bytes, want := range map[int]int{100: 4, 1095: 4, 1096: 3, 1400: 3, 2190: 3, 2191: 2, 9000: 2} {
		require.Equal(t, want, initialSegments(bytes), "%d bytes", bytes)
	}
}

// Above the threshold the window grows by one packet for each window of acknowledged ones.
func TestPacketCongestionAvoidance(t *testing.T) {
	eachFirst(t, func(t *testing.T, s *packetSender) {
		s.grow(16)
		first := len(s.numbers) - s.inFlight()
		s.acked(first+3, first)
		w := s.window()
		require.Equal(t, w, s.threshold())
		s.acked(len(s.numbers)-1, first) // the end of the halving's round trip
		for range 5 {
			w = s.window()
			for acked := 0; acked < w; {
				require.Equal(t, w, s.window())
				n := min(s.inFlight(), w-acked)
				s.acked(len(s.numbers) - s.inFlight() + n - 1)
				acked += n
			}
			require.Equal(t, w+1, s.window())
		}
	})
}

// All losses of one window of data cause one halving, whether one acknowledgement reports them or
// many. The loss of a packet sent afterwards causes another.
func TestOneHalvingForARoundTrip(t *testing.T) {
	for _, over := range []bool{true, false} {
		eachFirst(t, func(t *testing.T, s *packetSender) {
			s.grow(16)
			w, after := 0, 0
			last := len(s.numbers) - 1
			first := last + 1 - s.inFlight()
			lost := []int{first, first + 4, first + 8}
			for i := first + 1; i <= last; i++ {
				if slices.Contains(lost, i) {
					continue
				}
				s.acked(i, lost...)
				if i < first+3 {
					w, after = s.window(), len(s.numbers)
				} else {
					require.Equal(t, w/2, s.window(), "after the acknowledgement of packet %d", i-first)
				}
			}
			require.Equal(t, max(w/2, 2), s.threshold())
			if over {
				s.acked(after + 1)
				require.Equal(t, w/2, s.window(), "the end of its round trip")
			}
			require.Less(t, after+5, len(s.numbers))
			s.acked(after+5, after+2)
			require.Equal(t, w/4, s.window(), "a packet sent after the halving was lost")
		})
	}
}

// A packet is lost when three with higher numbers have arrived, not two: so much reordering
// changes nothing, and a packet that arrives late does not count twice.
func TestPacketsOutOfOrder(t *testing.T) {
	eachFirst(t, func(t *testing.T, s *packetSender) {
		s.grow(16)
		w, first := s.window(), len(s.numbers)-s.inFlight()
		s.acked(first+1, first)
		s.acked(first+2, first)
		require.GreaterOrEqual(t, s.window(), w)
		s.acked(first + 2)
		require.GreaterOrEqual(t, s.window(), w, "it arrived late")
		w = s.window()
		s.acked(first+6, first+3)
		require.Equal(t, w/2, s.window())
		n := s.inFlight()
		s.acked(first + 6)
		require.Equal(t, n, s.inFlight(), "a packet considered lost that arrives is counted once")
		s.acked(first + 2)
		s.acked(first + 2)
		require.Equal(t, n, s.inFlight(), "acknowledgements again")
		require.Equal(t, w/2, s.window())
	})
}

// Without acknowledgements one packet is sent after the time-out, then after twice that time, up
// to the maximum. The threshold is half the window at the first time-out.
func TestPacketTimeout(t *testing.T) {
	const ms = time.Millisecond
	o := microproto.Options{OptionPacketRTOFloor: int64(200 * ms), OptionRTOFloor: int64(200 * ms),
		OptionRTOMax: int64(800 * ms), OptionAckDelay: int64(10 * ms)}
	s := newPacketSender(t, o)
	s.grow(16)
	s.now = s.now.Add(ms)
	s.acked(len(s.numbers) - s.inFlight() + 1)
	w, sent := s.window(), len(s.numbers)
	start := s.now
	require.Equal(t, 200*ms, s.ack().rto)
	var at []time.Duration
	for s.now.Sub(start) < 4*time.Second {
		s.pass(ms)
		for ; sent < len(s.numbers); sent++ {
			at = append(at, s.now.Sub(start))
		}
	}
	require.Equal(t, []time.Duration{200 * ms, 600 * ms, 1400 * ms, 2200 * ms, 3000 * ms, 3800 * ms}, at)
	require.Equal(t, 1, s.window())
	require.Equal(t, 1, s.inFlight())
	require.Equal(t, w/2, s.threshold())
	s.acked(len(s.numbers) - 1)
	s.acked(len(s.numbers) - 1)
	require.Equal(t, 2, s.window(), "slow start begins again")
	require.Equal(t, 2, s.inFlight())
}

// A large window is reset after the column's floor; a small one, in which three packets cannot
// follow a lost one, after little more than the round trip.
func TestPacketTimeoutBySizeOfTheWindow(t *testing.T) {
	const ms = time.Millisecond
	s := newPacketSender(t, interOptions)
	s.grow(16)
	quiet := func() time.Duration {
		sent, start := len(s.numbers), s.now
		for len(s.numbers) == sent && s.now.Sub(start) < time.Second {
			s.pass(ms)
		}
		return s.now.Sub(start)
	}
	require.Less(t, s.ack().rto, 40*ms, "round trips of 10 ms")
	require.Equal(t, 200*ms, quiet())
	require.Equal(t, 1, s.window())
	require.Less(t, quiet(), 80*ms, "backed off once")
}

// RFC 2861: an idle channel halves its window for each time-out, down to the initial window; the
// threshold becomes at least three quarters of it.
func TestPacketWindowAfterIdle(t *testing.T) {
	for _, c := range []struct {
		idle    int // time-outs
		windows int // halvings
	}{{0, 0}, {1, 1}, {2, 2}, {50, 10}} {
		s := newPacketSender(t, slowOptions)
		s.grow(40)
		for s.windowing().waiting.Len() > 0 || s.inFlight() > 0 {
			s.ackedAll()
		}
		w := s.window()
		s.pass(time.Duration(c.idle)*s.ack().rto + time.Millisecond)
		s.sendOne()
		require.Equal(t, max(w>>c.windows, 4), s.window(), "after %d time-outs", c.idle)
		if c.idle > 0 {
			require.GreaterOrEqual(t, s.threshold(), 3*w/4)
		}
	}
}

// A sender that uses less than its window loses the unused part, and the window does not grow.
func TestPacketWindowOfASenderWithLittleData(t *testing.T) {
	s := newPacketSender(t, slowOptions)
	s.grow(40)
	for s.windowing().waiting.Len() > 0 || s.inFlight() > 0 {
		s.ackedAll()
	}
	lazy := func(d time.Duration) {
		for until := s.now.Add(d); s.now < until; {
			s.sendOne()
			s.pass(10 * time.Millisecond)
			s.acked(len(s.numbers) - 1)
		}
	}
	lazy(220 * time.Millisecond) // the end of the busy time
	w := s.window()
	lazy(190 * time.Millisecond)
	require.Equal(t, w, s.window(), "less than a time-out")
	lazy(30 * time.Millisecond)
	require.Equal(t, (w+4)/2, s.window(), "half-way to the initial window, which is more than is used")
	require.GreaterOrEqual(t, s.threshold(), 3*w/4, "slow start may go back there")
	lazy(2 * time.Second)
	require.LessOrEqual(t, s.window(), 5)
	require.GreaterOrEqual(t, s.window(), 4)
}
