package buddy_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var long = flag.Bool("long", false, "lose peers before every event and every pair of events")

// run is a run in virtual time that keeps iterates and loses peers.
type run struct {
	config problem.Config
	seed   uint64

	// Results.
	events int    // of the last epoch
	again  int    // epochs that began with the starting values
	about  string // description of the method by rank 0
	kept   int    // iterates that all peers have kept
	resume []iterate.Iteration
	u      []float64
	ends   []iterate.Outcome // by rank
	states map[string]string // of the kept iterates, by rank and iterate
}

// play plays the run to its end. One peer is lost before an event of each epoch but the last; a loss after the end of
// its epoch does not happen.
func (r *run) play(t require.TestingT, losses ...[2]int) {
	configs := solvertest.ConfigsFor(r.config)
	peers := len(configs)
	stores := make([]buddy.Store, peers)
	to := buddy.Of(make([]string, peers))
	r.again, r.kept, r.resume, r.states = 0, 0, nil, map[string]string{}
	for epoch := 0; ; epoch++ {
		n, err := solvertest.NewNetwork(r.seed+uint64(epoch), solver.New, slices.Clone(configs))
		require.NoError(t, err)
		n.Segment, n.Loss, n.Duplicate = 256, 0.05, 0.05
		values := func(i int) []float64 {
			u := make([]float64, n.Peers[i].Box().Points())
			n.Peers[i].Solution(u)
			return u
		}
		complete := iterate.Iteration(0) // at some peer
		n.Keep = func(i int, op iterate.Op) {
			k := iterate.Iteration(op.Label)
			if op.Kind == iterate.OpKept {
				complete = k
				stores[i].Complete(k, n.Peers[i].Box().Points(), n.Peers[i].Solution)
				r.kept++
				return
			}
			stores[i].Begin(k, op.Message)
			r.states[fmt.Sprintf("rank %d, iterate %d", i, k)] = string(op.Message)
			c := &buddy.Copy{Iterate: k, State: op.Message, Values: values(i)}
			stores[to[i]].Add(iterate.Rank(i), c)
		}
		r.events = 0
		lost := -1
		n.Until = func() bool {
			if r.events++; epoch < len(losses) && r.events == losses[epoch][0]+1 {
				lost = losses[epoch][1]
			}
			return lost >= 0
		}
		require.NoError(t, n.Run())
		require.NoError(t, n.Failed)
		if lost < 0 {
			r.u, r.ends, r.about = n.Assemble(r.config.Problem), nil, n.Peers[0].Describe()
			for _, q := range n.Peers {
				r.ends = append(r.ends, q.Outcome())
			}
			return
		}
		held := make([]*buddy.Holding, peers)
		for i := range stores {
			if i == lost {
				stores[i].Discard()
				continue
			}
			stores[i].Freeze(n.Peers[i].Progress().Sweep, values(i))
			h := stores[i].Holding()
			held[i] = &h
			points := 0
			for _, list := range h.Others {
				points += len(list)
			}
			require.LessOrEqual(t, len(h.Own)+points, 4)
		}
		k, from, ok := buddy.Newest(held)
		require.GreaterOrEqual(t, k, complete, "a complete iterate is not lost")
		if !ok {
			r.again++
			configs = solvertest.ConfigsFor(r.config)
			for i := range stores {
				stores[i].Discard()
			}
			continue
		}
		r.resume = append(r.resume, k)
		for i := range stores {
			c := stores[i].Own(k)
			if i == lost {
				c = stores[from[iterate.Rank(i)]].Other(iterate.Rank(i), k)
			}
			stores[i].Resume(c)
			configs[i].State, configs[i].Initial = c.State, slices.Clone(c.Values)
		}
	}
}

// same checks that a run has ended as the undisturbed one, bit by bit.
func (r *run) same(t require.TestingT, want *run, what string) {
	solvertest.RequireSameBits(t, want.u, r.u)
	for i := range r.ends {
		require.Equal(t, want.ends[i].Reason, r.ends[i].Reason, what)
		require.Equal(t, want.ends[i].Iterate, r.ends[i].Iterate, what)
		require.Equal(t, want.ends[i].Sweeps, r.ends[i].Sweeps, what)
		require.Equal(t, want.ends[i].Residual, r.ends[i].Residual, what)
		require.Equal(t, want.ends[i].Work, r.ends[i].Work, what)
	}
	for at, state := range r.states {
		if other, both := want.states[at]; both {
			require.Equal(t, []byte(other), []byte(state), "%s: %s", what, at)
		}
	}
}

