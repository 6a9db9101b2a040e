package simulate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// suspected is the silence after which the runs of kept give up a machine.
const suspected = 300 * time.Millisecond

// kept returns a run of eight machines with so many keepers, and its result without losses. It takes some seconds of
// virtual time, longer than elections and recoveries.
func kept(t testing.TB, s iterate.Scheme, keepers int) (Config, *Result) {
	t.Helper()
	m := gigabit(8)
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 1600
	}
	run := runOf(t, m, membrane(7), s, 8)
	run.Recover = &Recovery{Suspect: suspected, Spares: 100, Keepers: keepers}
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Empty(t, alone.Losses)
	require.Empty(t, alone.Leaders)
	require.Empty(t, alone.CutOff)
	require.Greater(t, alone.Virtual, 2*time.Second)
	return run, alone
}

// ranksOf returns the ranks of losses, in order.
func ranksOf(r *Result) (ranks []int) {
	for _, l := range r.Losses {
		ranks = append(ranks, l.Rank)
	}
	slices.Sort(ranks)
	return ranks
}

// requireOneRun requires that no two processes have led the run at once: the keepers have decided one term of each
// number, and between the notice of a loss and the end of its recovery they have agreed to an epoch.
func requireOneRun(t *testing.T, r *Result) {
	t.Helper()
	for i, term := range r.Terms {
		require.Equal(t, i+1, term.Number, "%+v", r.Terms)
		require.Contains(t, term.Keepers, term.Leader)
	}
	for _, l := range r.Losses {
		require.True(t, l.Resumed == 0 || slices.ContainsFunc(r.Terms, func(term Term) bool {
			return term.Epoch > 0 && l.Noticed <= term.At && term.At < l.Resumed
		}), "%+v", l)
	}
}

// A majority of the keepers decides who goes on, and without whom.
func TestKeepers(t *testing.T) {
	const half = time.Second
	killed := func(at time.Duration, rank int) cluster.Event { return cluster.Event{At: at, Rank: rank, Killed: true} }
	launcher := cluster.Event{At: half, Launcher: true, Killed: true}
	cut := func(until time.Duration, withLauncher bool, ranks ...int) cluster.Event {
		return cluster.Event{At: half, Until: until, Apart: ranks, Launcher: withLauncher}
	}
	for name, c := range map[string]struct {
		keepers int
		events  []cluster.Event
		leaders []int
		lost    []int
		cutOff  []int
		fails   string
	}{
		"no keepers, the launcher is killed": {keepers: 1, events: []cluster.Event{launcher}, fails: "the run ended with it"},
		"the launcher is killed":             {keepers: 3, events: []cluster.Event{launcher}, leaders: []int{0}},
		"the launcher and the next leader are killed": {
			keepers: 3, events: []cluster.Event{launcher, killed(2*half, 0)}, leaders: []int{0, 1}, lost: []int{0},
		},
		"two of five keepers are killed": {
			keepers: 5, events: []cluster.Event{launcher, killed(half, 0)}, leaders: []int{1}, lost: []int{0},
		},
		"two of three keepers are killed": {keepers: 3, events: []cluster.Event{launcher, killed(half, 0)}, fails: ErrCutOff.Error()},
		"a keeper is killed":              {keepers: 3, events: []cluster.Event{killed(half, 0)}, lost: []int{0}},
		"a keeper is killed, then the launcher": {
			keepers: 3, events: []cluster.Event{killed(half/8, 0), launcher}, leaders: []int{0}, lost: []int{0}, // the new peer is a keeper
		},
		"a cut shorter than --suspect": {keepers: 3, events: []cluster.Event{cut(half+suspected*9/10, false, 0, 1, 2, 3)}},
		"no keepers, a cut":            {keepers: 1, events: []cluster.Event{cut(0, false, 6, 7)}, lost: []int{6, 7}, cutOff: []int{6, 7}},
		"a cut, most keepers are with the launcher": {
			keepers: 3, events: []cluster.Event{cut(0, false, 1, 6, 7)}, lost: []int{1, 6, 7}, cutOff: []int{1, 6, 7},
		},
		"a cut, most keepers are not with the launcher": {
			keepers: 3, events: []cluster.Event{cut(0, true, 6, 7)}, leaders: []int{0}, lost: []int{6, 7},
			cutOff: []int{Launcher, 6, 7},
		},
		"a cut that ends, most keepers are not with the launcher": {
			keepers: 3, events: []cluster.Event{cut(2*half, true, 6, 7)}, leaders: []int{0}, lost: []int{6, 7},
			cutOff: []int{Launcher, 6, 7},
		},
		"a cut between four and four": {
			keepers: 5, events: []cluster.Event{cut(0, true, 2, 3, 4, 5)}, lost: []int{0, 1, 6, 7}, cutOff: []int{0, 1, 6, 7},
		},
		"a cut, and no side has most keepers": {
			keepers: 3, events: []cluster.Event{killed(half, 1), cut(0, true, 6, 7)}, fails: ErrCutOff.Error(),
		},
		"all are cut from the launcher, which decides alone": {
			keepers: 1, events: []cluster.Event{cut(0, true)}, fails: "no peer is left that has values",
		},
	} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			t.Run(name+", "+s.Name(), func(t *testing.T) {
				run, alone := kept(t, s, c.keepers)
				run.Model.Events = c.events
				r, err := Run(context.Background(), run)
				requireOneRun(t, r)
				if c.fails != "" {
					require.ErrorContains(t, err, c.fails)
					return
				}
				require.NoError(t, err)
				require.Equal(t, iterate.Converged, r.Reason)
				require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
				require.Equal(t, c.lost, ranksOf(r))
				var leaders, cutOff []int
				for _, l := range r.Leaders {
					leaders = append(leaders, l.Rank)
					require.Greater(t, l.Led, l.Elected)
				}
				for _, p := range r.CutOff {
					cutOff = append(cutOff, p.Rank)
				}
				slices.Sort(cutOff)
				require.Equal(t, c.leaders, leaders)
				require.Equal(t, c.cutOff, cutOff)
				if len(c.lost) == 0 && s.Lockstep() {
					require.Equal(t, alone.U, r.U, "nothing is solved again")
				}
			})
		}
	}
}

