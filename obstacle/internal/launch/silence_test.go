package launch

import (
	"bytes"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// watched returns a run in progress without connections.
func watched(timeout time.Duration, peers int) *run {
	r := &run{
		Plan: Plan{Problem: &problem.Problem{}, Spec: rendezvous.Spec{PeerTimeout: timeout}, Log: zerolog.Nop()}, tick: tickEvery(timeout, 0), self: ownProcess(),
		started: true,
	}
	for rank := range peers {
		r.members = append(r.members, &member{rank: rank})
	}
	return r
}

// A peer times out after as many ticks as the peer timeout takes. The time between two ticks, however long, counts as
// one.
func TestSilenceIsCountedInTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{20 * time.Millisecond, time.Second, time.Hour} {
			r := watched(timeout, 2)
			most := r.ticks(timeout)
			require.GreaterOrEqual(t, time.Duration(most)*r.tick, timeout, "not before the timeout")
			for range most - 1 {
				r.checkSilence()
			}
			<-time.After(10 * timeout) // the launcher stands still
			r.checkSilence()
			require.Nil(t, r.failure)
			r.handle(event{of: r.members[0], bytes: 8}) // what came meanwhile
			r.checkSilence()
			require.Contains(t, r.failure.text, "peer 1 has been silent for more than")
			require.True(t, r.members[1].gone)
		}
	})
}

// The messages of a process that has ended are read before it counts as lost, since its result may be among them. A
// blocked peer sends nothing more.
func TestEndOfAProcessWaitsForItsMessages(t *testing.T) {
	killed := errors.New("signal: killed")
	r := watched(time.Second, 3)
	a, b, c := r.members[0], r.members[1], r.members[2]
	c.conn = 1
	r.handle(event{of: a, exited: true})
	r.handle(event{of: a, message: rendezvous.Result{Reason: Converged, Lost: -1}})
	r.handle(event{of: a, closed: errors.New("end of stream")})
	require.Nil(t, r.failure)
	require.NotNil(t, a.result)
	r.handle(event{of: b, exited: true, exit: killed})
	require.Nil(t, r.failure)
	r.handle(event{of: b, closed: errors.New("end of stream")})
	require.Equal(t, "peer 1 ended: signal: killed", r.failure.text)
	r.failure = nil
	r.handle(event{of: c, exited: true, exit: killed})
	c.blocked = true
	r.checkSilence()
	require.Equal(t, "peer 2 (pid 0 on ) ended: signal: killed", r.failure.text)
}

// stoppedProcess is one that SIGSTOP has stopped. It ends when it is killed.
type stoppedProcess struct{ *actor }

func (stoppedProcess) Stopped() bool { return true }

// A process that was stopped after its block arrived does not delay the end.
func TestStoppedProcessIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shellOf(t, watched(time.Minute, 1))
		m, begin := r.members[0], time.Now()
		c := stoppedProcess{&actor{done: make(chan struct{})}}
		close(r.connect(m, idle(t)).written)
		m.child, r.children[1] = 1, &offspring{c, c.done}
		m.result, m.received = &rendezvous.Result{}, 0
		r.shutdown(func() {})
		require.Less(t, time.Since(begin), killTime)
	})
}

// The launcher closes the connection of a peer after the peer has closed it, or does not within some time.
func TestByeIsNotOvertaken(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := shellOf(t, watched(time.Minute, 1))
			m, begin := r.connect(r.members[0], idle(t)), time.Now()
			var over atomic.Bool
			close(m.written)
			go func() {
				r.shutdown(func() {})
				over.Store(true)
			}()
			synctest.Wait()
			require.Equal(t, rendezvous.Bye{Early: true}, <-m.out)
			require.False(t, over.Load())
			if closes {
				close(m.served)
				synctest.Wait()
				require.True(t, over.Load())
				return
			}
			time.Sleep(killTime + maxTick)
			synctest.Wait()
			require.True(t, over.Load())
			require.Less(t, time.Since(begin), killTime+2*maxTick)
		})
	}
}

