package peer

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("no way to 1"), errors.New("no way to 2"), fmt.Errorf("again: %w", errors.New("no way to 1")))
	require.Equal(t, "no way to 1; no way to 2; again: no way to 1", oneLine(err))
	require.Equal(t, "a: b", oneLine(errors.Join(errors.New("a: b"), errors.New("b"))))
}

func TestLostRank(t *testing.T) {
	lost := &p2psap.PeerLostError{Peer: nodeName(12, 0)}
	require.Equal(t, 12, lostRank(fmt.Errorf("x: %w", lost)))
	require.Equal(t, 12, lostRank(&p2psap.PeerLostError{Peer: nodeName(12, 3)}))
	require.Equal(t, 3, lostRank(&runner.NeighbourError{Rank: 3, Err: p2psap.ErrPeerClosed}))
	require.Equal(t, -1, lostRank(&runner.NeighbourError{Rank: 3, Err: errors.New("malformed")}))
	require.Equal(t, -1, lostRank(&p2psap.PeerLostError{Peer: "somebody"}))
}

func TestUnsoundAssignmentsAreRefused(t *testing.T) {
	type given struct {
		peer   *peer
		assign rendezvous.Assign
	}
	sound := func() *given {
		return &given{
			&peer{welcome: rendezvous.Welcome{Rank: 1, Spec: rendezvous.Spec{N: [3]int{4, 4, 4}, Threads: 1}}},
			rendezvous.Assign{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 2, 4}},
				Members: []rendezvous.Member{{}, {Rank: 1}}, ProblemBytes: 10,
				Repair: &rendezvous.Repair{Holes: []problem.Box{{Hi: [3]int{4, 4, 2}}}}},
		}
	}
	check := func(g *given) error { return g.peer.validateAssignment(&g.assign) }
	require.NoError(t, check(sound()))
	for name, change := range map[string]func(g *given){
		"no cuts":        func(g *given) { g.assign.Cuts = [3][]int{} },
		"cuts of others": func(g *given) { g.assign.Cuts[2] = []int{0, 2, 5} },
		"falling cuts":   func(g *given) { g.assign.Cuts[2] = []int{0, 4, 4} },
		"no points":      func(g *given) { g.peer.welcome.Spec.N = [3]int{0, 4, 4} },
		"huge grid":      func(g *given) { g.peer.welcome.Spec.N = [3]int{1 << 24, 1 << 24, 1 << 24} },
		"rank":           func(g *given) { g.peer.welcome.Rank = 2 },
		"negative rank":  func(g *given) { g.peer.welcome.Rank = -1 },
		"members":        func(g *given) { g.assign.Members = nil },
		"members twice":  func(g *given) { g.assign.Members[1].Rank = 0 },
		"members beyond": func(g *given) { g.assign.Members[1].Rank = 2 },
		"members below":  func(g *given) { g.assign.Members[0].Rank = -1 },
		"bytes":          func(g *given) { g.assign.ProblemBytes = -1 },
		"many bytes":     func(g *given) { g.assign.ProblemBytes = 1 << 60 },
		"no problem":     func(g *given) { g.assign.ProblemBytes = 0 },
		"threads":        func(g *given) { g.peer.welcome.Spec.Threads = 0 },
		"empty hole":     func(g *given) { g.assign.Repair.Holes[0].Hi[2] = 0 },
		"outer hole":     func(g *given) { g.assign.Repair.Holes[0].Hi[0] = 5 },
		"outer face":     func(g *given) { g.assign.Repair.Around = []problem.Box{{Lo: [3]int{-1, 0, 0}, Hi: [3]int{1, 1, 1}}} },
	} {
		g := sound()
		change(g)
		require.Error(t, check(g), name)
	}
	g := sound()
	g.peer.problem, g.peer.cut = &problem.Problem{N: g.peer.welcome.Spec.N}, problem.Partition{Cuts: g.assign.Cuts}
	g.assign.ProblemBytes = 0
	require.NoError(t, check(g), "the peer has the problem")
	g.assign.Cuts = [3][]int{{0, 4}, {0, 4}, {0, 3, 4}}
	require.ErrorContains(t, check(g), "divided otherwise")
}

