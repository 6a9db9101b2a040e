package launch

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// recovering changes a plan so that its run goes on when a peer is lost.
func recovering(p *Plan) { p.Recover, p.Suspect = rendezvous.RecoverLocal, time.Minute }

// another simulates a peer that joins during the run, and returns it with its Welcome.
func (r *rehearsal) another(address string) (*player, rendezvous.Welcome) {
	r.t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(r.t, err)
	conn := rendezvous.NewConn(c, await.Limit)
	r.conns = append(r.conns, conn)
	r.t.Cleanup(func() { conn.Close() })
	w, err := conn.Join(r.plan.Identity, rendezvous.Join{Rank: -1, Host: "h", Pid: 200}, await.Limit)
	require.NoError(r.t, err)
	p := &player{
		t: r.t, conn: conn, rank: w.Rank, box: r.plan.Partition.Box(iterate.Rank(w.Rank)), silent: make(chan struct{}),
	}
	p.expect(rendezvous.KindStart) // the run has started
	go p.beat()
	return p, w
}

func (p *player) listen(epoch int) {
	p.t.Helper()
	require.NoError(p.t, p.conn.Send(rendezvous.Listen{Control: "127.0.0.1:1", Epoch: epoch, Sweep: 7}))
}

// finish simulates the end of a peer's run in an epoch.
func (p *player) finish(epoch int) {
	p.t.Helper()
	p.block()
	require.NoError(p.t, p.conn.Send(rendezvous.Result{
		Epoch: epoch, Reason: Converged, Lost: -1, Points: p.box.Points(), Sweeps: 9,
	}))
}

// A peer closes its connection. The survivor is asked for the values beside the hole and to run another peer, which gets
// these values first. The survivor gets its work once the hole is repaired.
func TestLossBeginsAnEpoch(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprintf("the survivor has finished: %v", done), func(t *testing.T) { lossBeginsAnEpoch(t, done) })
	}
}

func lossBeginsAnEpoch(t *testing.T, done bool) {
	r := rehearse(t, recovering)
	address := <-r.address
	r.address <- address
	all := r.join()
	s := all[0]
	if done {
		s.block()
		s.result(Converged, "", -1)
	}
	all[1].conn.Close()
	require.Equal(t, rendezvous.Epoch{Epoch: 1, Lost: []int{1}}, s.expect(rendezvous.KindEpoch))
	c := rendezvous.Capture{Number: -1, Boxes: repair.Shell(r.plan.Problem, []problem.Box{all[1].box}, s.box)}
	first := s.expectOne(rendezvous.KindCapture, rendezvous.KindHost)
	second := s.expectOne(rendezvous.KindCapture, rendezvous.KindHost)
	require.ElementsMatch(t, []rendezvous.Message{c, rendezvous.Host{Rank: 1}}, []rendezvous.Message{first, second})
	next, w := r.another(address)
	require.Equal(t, 1, w.Rank)
	require.Equal(t, 1, w.Epoch)
	require.True(t, w.Spec.Recovers())
	next.listen(1)
	s.listen(1)
	s.answer(c, 1)

	a := next.expect(rendezvous.KindAssign).(rendezvous.Assign)
	require.Equal(t, 1, a.Epoch)
	require.Equal(t, []problem.Box{all[1].box}, a.Repair.Holes)
	require.Equal(t, []problem.Box{s.box}, a.Repair.Around)
	require.Equal(t, coarsest, a.Repair.Tolerance)
	require.EqualValues(t, 7, a.Sweeps, "the sweeps of the others, since they are in lockstep")
	next.expect(rendezvous.KindChunk) // the problem
	require.Equal(t, rendezvous.StreamAround, next.expect(rendezvous.KindChunk).(rendezvous.Chunk).Stream)
	require.NoError(t, next.conn.Send(rendezvous.Repaired{Epoch: 1, Method: problem.SOR, Iterates: 5}))
	a = s.expect(rendezvous.KindAssign).(rendezvous.Assign)
	require.Nil(t, a.Repair)
	require.Zero(t, a.ProblemBytes, "it has the problem")

	// Results of the former epoch do not count.
	require.NoError(t, s.conn.Send(rendezvous.Result{Reason: Converged, Lost: -1}))
	s.later = 10
	for _, p := range []*player{s, next} {
		require.NoError(t, p.conn.Send(rendezvous.Ready{Epoch: 1}))
	}
	next.finish(1)
	s.finish(1)
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Len(t, o.Losses, 1)
	require.Equal(t, problem.SOR, o.Losses[0].Method)
	require.Contains(t, o.Losses[0].By, "process of peer 0")
	require.Empty(t, o.Missing)
	for z := range 4 {
		require.Equal(t, []float64{11, 11, 2, 2}[z], o.U[16*z])
	}
}

