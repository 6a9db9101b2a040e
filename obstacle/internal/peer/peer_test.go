package peer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("no way to 1"), errors.New("no way to 2"), fmt.Errorf("again: %w", errors.New("no way to 1")))
	require.Equal(t, "no way to 1; no way to 2; again: no way to 1", oneLine(err))
	require.Equal(t, "a: b", oneLine(errors.Join(errors.New("a: b"), errors.New("b"))))
}

func TestLostRank(t *testing.T) {
	lost := &p2psap.PeerLostError{Peer: nodeName(12)}
	require.Equal(t, 12, lostRank(fmt.Errorf("x: %w", lost)))
	require.Equal(t, 3, lostRank(&runner.NeighbourError{Rank: 3, Err: p2psap.ErrPeerClosed}))
	require.Equal(t, -1, lostRank(&runner.NeighbourError{Rank: 3, Err: errors.New("malformed")}))
	require.Equal(t, -1, lostRank(&p2psap.PeerLostError{Peer: "somebody"}))
}

func TestUnsoundAssignmentsAreRefused(t *testing.T) {
	sound := func() *peer {
		return &peer{
			welcome: rendezvous.Welcome{Rank: 1},
			assign: rendezvous.Assign{N: [3]int{4, 4, 4}, Cuts: [3][]int{{0, 4}, {0, 4}, {0, 2, 4}},
				Members: make([]rendezvous.Member, 2), Threads: 1, ProblemBytes: 10},
		}
	}
	require.NoError(t, sound().validateAssignment())
	for name, change := range map[string]func(p *peer){
		"no cuts":        func(p *peer) { p.assign.Cuts = [3][]int{} },
		"cuts of others": func(p *peer) { p.assign.Cuts[2] = []int{0, 2, 5} },
		"falling cuts":   func(p *peer) { p.assign.Cuts[2] = []int{0, 4, 4} },
		"no points":      func(p *peer) { p.assign.N = [3]int{0, 4, 4} },
		"huge grid":      func(p *peer) { p.assign.N = [3]int{1 << 24, 1 << 24, 1 << 24} },
		"rank":           func(p *peer) { p.welcome.Rank = 2 },
		"negative rank":  func(p *peer) { p.welcome.Rank = -1 },
		"members":        func(p *peer) { p.assign.Members = nil },
		"bytes":          func(p *peer) { p.assign.ProblemBytes = -1 },
		"many bytes":     func(p *peer) { p.assign.ProblemBytes = 1 << 60 },
		"threads":        func(p *peer) { p.assign.Threads = 0 },
	} {
		p := sound()
		change(p)
		require.Error(t, p.validateAssignment(), name)
	}
}

// A host is oversubscribed if its peers have more threads than processors. Peers of other hosts do not count.
func TestCrowded(t *testing.T) {
	p := &peer{welcome: rendezvous.Welcome{Rank: 2}, assign: rendezvous.Assign{Threads: 1}}
	for _, h := range []string{"a", "b", "b", "b", "c"} {
		p.assign.Members = append(p.assign.Members, rendezvous.Member{Host: h})
	}
	require.True(t, p.oversubscribed(2))
	require.False(t, p.oversubscribed(3))
	p.assign.Threads = 2
	require.True(t, p.oversubscribed(5))
	require.False(t, p.oversubscribed(6))
	p.welcome.Rank = 0
	require.False(t, p.oversubscribed(2))
}

// Every reason for the end of a worker is reported to the launcher.
func TestAccount(t *testing.T) {
	for reason, word := range map[iterate.Reason]string{
		iterate.Converged: launch.Converged, iterate.ReachedSweeps: launch.Sweeps, iterate.ReachedTime: launch.Time,
		iterate.Interrupted: launch.Interrupted, iterate.Diverged: launch.Failed, iterate.Stagnated: launch.Stagnated,
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
		require.NoError(t, orders("start", "lost").awaitStart())
		require.NoError(t, orders("start", "lost", "bye").awaitStart())
	}
	require.EqualError(t, orders("lost").awaitStart(), "peer 0 ended")
	require.Equal(t, errLauncherLeft, orders("bye").awaitStart())
}
