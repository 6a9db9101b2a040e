package ctp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// A time-out that passes because acknowledgements are late changes neither the window nor its threshold, and only the oldest
// segment is sent again. One after real losses leaves a window of one segment.
func TestTimeoutInVain(t *testing.T) {
	const late = 500 * time.Millisecond
	first := numbered(1)
	first[OptionAckEvery] = 2 // acknowledgements of several segments
	for name, o := range map[string]microproto.Options{"each": numbered(1), "every other": first,
		"numbers wrap": numbered(math.MaxUint32 - 70)} {
		t.Run(name, func(t *testing.T) {
			f := newFlights(t, o)
			for range 20 {
				f.write(3)
				f.rest(3 * round)
			}
			window, threshold := f.window(), f.threshold()
			f.Link.SetFaults(mptest.Faults{Delay: way + late})
			f.write(6)
			f.run(late + late/2) // probes start the time-out again
			require.EqualValues(t, 1, f.window(), "timed out")
			f.run(time.Second)
			require.EqualValues(t, 21, f.accepted(0))
			require.GreaterOrEqual(t, f.window(), window)
			require.Equal(t, threshold, f.threshold())
			require.Equal(t, []int{1, 1, 1, 1, 1}, f.copies[62:67])
		})
	}
}

func numbered(first uint32) microproto.Options {
	o := selectively()
	o[OptionFirst] = int64(first)
	return o
}

// Whichever segments of a flight are lost, the copy of the oldest is the last to arrive, and the time-out stands. If only
// acknowledgements are lost, the window stays.
func TestTimeoutWithLosses(t *testing.T) {
	const outage = 590 * time.Millisecond // probes are lost, too
	for lost := 0; lost <= 6; lost++ {
		f := newFlights(t, selectively())
		for range 20 {
			f.write(3)
			f.rest(3 * round)
		}
		end, inner, threshold := f.Clock.Now().Add(outage), f.OnFrame, f.threshold()
		f.lose = func(n uint32, _ int) bool { return f.Clock.Now() < end && n > 60 && n <= uint32(60+lost) }
		f.OnFrame = func(from int, frame microproto.Frame) bool {
			return inner(from, frame) && (from == 0 || lost > 0 || f.Clock.Now() >= end)
		}
		f.write(6)
		for f.window() > 1 {
			f.rest(time.Millisecond)
		}
		f.rest(round)
		if lost == 0 {
			require.Equal(t, threshold, f.threshold())
		} else {
			require.LessOrEqual(t, f.window(), 2.0, "%d lost", lost)
			require.LessOrEqual(t, f.threshold(), 3.0, "%d lost", lost)
		}
		f.run(3 * time.Second)
		require.EqualValues(t, 21, f.accepted(0))
		checkAccounts(t, f.ends[0].Protocol("Retransmit").(*Retransmit), f.shared().Unit-f.segment())
	}
}
