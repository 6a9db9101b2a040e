package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Ten peers of sixteen are killed in one run, which takes little longer than without losses.
func TestTenLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds: without -short")
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(s.Name(), func(t *testing.T) {
			m := gigabit(16)
			m.Networks[0].MTU = 9000 // fewer segments to simulate
			run := runOf(t, m, membrane(32), s, 16)
			run.Scale, run.Threads, run.Recover = 4, 1, &Recovery{Spares: 10}
			alone, err := Run(context.Background(), run)
			require.NoError(t, err)
			for k := range 10 {
				m.Events = append(m.Events, cluster.Event{
					At: alone.Virtual * time.Duration(2*k+1) / 20, Rank: (5*k + 3) % 16, Killed: true,
				})
			}
			r, err := Run(context.Background(), run)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, r.Reason)
			require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
			require.Len(t, r.Losses, 10)
			t.Logf("%v instead of %v, ratio %.3f; sweeps %.1f instead of %.1f", r.Virtual, alone.Virtual,
				float64(r.Virtual)/float64(alone.Virtual), r.Sweeps(), alone.Sweeps())
			require.Less(t, float64(r.Virtual)/float64(alone.Virtual), 1.3)
		})
	}
}

// One of eight machines is five times slower than the others. Each has four boxes, which move or do not. Out of lockstep
// a run loses less without moves, since fast machines do not wait. So it gains less by them.
func TestSlowMachineOfEight(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds: without -short")
	}
	for _, c := range []struct {
		scheme iterate.Scheme
		method string
		inner  int
		least  float64
	}{
		{iterate.Synchronous(), problem.Richardson, 0, 3.5},
		{iterate.Asynchronous(), problem.Richardson, 0, 2.5},
		{iterate.Synchronous(), problem.SOR, 0, 3},
		{iterate.Synchronous(), problem.Multigrid, 0, 2.5},
		{iterate.Synchronous(), problem.Schwarz, 1, 3},
		{iterate.Asynchronous(), problem.Schwarz, 1, 2.2},
		{iterate.Synchronous(), problem.Schwarz, 0, 2.5},
		{iterate.Asynchronous(), problem.Schwarz, 0, 2.2},
	} {
		run := uneven(t, 8, 4, 16, c.scheme, c.method)
		run.Solver.Method.InnerCycles = c.inner
		for i := range run.Model.Hosts {
			run.Model.Hosts[i].Relaxation = 2e3 // a run takes minutes, and some seconds until parts move
		}
		plain, r := balanced(t, run)
		ratio := float64(plain.Virtual) / float64(r.Virtual)
		t.Logf("%s %s, %d inner cycles: %.1f s, balanced %.1f s, ratio %.2f; sweeps %.0f, %.0f; %d moves", c.method,
			c.scheme.Name(), c.inner, plain.Virtual.Seconds(), r.Virtual.Seconds(), ratio, plain.Sweeps(), r.Sweeps(),
			len(r.Moves))
		require.GreaterOrEqual(t, ratio, c.least, "%s %s", c.method, c.scheme.Name())
		requireMoves(t, r)
	}
}

// All of many peers relax again soon after a loss has been noticed.
func TestRecoveryOfManyPeers(t *testing.T) {
	const n = 64
	run := runOf(t, gigabit(n), membrane(24), iterate.Synchronous(), n)
	run.Scale, run.Threads, run.Recover = 8, 1, &Recovery{Suspect: time.Millisecond}
	run.Model.Events = []cluster.Event{{At: time.Millisecond, Rank: n/2 + 3, Lost: true}}
	run.Solver.MaxSweeps = 12
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Len(t, r.Losses, 1)
	l := r.Losses[0]
	t.Logf("%v", l.Resumed-l.Noticed)
	require.Positive(t, l.Repair)
	require.Positive(t, l.Resumed)
	require.Less(t, l.Resumed-l.Noticed, 60*time.Millisecond)
}

// A new peer gets the list of all peers. What the others get does not grow with their number.
func TestListsOfPeers(t *testing.T) {
	require.Equal(t, seconds((750+100*16)/125e6), still(gigabit(16)).listsTime(1))
	for _, n := range []int{16, 32} {
		e := still(gigabit(n))
		for rank, m := range e.hosts {
			links := make([]iterate.Link, 2)
			m.peer = &linked{links: links[:min(rank, 2)]}
		}
		bytes := (n-1)*(750+100) + 100*(2*(n-1)-3)
		require.Equal(t, seconds(float64(bytes)/125e6), e.newsTime([]int{n - 1}))
	}
}

// linked is a peer with links.
type linked struct {
	counted
	links []iterate.Link
}

func (l *linked) Links() []iterate.Link { return l.links }