// The times of an election are those of its messages. The loss of the launcher is known after a latency. A connection
// takes seven latencies until the first message, and every further message one. Peers ask again after 50 ms.
func TestTimesOfAnElection(t *testing.T) {
	run, _ := kept(t, iterate.Asynchronous(), 3)
	const at = time.Second
	latency := run.Model.Networks[0].Latency
	run.Model.Events = []cluster.Event{{At: at, Launcher: true, Killed: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, []Leader{{Rank: 0, Elected: at + 11*latency, Led: at + 16*latency + 50*time.Millisecond}}, r.Leaders)
	var first, second []string
	for _, term := range r.Terms {
		if len(term.Keepers) == 3 && first == nil {
			first = term.Keepers
		}
		second = term.Keepers
	}
	require.Equal(t, []string{"process 0 of rank -1", "process 1 of rank 0", "process 2 of rank 1"}, first)
	require.Equal(t, []string{"process 1 of rank 0", "process 2 of rank 1", "process 3 of rank 2"}, second)
}

// A decision of three keepers delays a recovery by the way to another one and back, twice, and by the connection.
func TestTimeOfADecision(t *testing.T) {
	var resumed []time.Duration
	for _, keepers := range []int{1, 3} {
		run, _ := kept(t, iterate.Synchronous(), keepers)
		run.Model.Events = []cluster.Event{{At: time.Second, Rank: 5, Killed: true}}
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Len(t, r.Losses, 1)
		require.Equal(t, time.Second+run.Model.Networks[0].Latency, r.Losses[0].Noticed)
		resumed = append(resumed, r.Losses[0].Resumed)
		require.Equal(t, 1, r.Terms[len(r.Terms)-1].Epoch)
	}
	require.Equal(t, 10*20*time.Microsecond, resumed[1]-resumed[0])
}

// The result does not depend on the number of threads.
func TestElectionsOnThreads(t *testing.T) {
	run, _ := kept(t, iterate.Asynchronous(), 3)
	run.Model.Events = []cluster.Event{
		{At: time.Second / 4, Until: 3 * time.Second, Apart: []int{6, 7}, Launcher: true}, {At: 2 * time.Second, Rank: 3, Killed: true},
	}
	run.Threads = 1
	one, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Threads = 4
	four, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, one, four)
}

// A verdict counts only if the process that leads reaches all ranks. Else those that it does not reach are replaced.
func TestCutBeforeTheVerdict(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run, alone := kept(t, s, 3)
		run.Model.Events = []cluster.Event{{At: alone.Virtual - 1, Apart: []int{5, 6}}}
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Equal(t, []int{5, 6}, ranksOf(r))
		require.Greater(t, r.Virtual, r.Losses[0].Resumed)
		require.Equal(t, alone.Virtual-1+suspected, r.Losses[0].Noticed)
		run.Model.Events = []cluster.Event{{At: alone.Virtual - 1, Launcher: true, Killed: true}}
		r, err = Run(context.Background(), run)
		require.NoError(t, err)
		require.Empty(t, r.Losses)
		require.Equal(t, r.Leaders[0].Led, r.Virtual, "the peers send their results to the new leader")
	}
}