// expectOne returns the next message, of one of some kinds.
func (p *player) expectOne(kinds ...rendezvous.Kind) rendezvous.Message {
	p.t.Helper()
	m, err := p.conn.ReceiveWithin(await.Limit, kinds...)
	require.NoError(p.t, err)
	return m
}

// answer answers a Capture with one value everywhere.
func (p *player) answer(c rendezvous.Capture, value float64) {
	p.t.Helper()
	points := 0
	for _, b := range c.Boxes {
		points += b.Points()
	}
	data := make([]byte, 8*points)
	blocks.Encode(data, slices.Repeat([]float64{value}, points))
	require.NoError(p.t, p.conn.Send(rendezvous.Chunk{Stream: rendezvous.StreamCapture, Data: data}))
	require.NoError(p.t, p.conn.Send(rendezvous.Captured{Number: c.Number, Box: p.box, Sweep: 7}))
}

// In an epoch a peer may neither listen, nor send its values, nor get ready. It counts as lost, although its process
// lives.
func TestSurvivorThatDoesNotAnswer(t *testing.T) {
	for name, change := range map[string]func(r *run, m *member){
		"listen": func(_ *run, m *member) { m.listens = 1 },
		"values": func(r *run, m *member) { r.faces = []*member{m} },
		"ready":  func(_ *run, m *member) { m.assigned = true },
		"repair": func(_ *run, m *member) { m.assigned, m.valued = true, false },
		"values of a move": func(r *run, m *member) {
			r.members[0].assigned = true // it waits for the others
			r.handing = []*handover{{rank: m.rank, to: m, from: &member{}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := watched(time.Second, 3)
			r.Recover = rendezvous.RecoverLocal
			r.active, r.epoch = true, 2
			for _, m := range r.members {
				m.conn, m.valued, m.listens = 9, true, 2
			}
			change(r, r.members[1])
			limit := r.ticks(2*r.PeerTimeout + StopTime)
			if name == "repair" {
				limit = r.ticks(leastRepair)
			}
			for range limit {
				r.checkRecovery()
			}
			require.Empty(t, r.losses)
			r.Recover = rendezvous.RecoverOff // so that the loss ends the run
			r.checkRecovery()
			require.Equal(t, 1, r.failure.rank)
			require.Contains(t, r.failure.text, "has not entered epoch 2 in time")
		})
	}
}

// The peers get their work in the right order: those that have to repair first, when everybody listens and the values
// beside the hole are there.
func TestWorkComesInOrder(t *testing.T) {
	var p Plan
	r := rehearse(t, func(q *Plan) { recovering(q); p = *q })
	close(r.stop)
	<-r.done
	for _, idle := range []bool{false, true} {
		workComesInOrder(t, p, idle)
	}
}

// workComesInOrder checks the order for a survivor that relaxes until the epoch begins, or does not.
func workComesInOrder(t *testing.T, p Plan, idle bool) {
	w := &run{Plan: p, started: true}
	w.active, w.epoch = true, 1
	for rank := range peers {
		m := &member{
			rank: rank, box: p.Partition.Box(iterate.Rank(rank)), valued: rank == 0, caller: caller{conn: 9},
		}
		w.members = append(w.members, m)
	}
	survivor, next := w.members[0], w.members[1]
	w.faces, w.unvalued = []*member{survivor}, []problem.Box{next.box}
	given := func() [2]bool { return [2]bool{survivor.assigned, next.assigned} }
	w.receiveRecovery(next, rendezvous.Listen{Epoch: 1})
	require.Equal(t, [2]bool{}, given(), "the survivor does not listen")
	w.receiveRecovery(survivor, rendezvous.Listen{Epoch: 1, Idle: idle})
	require.Equal(t, [2]bool{}, given(), "there are no values")
	w.receiveFaces(survivor, -1, make([]float64, 16))
	require.Equal(t, [2]bool{idle, true}, given())
	w.receiveRecovery(next, rendezvous.Repaired{Epoch: 1})
	require.Equal(t, [2]bool{true, true}, given())
	w.receiveRecovery(next, rendezvous.Ready{Epoch: 1})
	require.True(t, w.active)
	w.receiveRecovery(survivor, rendezvous.Ready{Epoch: 1})
	require.False(t, w.active)
}

// The relaxation factor of the survivor with most sweeps goes to all peers. With --recover exact the kept state has it.
func TestRelaxationFactorIsKept(t *testing.T) {
	rehearsal := rehearse(t, recovering)
	close(rehearsal.stop)
	<-rehearsal.done
	cut := problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 1, 2, 4}}}
	for _, c := range []struct {
		recover  string
		reported []rendezvous.Listen // by rank
		want     float64
	}{
		{rendezvous.RecoverLocal, []rendezvous.Listen{{Sweep: 8, Omega: 1.9}, {}, {Sweep: 7, Omega: 1.8}}, 1.9},
		{rendezvous.RecoverLocal, []rendezvous.Listen{{Sweep: 8}, {}, {Sweep: 8}}, 0},
		{rendezvous.RecoverLocal, []rendezvous.Listen{{Sweep: 8, Omega: 2}, {Sweep: 9, Omega: -1}, {Sweep: 7, Omega: 1.8}}, 1.8},
		{rendezvous.RecoverExact, []rendezvous.Listen{{Sweep: 8, Omega: 1.9}, {}, {Sweep: 7, Omega: 1.8}}, 0},
	} {
		r := &run{Plan: rehearsal.plan, started: true}
		r.Partition, r.Recover, r.resumption = cut, c.recover, &resumption{again: true}
		for rank, l := range c.reported {
			m := &member{rank: rank, informed: true, valued: true}
			r.members = append(r.members, m)
			m.entered(&l)
		}
		for _, m := range r.members {
			now, err := r.roster()
			require.NoError(t, err)
			r.assign(m, now)
			require.Equal(t, c.want, (r.next(m)).(*workload).assign.Omega, c)
		}
	}
}

