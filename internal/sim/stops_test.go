package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

var (
	stopsSeed  = flag.Uint64("stops.seed", 1, "first seed of TestFalseStops")
	stopsCount = flag.Uint64("stops.count", 80, "runs of TestFalseStops")
)

// trap draws a scenario in which a run could stop too early. Every block holds the solution except
// one corner, whose peer is a second away from the others and may be slow. The others have nothing
// left to do, and the values that they lack are in transit for a second, while frames are lost,
// duplicated and reordered.
func trap(seed uint64) (*Scenario, bool, error) {
	r := rand.New(rand.NewPCG(seed, 0x74726170))
	s := &Scenario{Seed: seed}
	s.Problem, s.What = drawProblem(r)
	s.Problem.Name = "trap"
	var err error
	for s.Partition.Peers() < 2 {
		if s.Partition, err = drawPartition(r, s.Problem); err != nil {
			return nil, false, err
		}
	}
	drawMethod(r, s)
	s.Scheme = pick(r, iterate.Asynchronous(), iterate.Asynchronous(), iterate.BoundedDelay(1+r.IntN(8)),
		iterate.Hybrid(problem.Clusters(s.Partition, s.Peers())))
	if s.Scheme.Name() == "hybrid" {
		s.Clusters = problem.Clusters(s.Partition, s.Peers())
	}
	s.Order = problem.Jacobi
	s.MaxSweeps = 0
	s.Stop = Stop{}
	s.Tolerance = pick(r, 1e-2, 1e-3, 1e-4)
	drawFaults(r, s)
	drawCosts(r, s)
	if r.IntN(4) == 0 {
		return s, false, nil // only random delays, slow peers and losses
	}
	corner := iterate.Rank(pick(r, 0, s.Peers()-1))
	s.Remote = []RemotePeer{{Rank: corner, Delay: time.Second}}
	s.Cuts, s.Patience = nil, 10*time.Minute
	s.Faults.Capacity, s.After.Capacity = 0, 0
	share := s.Problem.Points() / s.Peers()
	for i := range s.Costs { // a sweep takes some hundredths of the distance
		s.Costs[i].Point = time.Duration(10e6+r.IntN(40e6)) / time.Duration(max(1, share))
	}
	s.Repeat = 200 * time.Millisecond
	want, err := richardson.SolveSequential(s.Problem, problem.Jacobi, 1e-9, 0, 0, 0)
	if err != nil {
		return nil, false, err
	}
	box := s.Partition.Box(corner)
	n := s.Problem.N
	height := 0.05 + 0.3*r.Float64()
	p := s.Problem
	p.Initial = func(q problem.Point) float64 {
		var i [3]int
		for a := range p.Dimension {
			i[a] = int((q[a]-p.Lo[a])/p.Spacing(a)+0.5) - 1
		}
		u := want.U[i[0]+n[0]*(i[1]+n[1]*i[2])]
		for a := range 3 {
			if i[a] < box.Lo[a] || i[a] >= box.Hi[a] {
				return u
			}
		}
		return u + height
	}
	return s, true, nil
}

// A run never reports convergence wrongly: playAndCheck checks the assembled answer by the problem alone.
// The full count is
//
// go test ./internal/sim -run TestFalseStops -count=1 -v -timeout 2h -stops.count=10000
func TestFalseStops(t *testing.T) {
	if testing.Short() {
		*stopsCount = min(*stopsCount, 12)
	}
	var next, traps, snapshots, void atomic.Uint64
	var mu sync.Mutex
	var failures []string
	worst, longest := 0.0, time.Duration(0)
	play := func(seed uint64) {
		s, trapped, err := trap(seed)
		var r *Result
		if err == nil {
			r, err = playAndCheck(s)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failures = append(failures,
				fmt.Sprintf("seed %d: %v: %v\nreplay: go test ./internal/sim -run TestFalseStops -count=1 -v -stops.seed=%d "+
					"-stops.count=1", seed, s, err, seed))
			return
		}
		if trapped {
			traps.Add(1)
		}
		taken := uint64(r.Outcomes[0].Snapshots)
		snapshots.Add(taken)
		void.Add(max(taken, 1) - 1)
		worst, longest = max(worst, r.Evaluation.RelativeResidual/s.Tolerance), max(longest, r.Virtual)
	}
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < *stopsCount; i = next.Add(1) - 1 {
				play(*stopsSeed + i)
			}
		})
	}
	wait.Wait()
	for _, f := range failures {
		t.Error(f)
	}
	t.Logf("%d runs, %d of them traps: %d failed; %d snapshots, %d of them with a residual above the tolerance; the "+
		"largest residual is %.4f of the tolerance, the longest run %v",
		*stopsCount, traps.Load(), len(failures), snapshots.Load(), void.Load(), worst, longest.Round(time.Millisecond))
	if *stopsCount > 50 {
		require.Positive(t, traps.Load())
		require.Positive(t, void.Load(), "the traps catch guesses")
	}
}
