package ctp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// goodput returns the payload rate in Mbit/s of a greedy sender over d, on a path of 50 Mbit/s
// with a round trip of 20 ms and a queue of a hundred segments.
func goodput(
	tb testing.TB, names []string, o microproto.Options, loss float64, seed uint64, d time.Duration,
) float64 {
	// Forty-three segments of 1464 bytes are in flight in 10 ms.
	r := newRig(tb, names, o, 1464, seed, mptest.Faults{Delay: way, Rate: 50e6 / 8, Capacity: 143})
	random := rand.New(rand.NewPCG(seed, 1))
	r.OnFrame = func(end int, _ microproto.Frame) bool { return end != 0 || random.Float64() >= loss }
	r.open()
	return float64(greedy(tb, r, d, 2*time.Millisecond)) * 8 / d.Seconds() / 1e6
}

// greedy sends from end 0 as much as it can until d has passed, acting every so often, and returns the bytes received.
func greedy(tb testing.TB, r *rig, d, every time.Duration) int {
	return greedyEnds(tb, r, 1, d, every)[0]
}

// greedyEnds is greedy from end 0, or from both ends.
func greedyEnds(tb testing.TB, r *rig, ends int, d, every time.Duration) (received [2]int) {
	data, dst := pattern(64<<10, 1), make([]byte, 64<<10)
	for sent := uint64(0); time.Duration(r.Clock.Now()) < d; r.run(every) {
		for from := range ends {
			for {
				if _, err := r.send(from, tag, sent, data); err != nil {
					if err != microproto.ErrBusy {
						require.ErrorIs(tb, err, microproto.ErrBusy)
					}
					break
				}
				sent++
			}
			for {
				if _, err := r.receive(1-from, tag, dst, nil); err != nil {
					if err != microproto.ErrNothing {
						require.ErrorIs(tb, err, microproto.ErrNothing)
					}
					break
				}
				received[from] += len(dst)
			}
		}
	}
	return received
}

// A path that loses segments only when its queue is full is used to 85 per cent, including the
// overshoot of slow start. With random losses the rate is about MSS/RTT · √(3/2p) (Mathis, Semke,
// Mahdavi and Ott 1997), less the time-outs.
func TestGoodput(t *testing.T) {
	for _, c := range []struct {
		name      string
		names     []string
		options   microproto.Options
		loss      float64
		low, high float64
	}{
		{"NewReno, no loss", syncInter, between(0), 0, 0.85 * 50, 50},
		{"CUBIC, no loss", syncCubic, between(0), 0, 0.85 * 50, 50},
		{"NewReno, 0.1 %", syncInter, between(0), 0.001, 13, 28},
		{"NewReno, 1 %", syncInter, between(0), 0.01, 4.8, 8.4},
		{"NewReno, 5 %", syncInter, between(0), 0.05, 1.5, 3.1},
		{"CUBIC, 1 %", syncCubic, between(0), 0.01, 5, 11},
		{"selective recovery, no loss", syncInter, selectively(), 0, 0.85 * 50, 50},
		{"selective recovery, 0.1 %", syncInter, selectively(), 0.001, 13, 28},
		{"selective recovery, 1 %", syncInter, selectively(), 0.01, 5.5, 8.4},
		{"selective recovery, 5 %", syncInter, selectively(), 0.05, 2, 3.6},
		{"selective recovery, CUBIC, 1 %", syncCubic, selectively(), 0.01, 5, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.options[OptionSelective] == 0 {
				t.Skip("NewReno's recovery runs without -short")
			}
			seeds, total := uint64(2), 0.0
			if c.loss == 0 || testing.Short() {
				seeds = 1 // without loss it draws nothing
			}
			for seed := range seeds {
				total += goodput(t, c.names, c.options, c.loss, seed, 15*time.Second) / float64(seeds)
			}
			t.Logf("%.1f Mbit/s", total)
			require.GreaterOrEqual(t, total, c.low)
			require.LessOrEqual(t, total, c.high)
		})
	}
}