// Survivors get their work before the values of a part that moves have arrived, and all get the same number of sweeps.
func TestSurvivorsBuildDuringAMove(t *testing.T) {
	rehearsal := rehearse(t, recovering)
	close(rehearsal.stop)
	<-rehearsal.done
	r := &run{Plan: rehearsal.plan, started: true}
	r.Partition = problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 1, 2, 4}}}
	r.Recover, r.Scheme, r.active, r.epoch = rendezvous.RecoverLocal, "sync", true, 1
	for rank := range 3 {
		r.members = append(r.members, &member{
			rank: rank, informed: true, valued: true, idle: true, listens: 1, sweep: 7,
			caller: caller{conn: connection(1 + rank)},
		})
	}
	h := &handover{rank: 1, to: r.members[1], from: &member{}}
	r.handing = []*handover{h}
	assigned := func() (all [3]bool) {
		for rank, m := range r.members {
			all[rank] = m.assigned
		}
		return all
	}
	r.advance()
	require.Equal(t, [3]bool{true, false, true}, assigned())
	h.known, h.values, r.members[1].sweep = true, make([]float64, 16), 8
	r.advance()
	require.Equal(t, [3]bool{true, true, true}, assigned())
	for _, m := range r.members {
		require.EqualValues(t, 7, (r.next(m)).(*workload).assign.Sweeps)
	}
}