func methods() []problem.MethodConfig {
	return []problem.MethodConfig{
		{Name: problem.Richardson}, {Name: problem.SOR}, {Name: problem.Multigrid}, {Name: problem.SOR, Omega: 1.5},
		{Name: problem.SOR, Next: problem.Multigrid}, {Name: problem.Multigrid, Next: problem.SOR},
	}
}

// A run that keeps iterates ends with the same bits after the same number of sweeps as one that keeps none, and so does
// one that loses a peer, whatever the problem, partition, method and scheme in lockstep.
func TestLossesKeepTheBits(t *testing.T) {
	resumed := 0
	solvertest.CheckUntil(t, func() bool { return resumed > 20 }, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Tolerance: 1e-6, MaxSweeps: 3000,
			Method: rapid.SampledFrom(methods()).Draw(t, "method"),
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)}).Draw(t, "scheme"),
		}
		if c.Method.Name == problem.Richardson && rapid.Bool().Draw(t, "fixed") {
			c.CheckEvery = iterate.Iteration(rapid.IntRange(1, 20).Draw(t, "every"))
			c.Lag = iterate.Iteration(rapid.IntRange(0, int(c.CheckEvery)).Draw(t, "lag"))
		}
		seed := rapid.Uint64Range(0, 1<<32).Draw(t, "seed")
		if (c.Method.Name == problem.SOR || c.Method.Name == problem.Multigrid) && c.Scheme.Asynchronous() {
			c.Scheme = iterate.Synchronous()
		}
		want := &run{config: c, seed: seed}
		want.play(t)
		c.KeepEvery = time.Duration(rapid.IntRange(1, 5000).Draw(t, "keep every")) * time.Microsecond
		got := &run{config: c, seed: seed}
		got.play(t)
		got.same(t, want, "iterates are kept")
		peers := c.Partition.Peers()
		var losses [][2]int
		for range rapid.IntRange(1, 3).Draw(t, "losses") {
			losses = append(losses, [2]int{
				rapid.IntRange(0, got.events).Draw(t, "event"), rapid.IntRange(0, peers-1).Draw(t, "rank"),
			})
		}
		got.play(t, losses...)
		got.same(t, want, fmt.Sprint("lost: ", losses))
		resumed += len(got.resume)
	})
}

// A peer may be lost before any event, also after the verdict.
func TestLossBeforeEveryEvent(t *testing.T) {
	for _, m := range methods() {
		t.Run(fmt.Sprint(m.Name, m.Omega, m.Next), func(t *testing.T) {
			c := problem.Config{
				Problem: solvertest.Membrane([3]int{8, 8, 8}, 3), Method: m, Tolerance: 1e-9,
				Scheme: iterate.Synchronous(),
			}
			if m.Next != "" { // a problem that is hard for both methods
				c.Problem, c.MaxSweeps = solvertest.Islands(15, 1e4), 80
			}
			c.Partition = solvertest.SlabsOf(t, c.Problem, 3)
			want := &run{config: c, seed: 3}
			want.play(t)
			c.KeepEvery = time.Nanosecond
			got := &run{config: c, seed: 3}
			got.play(t)
			require.Positive(t, got.kept)
			if m.Next != "" {
				require.Contains(t, got.about, "from sweep")
			}
			want.states = got.states
			events, stride, resumed := got.events, 17, 0
			if testing.Short() {
				if stride = 41; m.Next != "" { // of thousands of events
					stride = 331
				}
			} else if *long {
				stride = 1
			}
			for k := 0; k < events; k += stride {
				loss := [2]int{k, k % 3}
				got.play(t, loss)
				got.same(t, want, fmt.Sprint("lost: ", loss))
				resumed += len(got.resume)
				second := [2]int{(7 * k) % got.events, (k / 3) % 3}
				got.play(t, loss, second)
				got.same(t, want, fmt.Sprint("lost: ", loss, second))
			}
			require.Greater(t, resumed, events/stride/3, "most runs go on from a kept iterate")
			t.Logf("%d events; %d of %d runs went on from a kept iterate", events, resumed, (events+stride-1)/stride)
		})
	}
}

// In a long run the checks that measure the residual are far apart, and a run that goes on measures at the same ones.
func TestScheduleOfChecksIsKept(t *testing.T) {
	p := solvertest.String1D(40)
	c := problem.Config{
		Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Tolerance: 1e-6, Scheme: iterate.Synchronous(),
		KeepEvery: time.Nanosecond,
	}
	want := &run{config: c, seed: 3}
	want.play(t)
	require.Greater(t, len(want.states), 20)
	for part := range 12 {
		got := &run{config: c, seed: 3}
		loss := [2]int{(part + 1) * want.events / 13, part % 2}
		got.play(t, loss)
		got.same(t, want, fmt.Sprint("lost: ", loss))
		require.Len(t, got.resume, 1)
	}
}
