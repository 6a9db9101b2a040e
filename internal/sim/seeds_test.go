package sim

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

var (
	firstSeed = flag.Uint64("sim.seed", 1, "first seed of TestSeeds")
	seedCount = flag.Uint64("sim.count", 300, "number of seeds of TestSeeds")
)

// tally counts what the seeds of one call of TestSeeds covered.
type tally struct {
	events, lost, reconnects, snapshots, changes, moves, railed, stepping, planes, failed, played atomic.Uint64

	mu       sync.Mutex
	failures map[uint64]error
	schemes  map[string]int
	longest  time.Duration // of virtual time
}

// enough failures end a call of TestSeeds.
const enough = 6

// TestSeeds runs -sim.count drawn scenarios from seed -sim.seed on, on every core, and logs what
// they covered.
func TestSeeds(t *testing.T) {
	if testing.Short() {
		*seedCount = min(*seedCount, 25)
	}
	sum := &tally{failures: map[uint64]error{}, schemes: map[string]int{}}
	var next atomic.Uint64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < *seedCount && sum.failed.Load() < enough; i = next.Add(1) - 1 {
				sum.play(t, *firstSeed+i)
			}
		})
	}
	wait.Wait()
	var failed []uint64
	for seed := range sum.failures {
		failed = append(failed, seed)
	}
	slices.Sort(failed)
	for _, seed := range failed {
		t.Errorf("%v\nreplay: go test ./internal/sim -run 'TestSeeds$' -count=1 -v -sim.seed=%d -sim.count=1",
			sum.failures[seed], seed)
	}
	t.Logf("%d seeds; %d failed; %d events, %d frames lost, %d control connections made anew, %d snapshots that "+
		"failed, %d frames by adapters and %d moves of sessions, %d runs in time steps with %d changes of mode, %d planes "+
		"moved, %v the longest run",
		sum.played.Load(), len(failed),
		sum.events.Load(), sum.lost.Load(), sum.reconnects.Load(), sum.snapshots.Load(), sum.railed.Load(), sum.moves.Load(),
		sum.stepping.Load(), sum.changes.Load(), sum.planes.Load(), sum.longest.Round(time.Millisecond))
	if *seedCount >= 200 && len(failed) == 0 {
		require.Positive(t, sum.lost.Load(), "the faults are faults")
		require.Positive(t, sum.reconnects.Load())
		require.Positive(t, sum.snapshots.Load(), "estimates are wrong now and then")
		require.Positive(t, sum.railed.Load(), "adapters are used")
		require.Positive(t, sum.moves.Load(), "and fall")
		require.Positive(t, sum.stepping.Load(), "time steps")
		require.Positive(t, sum.changes.Load(), "changes of mode at their boundaries")
		require.Positive(t, sum.planes.Load(), "planes move")
		for _, name := range []string{"sync", "async", "delay:0", "delay:1", "hybrid"} {
			require.Positive(t, sum.schemes[name], name)
			require.Positive(t, sum.schemes[problem.Schwarz+" "+name], "Schwarz, %s", name)
		}
		for _, name := range []string{problem.SOR, problem.Multigrid} {
			require.Positive(t, sum.schemes[name], "%s over several peers", name)
		}
	}
}

func (y *tally) play(t *testing.T, seed uint64) {
	s, err := Draw(seed)
	var r *Result
	if err == nil {
		r, err = playAndCheck(s)
		if *seedCount == 1 {
			t.Logf("seed %d: %v", seed, s)
			if r != nil {
				t.Logf("%+v", r)
			}
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.played.Add(1)
	if err != nil {
		y.failed.Add(1)
		y.failures[seed] = fmt.Errorf("seed %d: %v: %w", seed, s, err)
		return
	}
	y.schemes[s.Scheme.Name()]++
	switch {
	case s.Method.Name == problem.Schwarz:
		y.schemes[problem.Schwarz+" "+s.Scheme.Name()]++
	case s.ofGrid() && s.Peers() > 1:
		y.schemes[s.Method.Name]++
	}
	y.longest = max(y.longest, r.Virtual)
	y.events.Add(r.Events)
	y.lost.Add(r.Lost)
	y.reconnects.Add(r.Reconnects)
	y.changes.Add(r.Changes)
	y.moves.Add(r.Moves)
	y.railed.Add(r.Railed)
	y.planes.Add(uint64(r.Planes))
	if s.Problem.Steps() > 0 {
		y.stepping.Add(1)
	}
	if n := r.Outcomes[0].Snapshots; n > 1 {
		y.snapshots.Add(uint64(n - 1))
	}
}

// TestOneSeedOneRun runs scenarios twice. Every step of every composite and the answer must be the
// same.
func TestOneSeedOneRun(t *testing.T) {
	for seed := range uint64(12) {
		var sums [2]uint64
		var results [2]*Result
		for k := range 2 {
			s, err := Draw(seed)
			require.NoError(t, err)
			c, err := New(s)
			require.NoError(t, err)
			h := mptest.NewTraceHash()
			c.Tracer = h
			results[k], err = c.runAndCheck()
			require.NoError(t, err, "seed %d", seed)
			results[k].Evaluation.Certificate = verify.Certificate{} // it contains a pointer, which would be printed
			sums[k] = h.Sum()
			require.True(t, h.Steps > 0 || s.Peers() == 1)
		}
		require.Equal(t, sums[0], sums[1], "seed %d: the steps differ", seed)
		forget(results[0], results[1])
		require.Equal(t, fmt.Sprintf("%+v", results[0]), fmt.Sprintf("%+v", results[1]), "seed %d", seed)
	}
}

// forget removes the parts of equal results that differ in addresses.
func forget(all ...*Result) {
	for _, r := range all {
		r.Evaluation.Certificate = verify.Certificate{}
	}
}

func TestDrawnScenariosAreSound(t *testing.T) {
	dims := map[int]int{}
	orders := map[problem.Order]int{}
	peers := map[int]int{}
	for seed := range uint64(500) {
		s, err := Draw(seed)
		require.NoError(t, err)
		require.NoError(t, s.Partition.Validate(s.Problem.N), "seed %d", seed)
		require.LessOrEqual(t, s.Peers(), 8)
		require.LessOrEqual(t, s.Lag, max(s.Every, 1))
		dims[s.Problem.Dimension]++
		orders[s.Order]++
		peers[s.Peers()]++
	}
	require.Len(t, dims, 3)
	require.Len(t, orders, 2)
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8} {
		require.Positive(t, peers[n], "%d peers", n)
	}
}