func TestTicksAreShort(t *testing.T) {
	require.Equal(t, 100*time.Millisecond, tickEvery(time.Minute, 0))
	require.Equal(t, 10*time.Millisecond, tickEvery(time.Minute, 640*time.Millisecond))
	require.Equal(t, 5*time.Millisecond, tickEvery(10*time.Millisecond, time.Minute))
}

// A channel that is already closed counts, even after the time is over.
func TestClosedWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		begin := time.Now()
		require.False(t, closedWithin(time.Second, done))
		require.GreaterOrEqual(t, time.Since(begin), time.Second)
		time.AfterFunc(500*time.Millisecond, func() { close(done) })
		begin = time.Now()
		require.True(t, closedWithin(time.Second, done))
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		require.True(t, closedWithin(0, done))
	})
}

// The launcher does not blame the network for the silence of processes that it has started itself.
func TestSilenceOfOwnProcesses(t *testing.T) {
	for _, own := range []bool{true, false} {
		r := watched(10*time.Second, 1)
		r.Suspect = time.Second
		m := r.members[0]
		m.conn = 1
		if own {
			m.child = 1
		}
		for range 2 * r.ticks(r.Suspect) {
			m.quietTicks++
			r.listen()
		}
		require.True(t, r.hearsNobody())
		require.Equal(t, own, len(r.take()) == 0)
	}
}

// While no peer is heard none is suspected. When one is heard again, the others get as much time again as all were silent.
// Where one is heard all the time, a silent one gets none.
func TestSilenceOfAllPeers(t *testing.T) {
	for what, c := range map[string]struct {
		all  bool // are silent
		done bool // the other one has sent its results
	}{"all are silent": {all: true}, "one is heard": {}, "one is done": {all: true, done: true}} {
		t.Run(what, func(t *testing.T) {
			r := watched(10*time.Second, 2)
			r.Suspect = time.Second
			a, b := r.members[0], r.members[1]
			a.conn, b.conn = 1, 2
			if c.done {
				a.result = &rendezvous.Result{}
			}
			ticks := 2 * r.ticks(r.Suspect)
			for range ticks {
				b.quietTicks++
				if c.all {
					a.quietTicks++
				}
				r.listen()
			}
			withheld := c.all && !c.done
			require.Equal(t, withheld, r.hearsNobody())
			deaf := r.deafTicks
			a.quietTicks = 0
			r.listen()
			require.False(t, r.hearsNobody())
			if want := ticks; withheld {
				require.Equal(t, -deaf, b.quietTicks)
				require.Greater(t, deaf, ticks/2)
			} else {
				require.Equal(t, want, b.quietTicks)
			}
		})
	}
}

// Two peers that exchange nothing and reach the launcher are named once, with what the run waits for; attach shows it until
// they do again.
func TestSeveredPeersAreNamed(t *testing.T) {
	var log bytes.Buffer
	r := watched(10*time.Second, 3)
	r.Recover, r.Log, r.Status = rendezvous.RecoverLocal, zerolog.New(&log), &Status{}
	s := shellOf(t, r)
	beat := func(rank int, c *rendezvous.Severed) string {
		log.Reset()
		s.receive(s.members[rank], rendezvous.Beat{Residual: nullable.NaN(), Severed: c}, nil)
		s.execute()
		return log.String()
	}
	why := "nothing arrives"
	s.members[1].quietTicks = s.ticks(2 * time.Second)
	require.Empty(t, beat(0, &rendezvous.Severed{Rank: 1, Why: why}), "the launcher does not hear it, either")
	s.members[1].quietTicks = 1
	for _, bad := range []int{-1, 0, 3, math.MaxInt} {
		require.Empty(t, beat(0, &rendezvous.Severed{Rank: bad, Why: why}))
	}
	said := beat(0, &rendezvous.Severed{Rank: 1, Why: why})
	require.Contains(t, said, `"level":"warn"`)
	require.Contains(t, said, "peer 0 and peer 1 exchange nothing, although both reach this process: nothing arrives; unless a path "+
		"comes up, the run goes on without one of them after 10s (--peer-timeout)")
	require.Empty(t, beat(0, &rendezvous.Severed{Rank: 1, Why: why}))
	require.Empty(t, beat(1, &rendezvous.Severed{Rank: 0, Why: why}), "the same pair")
	state := s.Status.State()
	require.Contains(t, state.Severed[0], "peer 0 and peer 1 exchange nothing")
	state.Spec.Partition.Cuts = [3][]int{{0, 4}, {0, 4}, {0, 1, 2, 4}}
	require.Contains(t, (&views{}).next(&state)[0].Ranks[0].Severed, "exchange nothing")
	require.Contains(t, beat(0, nil), "again")
	require.Empty(t, s.Status.State().Severed[0])
}

