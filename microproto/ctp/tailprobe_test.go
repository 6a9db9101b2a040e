package ctp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// lockstep returns the time in which two ends exchange a message of n full segments in each of so many
// steps: an end begins the next step when it has received the message of this one.
func lockstep(
	tb testing.TB, names []string, o microproto.Options, n, steps int, loss float64, seed uint64,
) time.Duration {
	r := newRig(tb, names, o, 1464, 1, mptest.Faults{Delay: way})
	random := rand.New(rand.NewPCG(seed, 2))
	r.OnFrame = func(int, microproto.Frame) bool { return random.Float64() >= loss }
	r.open()
	data := pattern(n*1400, 1)
	dst := make([]byte, len(data))
	var step [2]int
	send := func(end int) {
		_, err := r.send(end, tag, uint64(step[end]), data)
		require.NoError(tb, err)
	}
	send(0)
	send(1)
	for min(step[0], step[1]) < steps {
		if r.Clock.Now() >= microproto.Instant(time.Hour) {
			require.Fail(tb, "no progress")
		}
		r.run(time.Millisecond)
		for end := range step {
			if _, err := r.receive(end, tag, dst, nil); err == nil {
				step[end]++
				send(end)
			}
		}
	}
	return time.Duration(r.Clock.Now())
}

// between are the options of the column between clusters, with probes if margin is positive.
func between(margin time.Duration) microproto.Options {
	floor := int64(200 * time.Millisecond)
	return microproto.Options{OptionRTOFloor: floor, OptionGranularity: floor, OptionProbeMargin: int64(margin)}
}

// One per cent of losses each way prolongs steps of one or two segments by less than a third; without
// probes it is half. Of longer messages most losses are not of the tail, and the congestion window that
// they leave is shorter than a message (RFC 5681).
func TestLockstepWithLosses(t *testing.T) {
	segments := []int{1, 2, 4, 8}
	if testing.Short() {
		segments = []int{1, 4}
	}
	for _, n := range segments {
		ratio := func(o microproto.Options) (sum float64) {
			for seed := range uint64(4) {
				sum += float64(lockstep(t, syncInter, o, n, 500, 0.01, seed)) / 4
			}
			return sum / float64(lockstep(t, syncInter, o, n, 500, 0, 0))
		}
		with, without := ratio(between(5*time.Millisecond)), ratio(between(0))
		selective := ratio(selectively())
		t.Logf("%d segments: %.2f of the time without losses; %.2f without probes; %.2f with selective recovery",
			n, with, without, selective)
		require.Less(t, with, without)
		require.Less(t, selective, 1.05*with)
		if n <= 2 {
			require.Less(t, with, 1.3)
			require.Less(t, selective, 1.2)
			require.Greater(t, without, 1.4)
		}
	}
}

// tailed is a session between clusters that has sent 20 messages of 3 segments.
func tailed(t *testing.T, margin time.Duration) *flights {
	f := newFlights(t, between(margin))
	for range 20 {
		f.write(3)
		f.rest(3 * round)
	}
	return f
}

// The last segment of a message is lost. It is sent again a quarter of a round trip after its
// acknowledgement was due, and its loss halves the window. If the probe is lost too, the time-out
// follows; there is no second probe.
func TestTailLoss(t *testing.T) {
	for lost := 1; lost <= 2; lost++ {
		f := tailed(t, 5*time.Millisecond)
		window, start := f.window(), f.Clock.Now()
		var sent []time.Duration
		f.lose = func(n uint32, copy int) bool {
			if n == 63 {
				sent = append(sent, f.Clock.Now().Sub(start))
			}
			return n == 63 && copy <= lost
		}
		f.write(3)
		f.run(time.Second)
		require.Len(t, sent, lost+1)
		require.Equal(t, round+5*time.Millisecond, sent[1]-sent[0])
		require.EqualValues(t, 21, f.accepted(0))
		if lost == 1 {
			require.Equal(t, max(window/2, 2), f.window())
			require.Equal(t, max(window/2, 2), f.threshold())
		} else {
			require.Equal(t, round+200*time.Millisecond, sent[2]-sent[1])
		}
	}
}

// An acknowledgement that was only late arrives sooner than a round trip after the probe. It shows that
// nothing was lost, and leaves the window alone.
func TestUnnecessaryProbe(t *testing.T) {
	f := tailed(t, 5*time.Millisecond)
	window := f.window()
	f.Link.SetFaults(mptest.Faults{Delay: way + 4*time.Millisecond})
	f.write(3)
	f.run(time.Second)
	require.Equal(t, []int{2, 1, 1}, f.copies[61:64])
	require.GreaterOrEqual(t, f.window(), window)
}

// Without a margin nothing is probed.
func TestNoProbes(t *testing.T) {
	f := tailed(t, 0)
	f.lose = func(n uint32, copy int) bool { return n == 63 && copy == 1 }
	f.write(3)
	f.run(round + 100*time.Millisecond)
	require.Equal(t, 1, f.copies[63])
	f.run(time.Second)
	require.Equal(t, 2, f.copies[63])
}