// News of some peers completes the list of all. Addresses of former epochs are not used again.
func TestNewsOfPeers(t *testing.T) {
	p := &peer{}
	require.Error(t, p.validateMembers([]rendezvous.Member{{Rank: 1}}, 2), "the first list is complete")
	first := []rendezvous.Member{
		{Rank: 0, Host: "a", Control: "a:1"}, {Rank: 1, Host: "b", Control: "b:1"}, {Rank: 2, Host: "c", Control: "c:1"},
	}
	require.NoError(t, p.validateMembers(first, 3))
	require.Equal(t, first, p.merge(first))
	news := []rendezvous.Member{{Rank: 1, Host: "d", Control: "d:2"}}
	require.NoError(t, p.validateMembers(news, 3))
	want := []rendezvous.Member{{Rank: 0, Host: "a"}, {Rank: 1, Host: "d", Control: "d:2"}, {Rank: 2, Host: "c"}}
	require.Equal(t, want, p.merge(news))
	require.Equal(t, "a:1", first[0].Control, "the list of the epoch before is as it was")
	require.Error(t, p.validateMembers([]rendezvous.Member{{Rank: 3}}, 3))
	require.NoError(t, p.validateMembers(nil, 3))
}

// A host is oversubscribed if its peers have more threads than processors. Peers of other hosts do not count.
func TestCrowded(t *testing.T) {
	e := &endpoint{p: &peer{welcome: rendezvous.Welcome{Rank: 2, Spec: rendezvous.Spec{Threads: 1}}}, assign: &rendezvous.Assign{}}
	for _, h := range []string{"a", "b", "b", "b", "c"} {
		e.assign.Members = append(e.assign.Members, rendezvous.Member{Host: h})
	}
	require.True(t, e.oversubscribed(2))
	require.False(t, e.oversubscribed(3))
	e.p.welcome.Spec.Threads = 2
	require.True(t, e.oversubscribed(5))
	require.False(t, e.oversubscribed(6))
	e.p.welcome.Rank = 0
	require.False(t, e.oversubscribed(2))
}