// Values that are not finite, or too few, do not reach the peer that repairs. Their sender counts as lost.
func TestUnusableValues(t *testing.T) {
	for name, values := range map[string][]float64{
		"not finite": slices.Repeat([]float64{math.NaN()}, 16),
		"too few":    make([]float64, 15),
	} {
		r := watched(time.Second, 2)
		cut, err := problem.Slabs([3]int{4, 4, 4}, 2, nil)
		require.NoError(t, err)
		for rank, m := range r.members {
			m.box, m.conn = cut.Box(iterate.Rank(rank)), connection(1+rank)
		}
		r.active, r.epoch, r.unvalued, r.faces = true, 1, []problem.Box{r.members[1].box}, []*member{r.members[0]}
		r.receiveFaces(r.members[0], -1, values)
		require.Equal(t, 0, r.failure.rank, name)
		require.Contains(t, r.failure.text, "sent values that no block can be repaired from")
	}
}

// A peer that another one cannot reach is replaced, although the launcher reaches it. A report of a former epoch, or
// during a recovery, is old.
func TestBrokenPathBetweenPeers(t *testing.T) {
	r := watched(time.Second, 3)
	r.receive(r.members[0], rendezvous.Unreachable{Epoch: 1, Rank: 1}, nil)
	r.receive(r.members[0], rendezvous.Unreachable{Rank: 3}, nil)
	r.active = true
	r.receive(r.members[0], rendezvous.Unreachable{Rank: 1}, nil)
	require.Nil(t, r.failure)
	r.active = false
	r.receive(r.members[0], rendezvous.Unreachable{Rank: 1, Why: "no word"}, nil)
	require.Equal(t, 1, r.failure.rank)
	require.Contains(t, r.failure.text, "cannot be reached by peer 0: no word")
}

// A process that has sent values which are not finite must not join again: it would take the place of its replacement.
func TestProcessThatSentNaNIsRefused(t *testing.T) {
	for _, sent := range []bool{false, true} {
		r := watched(time.Second, 3)
		for rank, m := range r.members {
			m.conn, m.join = connection(1+rank), rendezvous.Join{Host: "host", Pid: 100 + rank}
		}
		r.receive(r.members[0], rendezvous.Unreachable{Rank: 1, Why: "values", Refused: sent}, nil)
		r.take()
		for pid := 101; pid <= 102; pid++ {
			r.enroll(&caller{conn: 9, join: rendezvous.Join{Rank: -1, Host: "host", Pid: pid}})
			why := ""
			for _, e := range r.take() {
				if e, is := e.(refuse); is && strings.Contains(e.why, "no peer of the run sends") {
					why = e.why
				}
			}
			require.Equal(t, sent && pid == 101, why != "", "process %d", pid)
		}
	}
}

// idle returns a connection over which nothing is sent.
func idle(t *testing.T) net.Conn {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a
}

// A rank that is lost again and again without a sweep of the run ends it.
func TestFruitlessRecoveries(t *testing.T) {
	r := watched(time.Second, 3)
	for _, m := range r.members {
		m.valued = true
	}
	for range maxFruitless {
		require.Empty(t, r.unrecoverable(r.members[1]))
	}
	require.Empty(t, r.unrecoverable(r.members[2]), "another rank")
	require.Contains(t, r.unrecoverable(r.members[1]), "rank 1 was lost 4 times")
	r.members[0].sweep++
	require.Empty(t, r.unrecoverable(r.members[1]), "the run has made a sweep")
	r.members[0].valued, r.members[2].gone = false, true
	require.Equal(t, "no peer is left that has values", r.unrecoverable(r.members[1]))
}

// The failure that ends a run names the reason why it cannot go on, also when better evidence of the loss comes later.
func TestFailureNamesWhyTheRunEnds(t *testing.T) {
	r := watched(time.Second, 2)
	r.Recover = rendezvous.RecoverLocal
	m := r.members[1]
	m.valued = true
	r.lose(m, failure{closed, 1, "peer 1 closed its connection"})
	require.Equal(t, "peer 1 closed its connection; no peer is left that has values", r.failure.text)
	r.fail(failure{exited, 1, "peer 1 ended: signal: killed"})
	require.Equal(t, "peer 1 ended: signal: killed; no peer is left that has values", r.failure.text)
}

