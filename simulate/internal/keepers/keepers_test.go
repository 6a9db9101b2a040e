package keepers

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// latency is that between all processes of network.
const latency = time.Millisecond

// network is a World in which some pairs of ranks do not reach each other.
type network map[[2]int]bool

func (network) Latency(_, _ *Process) time.Duration { return latency }

func (w network) Connected(a, b *Process, _ time.Duration) bool {
	return !w[[2]int{a.Rank, b.Rank}] && !w[[2]int{b.Rank, a.Rank}]
}

// groupOf returns four peers and their launcher after a second, with three keepers: the launcher, ranks 0 and 1.
func groupOf(t *testing.T, w network) *Group {
	t.Helper()
	g := New(Config{
		World: w, Hosts: []int{0, 1, 2, 3}, Keepers: 3, Suspect: time.Second, Timeout: 10 * time.Second,
		Rand: rand.New(rand.NewPCG(1, 2)),
	})
	g.Advance(time.Second)
	require.Empty(t, g.Events())
	require.Len(t, g.Terms(), 2)
	require.Len(t, g.Terms()[1].Keepers, 3)
	return g
}

// play returns all events of a group until a time.
func play(g *Group, until time.Duration) (out []Event) {
	for g.Next() <= until {
		g.Advance(g.Next())
		out = append(out, g.Events()...)
	}
	return out
}

// The first keeper leads after the launcher was killed. It needs a connection to another one, a promise and a vote.
func TestElection(t *testing.T) {
	g := groupOf(t, network{})
	g.Kill(time.Second, Launcher)
	all := play(g, 10*time.Second)
	require.Len(t, all, 2)
	require.Equal(t, Elected, all[0].Kind)
	require.Equal(t, g.Member(0), all[0].Process)
	require.Equal(t, time.Second+11*latency, all[0].At)
	require.Equal(t, Led, all[1].Kind)
	require.Empty(t, all[1].Missing)
	require.Len(t, g.Terms()[len(g.Terms())-1].Keepers, 3, "a lost keeper is replaced")
	require.False(t, g.Over())
}

// A leader that reaches no other keeper begins no epoch, and ends. The others elect another one.
func TestLeaderWithoutKeepers(t *testing.T) {
	w := network{}
	g := groupOf(t, w)
	for rank := range 4 {
		w[[2]int{Launcher, rank}] = true
	}
	g.Changed(time.Second)
	g.BeginEpoch(2*time.Second, g.Member(Launcher), []int{0, 1, 2, 3})
	all := play(g, time.Minute)
	require.Len(t, all, 3)
	require.Equal(t, []EventKind{Elected, Led, Stopped}, []EventKind{all[0].Kind, all[1].Kind, all[2].Kind})
	require.Equal(t, 12*time.Second, all[2].At)
	require.Equal(t, g.Member(Launcher), all[2].Process)
}

// A keeper that has lost only its own path to the leader does not take over, since the others reach the leader and vote
// for nobody else. Its search ends.
func TestKeeperThatAloneLosesTheLeader(t *testing.T) {
	w := network{}
	g := groupOf(t, w)
	w[[2]int{Launcher, 0}] = true
	g.Changed(time.Second)
	all := play(g, time.Minute)
	require.Len(t, all, 1)
	require.Equal(t, Stopped, all[0].Kind)
	require.Equal(t, g.Member(0), all[0].Process)
	require.Greater(t, all[0].At, 13*time.Second)
	require.Len(t, g.Terms(), 2)
}

// An epoch takes a decision of most keepers.
func TestEpoch(t *testing.T) {
	g := groupOf(t, network{})
	g.BeginEpoch(2*time.Second, g.Member(Launcher), []int{3})
	all := play(g, time.Minute)
	require.Len(t, all, 1)
	require.Equal(t, Granted, all[0].Kind)
	require.Equal(t, 1, all[0].Term.Epoch)
	require.Equal(t, 2*time.Second+10*latency, all[0].At)
}

// A run without other keepers ends with its leader.
func TestOneKeeper(t *testing.T) {
	g := New(Config{
		World: network{}, Hosts: []int{0, 1}, Keepers: 1, Suspect: time.Second, Timeout: 10 * time.Second,
		Rand: rand.New(rand.NewPCG(1, 2)),
	})
	g.BeginEpoch(0, g.Member(Launcher), []int{1})
	require.Equal(t, Granted, g.Events()[0].Kind, "the launcher decides alone, at once")
	g.Kill(time.Second, Launcher)
	require.Len(t, play(g, time.Minute), 2)
	require.True(t, g.Over())
}
