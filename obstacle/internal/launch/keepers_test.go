package launch

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// keeping changes a plan so that its run has three keepers.
func keeping(p *Plan) {
	recovering(p)
	p.Keepers, p.PeerTimeout = 3, 2*time.Second
}

// kept simulates peers whose answers to Keep name addresses.
func kept(t *testing.T, r *rehearsal, addresses ...string) []*player {
	all := r.join()
	for i, p := range all {
		p.expect(rendezvous.KindKeep)
		require.NoError(t, p.conn.Send(rendezvous.Keeping{Address: addresses[i]}))
	}
	return all
}

// The launcher begins no epoch that most keepers have not agreed to. Here they cannot be reached.
func TestNoEpochWithoutMostKeepers(t *testing.T) {
	r := rehearse(t, keeping)
	all := kept(t, r, "127.0.0.1:1", "127.0.0.1:2")
	for _, p := range all {
		m := p.expect(rendezvous.KindTerm).(rendezvous.Term)
		require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"}, m.Term.Keepers[1:])
		rec := p.expect(rendezvous.KindRecord).(rendezvous.Record)
		require.Equal(t, m.Term, rec.Term)
		require.Equal(t, r.plan.Tolerance, rec.Spec.Tolerance)
	}
	all[1].conn.Close()
	lost := all[0].expect(rendezvous.KindLost).(rendezvous.Lost)
	require.Contains(t, lost.Why, "most keepers were out of reach for 2s (--peer-timeout)")
	require.Contains(t, lost.Why, "obstacle attach 127.0.0.1:1 127.0.0.1:2")
	all[0].block()
	all[0].result(Failed, lost.Why, -1)
	o := r.end()
	require.Equal(t, CutOff, o.Reason)
	require.Equal(t, []int{1}, o.Missing)
	require.Len(t, o.Filled, 1)
}

// An even number of keepers is not better than one less.
func TestNumberOfKeepersIsOdd(t *testing.T) {
	r := watched(time.Minute, 4)
	r.Keepers, r.term.Leader = 5, "l"
	for i, want := range [][]string{{"l"}, {"l"}, {"l", "a", "b"}, {"l", "a", "b"}} {
		require.Equal(t, want, r.keeperAddresses())
		r.members[i].keeps, r.members[i].conn = string(rune('a'+i)), 9
	}
	require.Len(t, r.keeperAddresses(), 5)
	r.Keepers = 3
	require.Equal(t, []string{"l", "a", "b"}, r.keeperAddresses())
	r.members[0].conn = 0 // lost
	require.Equal(t, []string{"l", "b", "c"}, r.keeperAddresses())
}

// Another process leads the run: this one must not go on.
func TestDeposed(t *testing.T) {
	r := watched(time.Minute, 2)
	r.term = register.Term{Number: 2, Leader: "l", Keepers: []string{"l", "a", "b"}}
	r.due, r.active = true, true
	r.termDecided(register.Term{Number: 3, Leader: "a", Keepers: []string{"a"}})
	require.True(t, r.cutOff)
	require.Contains(t, r.failure.text, "another process leads the run now: obstacle attach a")
	require.Zero(t, r.epoch)
	for _, m := range r.members {
		require.IsType(t, rendezvous.Lost{}, r.next(m))
	}
}

// returning returns a run of three peers whose leader was lost in epoch 2, and a function by which a peer returns.
func returning(t *testing.T) (r *run, back func(rank int, s rendezvous.Standing)) {
	r = watched(time.Minute, 3)
	r.Recover, r.epoch, r.returning, r.active = rendezvous.RecoverLocal, 2, true, true
	r.term = register.Term{Number: 5, Epoch: 2, Leader: "l", Keepers: []string{"l"}}
	for _, m := range r.members {
		m.valued = true
	}
	return r, func(rank int, s rendezvous.Standing) {
		r.reseat(&caller{conn: connection(1 + rank), join: rendezvous.Join{Rank: rank, Standing: &s}})
	}
}

// If all peers return and relax in the same epoch, they go on undisturbed. Otherwise an epoch begins.
func TestPeersReturn(t *testing.T) {
	good := rendezvous.Standing{Epoch: 2, Settled: true, Valued: true, Sweep: 4, Control: "a:1"}
	late, busy, empty := good, good, good
	late.Epoch, busy.Settled, empty.Valued = 1, false, false
	empty.Settled = false
	for name, c := range map[string]struct {
		last   *rendezvous.Standing // of peer 2; nil: it does not return
		epoch  int
		losses int
	}{
		"all relax":             {&good, 2, 0},
		"one is an epoch late":  {&late, 3, 0},
		"one is not ready":      {&busy, 3, 0},
		"one repairs its block": {&empty, 3, 0},
		"one does not return":   {nil, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, back := returning(t)
			back(0, good)
			back(1, good)
			back(1, good) // refused: it has returned
			back(7, good) // refused: no such rank
			require.True(t, r.returning)
			if c.last != nil {
				back(2, *c.last)
			} else {
				for range r.ticks(r.returnTime()) + 1 {
					require.True(t, r.returning)
					r.checkKeepers()
				}
			}
			require.False(t, r.returning)
			require.Equal(t, c.epoch, r.epoch)
			require.Equal(t, c.epoch != 2, r.active)
			require.Len(t, r.losses, c.losses)
			if name == "one repairs its block" {
				require.Len(t, r.unvalued, 1)
			}
			require.EqualValues(t, 4, r.sweeps())
			if c.last == nil { // too late
				back(2, good)
				require.Zero(t, r.members[2].conn)
			}
		})
	}
}

// Peers on other hosts than the launcher's are asked first to be keepers, and of every host one.
func TestKeepersAreOnOtherHosts(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	r := watched(time.Minute, 5)
	recovering(&r.Plan)
	r.Keepers = 3
	r.Identity, err = rendezvous.NewKeyIdentity("v1", "f", driver.NewKey())
	require.NoError(t, err)
	for i, host := range []string{own, "far", "far", own, "farther"} {
		r.members[i].conn, r.members[i].join = connection(1+i), rendezvous.Join{Host: host, Pid: -1 - i}
	}
	r.askKeepers()
	asked := func() (ranks []int) {
		for _, m := range r.members {
			if m.asked {
				ranks = append(ranks, m.rank)
			}
		}
		return ranks
	}
	require.Equal(t, []int{1, 4}, asked())
	r.Keepers = 5
	r.askKeepers()
	require.Equal(t, []int{0, 1, 2, 4}, asked(), "then as many as are wanted")
	for i, m := range r.members { // of one number, in containers of their own
		m.asked, m.join.Pid, m.join.PidSpace = false, 1, uint64(i)
	}
	r.askKeepers()
	require.Equal(t, []int{0, 1, 2, 4}, asked(), "each process keeps")
}