// After a loss, the peers that wait for a lost one stop, and those of an oversubscribed host. Others relax on.
func TestWhoStopsAfterALoss(t *testing.T) {
	sites := iterate.Hybrid([]int{0, 0, 1, 1})
	all := runtime.NumCPU()
	for name, c := range map[string]struct {
		scheme   iterate.Scheme
		threads  int // of a peer
		slowdown float64
		lost     []int
		change   func(c *problem.Config)
		stops    []bool // by rank
	}{
		"sync":                 {scheme: iterate.Synchronous(), stops: []bool{true, true, true, true}},
		"delay:0":              {scheme: iterate.BoundedDelay(0), stops: []bool{true, true, true, true}},
		"async":                {scheme: iterate.Asynchronous(), stops: []bool{false, false, false, false}},
		"delay:3":              {scheme: iterate.BoundedDelay(3), stops: []bool{false, false, false, false}},
		"hybrid":               {scheme: sites, lost: []int{1}, stops: []bool{true, true, false, false}},
		"hybrid, other site":   {scheme: sites, lost: []int{2}, stops: []bool{false, false, true, true}},
		"hybrid, both sites":   {scheme: sites, lost: []int{0, 3}, stops: []bool{true, true, true, true}},
		"hybrid, no loss":      {scheme: sites, stops: []bool{false, false, false, false}},
		"hybrid, unknown rank": {scheme: sites, lost: []int{-1, 9}, stops: []bool{false, false, false, false}},
		"one cluster":          {scheme: iterate.Hybrid([]int{5, 5, 5, 5}), stops: []bool{true, true, true, true}},
		"oversubscribed":       {scheme: sites, threads: all, lost: []int{1}, stops: []bool{true, true, true, true}},
		"oversubscribed, slowed down": {
			scheme: sites, threads: all, slowdown: 4, lost: []int{1}, stops: []bool{true, true, false, false},
		},
		"planes move": {
			scheme: iterate.Asynchronous(), change: func(c *problem.Config) { c.Balance = true },
			stops: []bool{true, true, true, true},
		},
		"time steps": {
			scheme: iterate.Asynchronous(), change: func(c *problem.Config) { c.Problem.Evolution = &problem.Evolution{Steps: 2} },
			stops: []bool{true, true, true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &rendezvous.Assign{Slowdown: c.slowdown}
			for rank := range c.stops {
				a.Members = append(a.Members, rendezvous.Member{Rank: rank, Host: []string{"north", "south"}[rank/2]})
			}
			e := &epoch{
				endpoint: &endpoint{p: &peer{welcome: rendezvous.Welcome{Spec: rendezvous.Spec{Threads: c.threads}}}, assign: a},
				work:     &work{config: problem.Config{Scheme: c.scheme, Problem: &problem.Problem{}}},
			}
			if c.change != nil {
				c.change(&e.work.config)
			}
			for rank, stops := range c.stops {
				e.p.welcome.Rank = rank
				require.Equal(t, stops, e.stops(rank, c.lost), "rank %d", rank)
				require.Equal(t, c.stops[rank-rank%2] && c.stops[rank-rank%2+1], e.allStop(c.lost), "host of rank %d", rank)
			}
		})
	}
}

// Every reason for the end of a worker is reported to the launcher.
func TestAccount(t *testing.T) {
	for reason, word := range map[iterate.Reason]string{
		iterate.Converged: launch.Converged, iterate.ReachedSweeps: launch.Sweeps, iterate.ReachedTime: launch.Time,
		iterate.Interrupted: launch.Interrupted, iterate.Diverged: launch.Diverged, iterate.Stagnated: launch.Stagnated,
	} {
		got := account(&runner.Result{Outcome: iterate.Outcome{Reason: reason}}, nil)
		require.Equal(t, word, got.Reason)
		require.Equal(t, word == launch.Failed, got.Error != "")
	}
	failed := account(&runner.Result{}, &runner.NeighbourError{Rank: 2, Err: p2psap.ErrPeerClosed})
	require.Equal(t, launch.Failed, failed.Reason)
	require.Equal(t, 2, failed.Lost)
}

// A run that was lost right after Start still needs the block of this peer.
func TestStartCountsBesideLost(t *testing.T) {
	orders := func(closed ...string) *commands {
		o := &commands{start: make(chan struct{}), lost: make(chan struct{}), bye: make(chan struct{}), why: rendezvous.Lost{Why: "peer 0 ended"}}
		for _, c := range closed {
			close(map[string]chan struct{}{"start": o.start, "lost": o.lost, "bye": o.bye}[c])
		}
		return o
	}
	for range 100 { // select chooses at random
		require.NoError(t, orders("start", "lost").awaitStart(0))
		require.NoError(t, orders("start", "lost", "bye").awaitStart(0))
	}
	require.EqualError(t, orders("lost").awaitStart(0), "peer 0 ended")
	cutOff := orders("lost")
	cutOff.why.CutOff = true
	require.ErrorIs(t, cutOff.awaitStart(0), ErrCutOff, "its exit code is that of a run that may go on elsewhere")
	next := orders()
	next.newer, next.epoch = make(chan struct{}), 0
	next.begin(rendezvous.Epoch{Epoch: 1})
	require.Equal(t, errNextEpoch, next.awaitStart(0), "another peer was lost before the start")
	require.Equal(t, errLauncherLeft, orders("bye").awaitStart(0))
}
