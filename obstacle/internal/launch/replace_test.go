package launch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// actor is a process that a plan has started, whose part a player plays.
type actor struct {
	once sync.Once
	done chan struct{}
}

func (a *actor) Wait() error   { <-a.done; return nil }
func (a *actor) Kill()         { a.once.Do(func() { close(a.done) }) }
func (a *actor) Stopped() bool { return false }
func (a *actor) Name() string  { return "an actor" }

// If no process can be started in place of a lost one, another peer's process runs its part.
func TestReplacementThatCannotBeStarted(t *testing.T) {
	started := 0
	addresses := make(chan string, 1)
	r := rehearse(t, func(p *Plan) {
		recovering(p)
		p.Spawn = func(_ context.Context, _ int, address string) (Child, error) {
			if started++; started > peers {
				return nil, errors.New("the program was removed")
			}
			if started == peers {
				addresses <- address
			}
			return &actor{done: make(chan struct{})}, nil
		}
	})
	r.address <- <-addresses
	all := r.join()
	all[1].conn.Close()
	all[0].expect(rendezvous.KindEpoch)
	all[0].expect(rendezvous.KindCapture) // the values beside the lost block
	require.Equal(t, rendezvous.Host{Rank: 1}, all[0].expect(rendezvous.KindHost))
}

// hostsOf returns a run with a peer on each of some hosts, which all relax.
func hostsOf(t *testing.T, n int) *run {
	t.Helper()
	r := watched(time.Second, n)
	p := rehearsalPlan(t)
	r.Catalog, r.Problem, r.ProblemSpec, r.Scheme, r.Recover = p.Catalog, p.Problem, p.ProblemSpec, "sync", rendezvous.RecoverLocal
	r.Suspect, r.Status = 100*time.Millisecond, &Status{}
	cut, err := problem.Slabs(p.Problem.N, n, nil)
	require.NoError(t, err)
	r.Partition = cut
	for rank, m := range r.members {
		m.box, m.valued, m.sweep = cut.Box(iterate.Rank(rank)), true, 5
		m.conn = connection(1 + rank)
		m.join = rendezvous.Join{Host: fmt.Sprintf("host %d", rank), Pid: 7}
	}
	return r
}

// report executes the effects that change the status.
func (r *run) report() {
	for _, e := range r.take() {
		if u, is := e.(updated); is {
			r.Status.update(u.apply)
		}
	}
}

// asked returns the ranks that the processes of peers were asked to run.
func (r *run) asked() map[int][]int {
	out := map[int][]int{}
	for _, m := range r.members {
		for msg := r.next(m); msg != nil; msg = r.next(m) {
			if h, is := msg.(rendezvous.Host); is {
				out[m.rank] = append(out[m.rank], h.Rank)
			}
		}
	}
	return out
}

// A process that was asked to run the part of a lost peer is lost, too, before that part has joined: the next process is
// asked at once. The parts of hosts that fall silent together go to none of them.
func TestHostsThatAreLostTogether(t *testing.T) {
	lost := func(r *run, rank int) {
		r.lose(r.members[rank], failure{silent, rank, "silent"})
	}
	r := hostsOf(t, 4)
	lost(r, 0)
	require.Equal(t, map[int][]int{1: {0}}, r.asked())
	lost(r, 1)
	require.Equal(t, map[int][]int{2: {0}, 3: {1}}, r.asked())
	require.Equal(t, 1, r.members[0].attempts, "the first request does not count")

	r = hostsOf(t, 4)
	r.members[1].quietTicks = r.ticks(r.Suspect)
	lost(r, 0)
	require.Equal(t, map[int][]int{2: {0}}, r.asked(), "host 1 is silent, too")

	r = hostsOf(t, 4)
	r.members[3].join.Host = "host 0"
	spare := &member{caller: caller{conn: 9, join: rendezvous.Join{Host: "host 0", Pid: 8}}}
	r.spares = []*member{spare}
	lost(r, 0)
	require.Equal(t, map[int][]int{1: {0}}, r.asked(), "neither the spare peer nor peer 3 has a host that is heard")
	require.Equal(t, []*member{spare}, r.spares)

	r = hostsOf(t, 2)
	r.spares = []*member{{caller: caller{conn: 9, join: rendezvous.Join{Host: "host 0", Pid: 8}}}}
	r.members[1].quietTicks = r.ticks(r.Suspect)
	lost(r, 0)
	require.Empty(t, r.spares, "there is no better one")
}

// While a run recovers, its residual is not known, and the phase says so.
func TestRecoveringRunsShowNoResidual(t *testing.T) {
	r := hostsOf(t, 3)
	r.Status.Enter(Solving)
	r.receive(r.members[0], rendezvous.Beat{Sweep: 6, Residual: 1e-3}, nil)
	r.report()
	require.Equal(t, 1e-3, r.Status.State().Progress.Residual)
	r.lose(r.members[1], failure{exited, 1, "killed"})
	r.report()
	require.Equal(t, Recovering, r.Status.State().Phase)
	r.receive(r.members[0], rendezvous.Beat{Sweep: 6, Residual: nullable.NaN()}, nil)
	r.report()
	require.True(t, math.IsNaN(r.Status.State().Progress.Residual))
	require.Equal(t, 1e-3, r.repairTolerance(), "a repair does not need to be better")
	r.recovered()
	r.report()
	require.Equal(t, Solving, r.Status.State().Phase)
}

// A peer that has not begun to relax when another one is lost has no values: its block is repaired, too, and it is not lost.
// If nobody has values, the run begins anew.
func TestLossesBeforeThereAreValues(t *testing.T) {
	r := hostsOf(t, 3)
	r.lose(r.members[1], failure{exited, 1, "killed"})
	none := rendezvous.Captured{Number: -1, Residual: nullable.NaN()}
	require.Equal(t, []*member{r.members[0], r.members[2]}, r.faces)
	r.receive(r.members[0], none, nil)
	require.Equal(t, 2, r.epoch)
	require.Len(t, r.losses, 1)
	require.Len(t, r.unvalued, 2)
	require.Equal(t, []*member{r.members[2]}, r.faces)
	none.Number = -2
	r.receive(r.members[2], none, nil)
	require.Equal(t, 3, r.epoch)
	require.Len(t, r.losses, 1)
	require.Empty(t, r.faces)

	next := r.members[1]
	next.conn = 9
	for _, m := range r.members {
		m.listens, m.control = r.epoch, "127.0.0.1:1"
	}
	r.asked()
	r.advance()
	for _, m := range r.members {
		w := r.next(m).(*workload)
		require.Nil(t, w.assign.Repair)
		require.False(t, w.assign.Initial)
	}
}
