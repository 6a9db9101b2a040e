package repair_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var long = flag.Bool("long", false, "lose peers before every pair of events")

// lossyRun is a method and scheme, and how many more sweeps than undisturbed a loss may cost.
type lossyRun struct {
	scheme string
	method problem.MethodConfig
	extra  iterate.Iteration
}

func lossyRuns() []lossyRun {
	schwarz := problem.MethodConfig{Name: problem.Schwarz}
	return []lossyRun{
		{"sync", problem.MethodConfig{}, 5},
		{"async", problem.MethodConfig{}, 20},
		{"delay:2", problem.MethodConfig{}, 20},
		{"hybrid", problem.MethodConfig{}, 20},
		{"sync", problem.MethodConfig{Name: problem.SOR}, 10},
		{"sync", problem.MethodConfig{Name: problem.Multigrid}, 2},
		{"sync", schwarz, 4},
		{"async", schwarz, 10},
		{"delay:2", schwarz, 15},
		{"hybrid", schwarz, 10},
	}
}

func (l *lossyRun) name() string { return cmp.Or(l.method.Name, problem.Richardson) + " " + l.scheme }

// of returns the run on slabs of a small cube.
func (l *lossyRun) of(t require.TestingT, peers int) *run {
	c := problem.Config{Problem: solvertest.Membrane([3]int{8, 8, 8}, 3), Method: l.method, Tolerance: 1e-2}
	c.Partition = solvertest.SlabsOf(t, c.Problem, peers)
	switch l.scheme {
	case "sync":
		c.Scheme = iterate.Synchronous()
		if l.method.Name == "" {
			c.CheckEvery = 1
		}
	case "async":
		c.Scheme = iterate.Asynchronous()
	case "delay:2":
		c.Scheme = iterate.BoundedDelay(2)
	case "hybrid":
		clusters := make([]int, peers)
		clusters[peers-1] = 1
		c.Scheme = iterate.Hybrid(clusters)
	}
	return &run{config: c, seed: 5, exact: exactly(t, c.Problem), local: c.Tolerance}
}

// A peer may be lost before any event, also after the verdict: the run goes on from the repaired vector and ends with
// an answer within the tolerance, after few more sweeps.
func TestLossBeforeEveryEvent(t *testing.T) {
	for i, l := range lossyRuns() {
		t.Run(l.name(), func(t *testing.T) {
			r, stride := l.of(t, 3), 5
			r.play(t)
			events, undisturbed := r.events, slices.Max(r.sweeps)
			r.check(t, undisturbed, "undisturbed")
			if testing.Short() {
				stride = 41
			} else if *long {
				stride = 1
			}
			worst := undisturbed
			for k := i % stride; k < events; k += stride {
				rank := iterate.Rank(k % 3)
				r.play(t, loss{event: k, ranks: []iterate.Rank{rank}})
				r.check(t, undisturbed+l.extra, fmt.Sprintf("rank %d lost before event %d", rank, k))
				worst = max(worst, slices.Max(r.sweeps))
			}
			t.Logf("%d events, %d sweeps, at most %d with a loss", events, undisturbed, worst)
		})
	}
}

// Two losses, the second in the epoch that the first began, are survived in the same way.
func TestLossBeforeEveryPairOfEvents(t *testing.T) {
	for i, l := range lossyRuns() {
		t.Run(l.name(), func(t *testing.T) {
			r, stride := l.of(t, 2), 53
			r.play(t)
			undisturbed := slices.Max(r.sweeps)
			if testing.Short() {
				stride = 151
			} else if *long {
				stride = 1
			}
			worst := undisturbed
			for first := i % stride; ; first += stride {
				rank := iterate.Rank(first % 2)
				r.play(t, loss{event: first, ranks: []iterate.Rank{rank}})
				events := r.events
				if r.epochs == 1 {
					break // the run ends before this event
				}
				for second := i % stride; second < events; second += stride {
					other := iterate.Rank(second % 2)
					r.play(t, loss{event: first, ranks: []iterate.Rank{rank}}, loss{event: second, ranks: []iterate.Rank{other}})
					r.check(t, undisturbed+2*l.extra,
						fmt.Sprintf("rank %d lost before event %d, rank %d before event %d", rank, first, other, second))
					worst = max(worst, slices.Max(r.sweeps))
				}
			}
			t.Logf("%d sweeps, at most %d with two losses", undisturbed, worst)
		})
	}
}

