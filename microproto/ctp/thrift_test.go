package ctp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// thrift is what greedy senders inside a cluster sent again, over some seeds.
type thrift struct {
	sent, lost, again uint64  // segments
	rate              float64 // payload received at end 1, MB/s
}

// thriftOf sends from the given number of ends over a faulty link for a tenth of a second.
func thriftOf(t *testing.T, f mptest.Faults, ends int, seeds uint64) (sum thrift) {
	const each = 100 * time.Millisecond
	loss := f.Loss
	f.Loss = 0 // drawn here: acknowledgements do not count
	for seed := range seeds {
		r := newRig(t, syncEther, microproto.Options{OptionRTOMax: int64(time.Second)}, 1464, seed, f)
		random, flags := rand.New(rand.NewPCG(seed, 2)), offsetOf(r.ends[0], attrFlags)
		r.OnFrame = func(_ int, f microproto.Frame) bool {
			lose, data := random.Float64() < loss, f.Data[flags]&flagData != 0
			if data {
				sum.sent++
			}
			if data && lose {
				sum.lost++
			}
			return !lose
		}
		received := greedyEnds(t, r.open(), ends, each, time.Millisecond/4)[0]
		sum.rate += float64(received) / each.Seconds() / 1e6 / float64(seeds)
		for end := range ends {
			sum.lost += r.Link.Stats(end).Overflowed
			sum.again += *r.ends[end].Protocol("Retransmit").(*Retransmit).resent
		}
	}
	return sum
}

// Inside a cluster little more is sent again than was lost, whatever the path loses, reorders and doubles, with data in
// one direction and in both. Of segments that are only overtaken, few are sent again until the reordering is known.
func TestThriftInsideACluster(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 1
	}
	for _, c := range []struct {
		f     mptest.Faults
		least float64 // MB/s in one direction
	}{
		{mptest.Faults{Loss: 0.01}, 85},
		{mptest.Faults{Loss: 0.05}, 75},
		{mptest.Faults{Loss: 0.2}, 50},
		{mptest.Faults{Reorder: 0.1}, 90},
		{mptest.Faults{Reorder: 0.3}, 90},
		{mptest.Faults{Duplicate: 0.3}, 70},
		{mptest.Faults{Loss: 0.05, Duplicate: 0.3, Reorder: 0.1}, 50},
		{mptest.Faults{Loss: 0.1, Duplicate: 0.05, Reorder: 0.3}, 50},
	} {
		for _, way := range []time.Duration{20 * time.Microsecond, 500 * time.Microsecond} {
			for ends := 1; ends <= 2; ends++ {
				c.f.Delay, c.f.Rate = way, 125e6
				s := thriftOf(t, c.f, ends, seeds)
				t.Logf("%v, from %d ends: %.0f MB/s, sent %d, lost %d, sent again %d: %.3f times", c.f, ends, s.rate,
					s.sent, s.lost, s.again, float64(s.again)/float64(max(s.lost, 1)))
				switch {
				case c.f.Loss > 0:
					require.LessOrEqual(t, float64(s.again), 1.1*float64(s.lost), "%v from %d", c.f, ends)
				case c.f.Reorder > 0:
					require.LessOrEqual(t, float64(s.again), 0.01*float64(s.sent), "%v from %d", c.f, ends)
				default: // time-outs while the queue builds up
					require.LessOrEqual(t, float64(s.again), 0.0001*float64(s.sent), "%v from %d", c.f, ends)
				}
				if ends == 1 {
					require.Greater(t, s.rate, c.least, c.f)
				}
			}
		}
	}
}

// A path of 10 Gbit/s stays full at 1 % loss: acknowledgements report the whole flight, so all losses of a round trip are
// repaired in the next.
func TestFastPathWithLosses(t *testing.T) {
	for _, c := range []struct {
		way   time.Duration
		least float64
	}{{20 * time.Microsecond, 1000}, {100 * time.Microsecond, 1000}, {500 * time.Microsecond, 900}} {
		s := thriftOf(t, mptest.Faults{Delay: c.way, Rate: 1.25e9, Loss: 0.01}, 1, 1)
		t.Logf("%v: %.0f MB/s, lost %d, sent again %d", c.way, s.rate, s.lost, s.again)
		require.Greater(t, s.rate, c.least, c.way)
		require.LessOrEqual(t, float64(s.again), 1.1*float64(s.lost), c.way)
	}
}

// A queue that holds a tenth of the window loses most of what is sent. The path stays full, and what is sent again does
// not come in bursts, which the queue would lose once more.
func TestShortQueueInsideACluster(t *testing.T) {
	for _, queue := range []int{60, 100, 800} {
		s := thriftOf(t, mptest.Faults{Delay: 20 * time.Microsecond, Rate: 125e6, Capacity: queue}, 1, 1)
		t.Logf("%d segments: %.0f MB/s, sent %d, lost %d, sent again %d", queue, s.rate, s.sent, s.lost, s.again)
		require.Greater(t, s.rate, 90.0, queue)
		require.Less(t, float64(s.lost), 0.75*float64(s.sent), queue)
		require.LessOrEqual(t, float64(s.again), 1.1*float64(s.lost), queue)
	}
}