// startedProcess is one of which only the end matters.
type startedProcess struct{ Child }

func (startedProcess) Kill() {}

// The launcher forgets a lost peer once its process has ended and nothing reads from or writes to its connection.
func TestLostPeersAreForgotten(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	r := shellOf(t, watched(time.Minute, 1))
	add := func(served, ended chan struct{}) {
		m := &member{}
		l := r.connect(m, idle(t))
		l.written, l.served = closed, served
		if ended != nil {
			m.child = child(m.conn)
			r.children[m.child] = &offspring{startedProcess{}, ended}
		}
		r.perform(retire{m})
	}
	add(closed, nil)
	add(closed, closed)
	add(make(chan struct{}), nil)
	add(closed, make(chan struct{}))
	r.perform(retire{&member{}})
	require.Len(t, r.retired, 3, "one is still read, one process has not ended, and the last was just lost")
	require.EqualValues(t, 3, r.retired[0].conn)
	require.Len(t, r.links, 2)
	require.Len(t, r.children, 1)
}

// A peer that has a list of all peers gets the entries of those that it connects to and of new processes only. It gets
// them later if the epoch in which they came ended before it had its work.
func TestNewsOfPeers(t *testing.T) {
	r := rehearse(t, recovering)
	close(r.stop)
	<-r.done
	p := r.plan
	p.Partition = problem.Partition{Cuts: [3][]int{{0, 4}, {0, 4}, {0, 1, 2, 3, 4}}}
	w := &run{Plan: p, started: true}
	for rank := range 4 {
		w.members = append(w.members, &member{rank: rank, informed: true, control: fmt.Sprint(rank)})
	}
	news := func(rank int) (ranks []int) {
		now, err := w.roster()
		require.NoError(t, err)
		m := w.members[rank]
		for _, q := range w.news(m, now) {
			ranks = append(ranks, q.Rank)
		}
		m.informed, m.listed = true, w.epoch
		return ranks
	}
	listen := func(rank int) {
		w.active = true
		w.receiveRecovery(w.members[rank], rendezvous.Listen{Control: "new", Epoch: w.epoch})
	}
	w.epoch = 1
	require.Equal(t, []int{1, 3}, news(2))
	w.members[3] = &member{rank: 3}
	listen(3)
	require.Equal(t, []int{0, 1, 2, 3}, news(3), "it has no list")
	require.Equal(t, []int{1, 3}, news(0))
	w.epoch = 2
	listen(3)
	require.Equal(t, []int{1}, news(0), "it knows of the new process")
	require.Equal(t, []int{0, 2, 3}, news(1), "it had no work in epoch 1")
}

// What happens when a peer is lost follows from --recover, and from whether the problem has time steps.
func TestRecoveryOfARun(t *testing.T) {
	for _, c := range []struct {
		recover string
		inTime  bool
		mode    string
		why     string
	}{
		{rendezvous.RecoverLocal, false, rendezvous.RecoverLocal, "its block solved again"},
		{rendezvous.RecoverExact, false, rendezvous.RecoverExact, "go back to the newest iterate"},
		{rendezvous.RecoverLocal, true, "step", "begin the time step again"},
		{rendezvous.RecoverExact, true, "step", "begin the time step again"},
		{rendezvous.RecoverOff, true, rendezvous.RecoverOff, "the run ends"},
		{"", false, rendezvous.RecoverOff, "the run ends"},
	} {
		mode, why := Recovery(c.recover, c.inTime, 0)
		require.Equal(t, c.mode, mode, c)
		require.Contains(t, why, c.why, c)
		_, with := Recovery(c.recover, c.inTime, 2)
		require.Equal(t, mode != rendezvous.RecoverOff, with == why+"; spare processes that wait: 2", c)
		require.Equal(t, mode != rendezvous.RecoverOff, (&rendezvous.Spec{Recover: c.recover}).Recovers(), c)
		r := run{Plan: Plan{Spec: rendezvous.Spec{Recover: c.recover}}}
		if c.inTime {
			r.inTime = true
		}
		require.Equal(t, mode == rendezvous.RecoverExact, r.exact(), c)
	}
}