// anyLossy draws a method and a scheme that fit a run.
func anyLossy(t *rapid.T, c *problem.Config) {
	c.Method.Name = rapid.SampledFrom([]string{
		problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz,
	}).Draw(t, "method")
	if c.Method.Name == problem.Schwarz {
		c.Method.Overlap = rapid.IntRange(0, 2).Draw(t, "overlap")
	}
	peers := c.Partition.Peers()
	clusters := make([]int, peers)
	for i := range clusters {
		clusters[i] = i % 2
	}
	c.Scheme = rapid.SampledFrom([]iterate.Scheme{
		iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Asynchronous(), iterate.BoundedDelay(3),
		iterate.Hybrid(clusters),
	}).Draw(t, "scheme")
	if c.Method.Name == problem.SOR || c.Method.Name == problem.Multigrid {
		c.Scheme = iterate.Synchronous()
	}
}

// Any peers but one may be lost at any events, several at once, of any problem with an M-matrix.
func TestAnyLosses(t *testing.T) {
	repaired := 0
	solvertest.CheckUntil(t, func() bool { return repaired > 20 }, func(t *rapid.T) {
		p, part := anyRun(t)
		if part.Peers() > solvertest.MostPeers {
			part = solvertest.SlabsOf(t, p, 2)
		}
		c := problem.Config{Problem: p, Partition: part, Tolerance: 1e-4}
		anyLossy(t, &c)
		r := &run{config: c, seed: rapid.Uint64().Draw(t, "seed"), exact: exactly(t, p)}
		var losses []loss
		for range rapid.IntRange(1, 3).Draw(t, "losses") {
			l := loss{event: rapid.IntRange(0, 1500).Draw(t, "event"), noticed: rapid.IntRange(0, 200).Draw(t, "noticed")}
			n := rapid.IntRange(1, part.Peers()-1).Draw(t, "lost at once")
			all := make([]iterate.Rank, part.Peers())
			for i := range all {
				all[i] = iterate.Rank(i)
			}
			l.ranks = rapid.Permutation(all).Draw(t, "ranks")[:n]
			losses = append(losses, l)
		}
		r.play(t, losses...)
		r.check(t, math.MaxInt64, "")
		repaired += r.epochs - 1
	})
}

// A lost block of a long run costs no sweeps: the repaired values are no worse than those that were lost.
func TestRepairCostsNoSweeps(t *testing.T) {
	for name, c := range map[string]struct {
		parts [3]int
		rank  iterate.Rank
	}{
		"a corner":     {[3]int{2, 2, 2}, 3},
		"the interior": {[3]int{3, 3, 3}, 13},
	} {
		t.Run(name, func(t *testing.T) {
			n := 20
			if testing.Short() {
				n = 12
			} else if *long {
				n = 32
			}
			p := solvertest.Membrane([3]int{n, n, n}, 3)
			part, err := problem.GridOf(p.N, c.parts)
			require.NoError(t, err)
			r := &run{exact: exactly(t, p), local: 1e-6, seed: 1, config: problem.Config{
				Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: 1e-6, CheckEvery: 1,
			}}
			r.play(t)
			events, undisturbed := r.events, r.sweeps[0]
			for _, percent := range []int{25, 50, 95} {
				r.play(t, loss{event: events * percent / 100, ranks: []iterate.Rank{c.rank}})
				r.check(t, undisturbed+2, fmt.Sprintf("lost at %d %%", percent))
				t.Logf("%d of %d sweeps, lost at %d %%", slices.Max(r.sweeps), undisturbed, percent)
			}
		})
	}
}

// Planes may move between slabs when a peer is lost, and be on their way: nobody holds them then.
func TestLossWhilePlanesMove(t *testing.T) {
	for i, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(s.Name(), func(t *testing.T) {
			p := solvertest.Membrane([3]int{4, 4, 16}, 3)
			r := &run{exact: exactly(t, p), local: 1e-2, seed: 5, config: problem.Config{
				Problem: p, Partition: solvertest.SlabsOf(t, p, 4), Scheme: s, Tolerance: 1e-2,
				Balance: true, BalanceWindow: time.Millisecond,
			}}
			r.play(t)
			events, undisturbed, stride := r.events, slices.Max(r.sweeps), 7
			worst := undisturbed
			if testing.Short() {
				stride = 61
			} else if *long {
				stride = 1
			}
			for k := i % stride; k < events; k += stride {
				lost := []iterate.Rank{iterate.Rank(k % 4)}
				if k%3 == 0 {
					lost = append(lost, (lost[0]+1)%4)
				}
				r.play(t, loss{event: k, ranks: lost, noticed: k % 50})
				r.check(t, undisturbed*5/4, fmt.Sprintf("ranks %v lost before event %d", lost, k))
				worst = max(worst, slices.Max(r.sweeps))
			}
			t.Logf("%d events, %d times planes were on their way, %d sweeps, %d with a loss", events, r.transit, undisturbed,
				worst)
			require.True(t, testing.Short() || r.transit > 0, "no plane was on its way at a loss")
		})
	}
}
