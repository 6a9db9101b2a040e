package sim

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

var detectCount = flag.Uint64("detect.count", 16, "runs of TestDetection")

// detection describes the end of an asynchronous run: how long it continued after the assembled
// iterate met the tolerance for good, and the time of one reduction over the tree, up and down. An
// edge takes the delay of a message and the sweep in progress at its receiver.
type detection struct {
	late, reduction time.Duration
	snapshots       int
}

func detect(t *testing.T, seed uint64) detection {
	r := rand.New(rand.NewPCG(seed, 0x646574656374))
	s := &Scenario{Seed: seed, Tolerance: 1e-4, Scheme: iterate.Asynchronous(), MTU: 1400}
	s.Problem, s.What = drawProblem(r)
	var err error
	for s.Partition.Peers() < 2 {
		s.Partition, err = drawPartition(r, s.Problem)
		require.NoError(t, err)
	}
	delay := time.Duration(100+r.IntN(2000)) * time.Microsecond
	s.After = mptest.Faults{Delay: delay, Jitter: delay / 4}
	s.Faults, s.Control = s.After, ControlFaults{Delay: delay}
	s.Repeat = 4 * delay
	sweep := time.Duration(float64(delay) * (0.02 + 0.3*r.Float64()))
	slowest := time.Duration(0)
	for rank := range s.Peers() {
		points := s.Partition.Box(iterate.Rank(rank)).Points()
		c := Cost{Point: 1 + sweep/time.Duration(points), Slow: 1 + r.Float64()}
		s.Costs = append(s.Costs, c)
		slowest = max(slowest, c.Relax(points))
	}
	c, err := New(s)
	require.NoError(t, err)
	met, done := microproto.Never, microproto.Instant(0)
	var seen iterate.Iteration
	c.Watch = func(now microproto.Instant) {
		over := true
		for _, p := range c.peers {
			over = over && p.Phase >= virtual.Closing
		}
		at := c.peers[0].worker.Progress().Sweep // often enough
		switch {
		case over && done == 0:
			done = now
		case done != 0 || at == seen:
			return
		}
		seen = at
		e, err := verify.Evaluate(s.Problem, c.assemble(), nil)
		require.NoError(t, err)
		switch {
		case done != 0 || e.RelativeResidual <= s.Tolerance && met < now:
		case e.RelativeResidual <= s.Tolerance:
			met = now
		default:
			met = microproto.Never
		}
	}
	result, err := c.runAndCheck()
	require.NoError(t, err, "seed %d", seed)
	parts := s.Partition.Parts()
	depth := parts[0] + parts[1] + parts[2] - 3
	late := time.Duration(0)
	if met < done {
		late = done.Sub(met)
	}
	return detection{late, 2 * time.Duration(depth) * (delay + delay/4 + slowest), result.Outcomes[0].Snapshots}
}

// An asynchronous run ends within three reductions after its assembled iterate has met the tolerance
// for good.
func TestDetection(t *testing.T) {
	if testing.Short() {
		*detectCount = min(*detectCount, 8)
	}
	var ratios []float64
	snapshots := 0
	for seed := range *detectCount {
		d := detect(t, seed)
		ratios = append(ratios, float64(d.late)/float64(d.reduction))
		snapshots += d.snapshots
	}
	slices.Sort(ratios)
	n := len(ratios)
	t.Logf("%d runs: from the tolerance met to the last verdict %.2f reductions in the median, %.2f in 9 of 10, %.2f "+
		"at most; %.1f snapshots a run",
		n, ratios[n/2], ratios[n*9/10], ratios[n-1], float64(snapshots)/float64(n))
	require.Less(t, ratios[n-1], 3.0)
}