// After a request to stop, a peer that only gives signs of life ends the run. One that relaxes, sends its block or has no room to, does not.
func TestPeerThatDoesNotStop(t *testing.T) {
	alive := func(int) event { return event{message: rendezvous.Beat{Relaxed: 7}} }
	for name, c := range map[string]struct {
		sends func(tick int) event
		full  bool // its connection is not read
		want  string
	}{
		"signs of life": {alive, false, "peer 0 (pid 0 on ) has not relaxed for 6s, and does not end"},
		"no room":       {alive, true, ""},
		"block":         {func(int) event { return event{bytes: 1} }, false, ""},
		"relaxes":       {func(i int) event { return event{message: rendezvous.Beat{Relaxed: uint64(8 + i)}} }, false, ""},
	} {
		r := watched(time.Second, 2)
		a, b := r.members[0], r.members[1]
		a.conn, b.conn, b.result = 1, 2, &rendezvous.Result{Reason: Interrupted}
		ticks := func(n int) {
			for i := range n {
				require.Nil(t, r.failure, name)
				o := c.sends(i)
				o.of, a.blocked = a, c.full
				r.handle(o)
				r.checkStop()
			}
		}
		ticks(3 * r.ticks(time.Second+StopTime)) // before the request a peer may compute for as long as it likes
		r.stop()
		ticks(r.ticks(time.Second+StopTime) + 1)
		if c.want == "" {
			require.Nil(t, r.failure, name)
		} else {
			require.Equal(t, c.want, r.failure.text, name)
		}
	}
}

// What a peer reports of itself goes before what another one reports of it, which may be a consequence.
func TestOwnReportIsTheCause(t *testing.T) {
	r := watched(time.Second, 2)
	a, b := r.members[0], r.members[1]
	a.conn, b.conn = 1, 2
	r.handle(event{of: a, message: rendezvous.Result{Reason: Failed, Error: "it said goodbye", Lost: 1}})
	require.Equal(t, "peer 1 (pid 0 on ) was lost: peer 0 (pid 0 on ) reports it said goodbye", r.failure.text)
	r.handle(event{of: b, message: rendezvous.Result{Reason: Failed, Error: "the disk is full", Lost: -1}})
	require.Equal(t, "peer 1 (pid 0 on ) failed: the disk is full", r.failure.text)

	r = watched(time.Second, 2)
	r.started = false
	a, b = r.members[0], r.members[1]
	a.conn, b.conn = 1, 2
	r.handle(event{of: a, message: rendezvous.Result{Reason: Failed, Error: "cannot connect to peer 1", Lost: -1}})
	r.handle(event{of: b, message: rendezvous.Result{Reason: Failed, Error: "Start panicked", Lost: -1, Panicked: true}})
	require.Equal(t, "peer 1 (pid 0 on ) cannot take part: Start panicked", r.failure.text)
}
