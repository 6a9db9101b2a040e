package launch

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stage is a run with --recover exact whose leader is the shipped one. Its peers are models that keep iterates with the
// shipped package buddy, in lockstep. The test chooses who acts next.
type stage struct {
	t       *rapid.T
	r       *run
	conns   connection     // number of them so far
	peers   []*model       // that live
	froms   map[int]string // by epoch: the iterate from which its peers go on
	dead    map[int]bool   // processes
	again   int            // assignments that begin again
	resumed int            // the others
	met     int            // losses in epochs in which parts move
}

// model is a peer.
type model struct {
	m       *member
	pid     int
	store   buddy.Store
	epoch   int
	listens bool // in the epoch
	ready   bool
	work    *workload // of the epoch
	at      iterate.Iteration
	base    iterate.Iteration // from which the epoch has gone on
	keeps   bool              // it waits at an iterate that all keep
	stored  bool              // its buddy has the copy
	kept    iterate.Iteration // newest
}

const (
	stageParts = 10
	keepEach   = 3 // iterates
)

// block returns the values of a rank's block at an iterate.
func (s *stage) block(rank int, k iterate.Iteration) []float64 {
	return slices.Repeat([]float64{float64(1000*rank) + float64(k)}, s.r.members[rank].box.Points())
}

func newStage(t *rapid.T, p Plan) *stage {
	s := &stage{t: t, r: newRun(p, "run", nil), froms: map[int]string{}, dead: map[int]bool{}}
	r := s.r
	r.started, r.KeepEvery = true, time.Second
	for rank, m := range r.members {
		m.conn, m.valued, m.informed, m.control = s.conn(), true, true, "a:1"
		m.join = rendezvous.Join{Host: "h", Pid: 1 + rank/2}
		s.appear(m)
		q := s.peers[rank]
		q.listens, q.ready, q.work = true, true, &workload{}
	}
	return s
}

func (s *stage) conn() connection {
	s.conns++
	return s.conns
}

// appear adds the model of a peer that the leader has welcomed. The model reads what the leader sends from now on.
func (s *stage) appear(m *member) {
	for s.r.next(m) != nil {
	}
	s.peers = append(s.peers, &model{m: m, pid: m.join.Pid, epoch: s.r.epoch})
}

// find returns the live model of the process that has a seat, nil if there is none.
func (s *stage) find(rank int) *model {
	i := slices.IndexFunc(s.peers, func(q *model) bool { return q.m == s.r.members[rank] })
	if i < 0 {
		return nil
	}
	return s.peers[i]
}

// join lets a process run another peer.
func (s *stage) join(pid, rank int) {
	s.r.handle(event{joined: &caller{conn: s.conn(), join: rendezvous.Join{Rank: rank, Host: "h", Pid: pid}}})
	s.meet()
}

// meet adds the models of all peers that were welcomed.
func (s *stage) meet() {
	s.r.effects = slices.DeleteFunc(s.r.effects, func(e effect) bool { _, is := e.(send); return !is })
	for _, m := range s.r.members {
		known := slices.ContainsFunc(s.peers, func(q *model) bool { return q.m == m })
		if m.conn == 0 || known || m.gone {
			continue
		}
		if s.dead[m.join.Pid] { // it has ended before the leader welcomed it
			s.r.handle(event{of: m, closed: io.EOF})
			s.meet()
			return
		}
		s.appear(m)
	}
}

// receive lets a peer handle the next message of the leader. It reports whether there was one.
func (s *stage) receive(q *model) bool {
	switch msg := s.r.next(q.m).(type) {
	case nil:
		return false
	case rendezvous.Epoch:
		q.end(s)
		q.epoch, q.listens, q.work, q.ready = msg.Epoch, false, nil, false
	case rendezvous.Host:
		s.join(q.pid, msg.Rank)
	case rendezvous.Bye:
		s.peers = slices.DeleteFunc(s.peers, func(p *model) bool { return p == q })
	case rendezvous.Capture:
		k := q.store.Other(iterate.Rank(msg.Copy.Rank), iterate.Iteration(msg.Copy.Iterate))
		if msg.Copy.Rank == q.m.rank {
			k = q.store.Own(iterate.Iteration(msg.Copy.Iterate))
		}
		require.NotNil(s.t, k, "the copy that it claimed to have")
		s.r.handle(event{of: q.m, message: rendezvous.Captured{Number: msg.Number, Copy: msg.Copy, State: k.State}, values: k.Values})
	case *workload:
		if msg.assign.Epoch == q.epoch {
			q.resume(s, msg)
		}
	}
	s.meet()
	return true
}

// end ends an epoch as a peer does.
func (q *model) end(s *stage) {
	if q.work != nil {
		q.store.Freeze(q.at, s.block(q.m.rank, q.at))
	}
}

// resume goes on from the iterate that the leader names. All peers of an epoch get the same.
func (q *model) resume(s *stage, w *workload) {
	from := w.assign.Resume
	text := fmt.Sprintf("%d %v", from.Iterate, from.Again)
	if s.froms[q.epoch] == "" {
		s.froms[q.epoch] = text
	}
	require.Equal(s.t, s.froms[q.epoch], text)
	q.work, q.at, q.base, q.keeps, q.stored, q.kept = w, iterate.Iteration(from.Iterate), iterate.Iteration(from.Iterate), false, false, 0
	if from.Again {
		q.store.Discard()
		q.at, q.base = 0, 0
		s.again++
		return
	}
	s.resumed++
	k := q.store.Own(q.at)
	if from.State != nil {
		k = &buddy.Copy{Iterate: q.at, State: from.State, Values: w.block}
	}
	require.NotNil(s.t, k)
	require.Equal(s.t, s.block(q.m.rank, q.at), k.Values)
	require.Equal(s.t, fmt.Sprint(q.at), string(k.State))
	q.store.Resume(k)
	q.keeps = true // again, since the buddies may be others
	q.store.Begin(q.at, k.State)
}

// all reports whether every seat has a peer that relaxes in an epoch and is such that is holds.
func (s *stage) all(epoch int, is func(p *model) bool) bool {
	for rank := range s.r.members {
		if p := s.find(rank); p == nil || p.epoch != epoch || p.work == nil || !is(p) {
			return false
		}
	}
	return true
}

// act performs the next step of a peer: it listens, becomes ready, stores a copy, completes one, or relaxes.
func (s *stage) act(q *model) bool {
	switch {
	case !q.listens:
		q.listens = true
		h := q.store.Holding()
		s.r.handle(event{of: q.m, message: rendezvous.Listen{
			Epoch: q.epoch, Control: "a:1", Sweep: uint64(q.at), Idle: true, Holding: &h,
		}})
	case q.work == nil:
		return false
	case !q.ready:
		q.ready = true
		s.r.handle(event{of: q.m, message: rendezvous.Ready{Epoch: q.epoch}})
	case q.keeps && !q.stored:
		hosts := make([]rendezvous.Member, len(s.r.members))
		for rank, m := range s.r.members {
			hosts[rank] = m.entry()
		}
		to := s.find(int(buddy.Of(rendezvous.Apart(hosts))[q.m.rank]))
		if to == nil || to.epoch != q.epoch || s.r.members[q.m.rank] != q.m {
			return false
		}
		to.store.Add(iterate.Rank(q.m.rank), &buddy.Copy{
			Iterate: q.at, State: []byte(fmt.Sprint(q.at)), Values: s.block(q.m.rank, q.at),
		})
		q.stored = true
	case q.keeps:
		done := func(p *model) bool { return p.at == q.at && p.stored || p.at > q.at || p.kept >= q.at && p.kept > 0 }
		if !s.all(q.epoch, done) {
			return false
		}
		q.store.Complete(q.at, len(s.block(q.m.rank, q.at)), func(u []float64) { copy(u, s.block(q.m.rank, q.at)) })
		q.kept, q.keeps, q.stored = q.at, false, false
	default:
		if !s.all(q.epoch, func(p *model) bool { return p.ready && p.at >= q.at }) {
			return false
		}
		if q.at++; q.at%keepEach == 0 {
			q.keeps = true
			q.store.Begin(q.at, []byte(fmt.Sprint(q.at)))
		}
	}
	s.meet()
	return true
}

// kill ends a process.
func (s *stage) kill(pid int) {
	s.dead[pid] = true
	var others []*member
	for _, m := range s.r.members {
		if m.conn != 0 && !s.dead[m.join.Pid] && s.r.handoverTo(m) == nil {
			others = append(others, m)
		}
	}
	defer func() {
		for _, m := range others {
			require.False(s.t, m.lost, "rank %d of the living process %d", m.rank, m.join.Pid)
		}
	}()
	for _, q := range slices.Clone(s.peers) {
		if q.pid == pid {
			s.peers = slices.DeleteFunc(s.peers, func(p *model) bool { return p == q })
			s.r.handle(event{of: q.m, closed: io.EOF})
		}
	}
	s.meet()
}

// processes returns those that live.
func (s *stage) processes() (all []int) {
	for _, q := range s.peers {
		all = append(all, q.pid)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// move asks a process to take a part.
func (s *stage) move(rank, pid int) {
	to := process{host: "h", pid: pid}
	if m := s.r.members[rank]; !s.r.active && len(s.r.pending) == 0 && processOf(m) != to {
		s.r.prepareMove(m, to)
	}
}

// Processes are lost at any point of moves of parts, in any order of messages. All peers of an epoch go on from the same
// iterate, each with the values that its part had there, and the run goes on.
func TestLossesMeetMoves(t *testing.T) {
	p := rehearsalPlan(t)
	spec, err := file.Open(nil, "membrane", nil)
	require.NoError(t, err)
	p.ProblemSpec = spec
	p.Problem, err = spec.BuildValid([]int{12})
	require.NoError(t, err)
	p.Partition, err = problem.Slabs(p.Problem.N, stageParts, nil)
	require.NoError(t, err)
	p.Recover, p.Parts, p.Suspect, p.PeerTimeout = rendezvous.RecoverExact, 2, time.Minute, time.Second
	var again, resumed, met int
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(t, p)
		for range rapid.IntRange(0, 20).Draw(t, "rounds before") + 10 {
			s.round()
		}
		kills, moves := 0, 0
		for range 200 {
			n := rapid.IntRange(0, 99).Draw(t, "what")
			meets := len(s.r.handing) > 0 && n < 8
			switch {
			case (meets || n == 0 && (!s.r.active || kills%2 == 1)) && kills < 3 && len(s.processes()) > 1:
				if kills++; meets {
					s.met++
				}
				s.kill(rapid.SampledFrom(s.processes()).Draw(t, "killed"))
			case n <= 5 && moves < 6:
				moves++
				s.move(rapid.IntRange(0, stageParts-1).Draw(t, "part"), rapid.SampledFrom(s.processes()).Draw(t, "to"))
			case n <= 10:
				s.r.checkMoves()
				s.meet()
			case n >= 95:
				s.round()
			default:
				q := s.peers[rapid.IntRange(0, len(s.peers)-1).Draw(t, "peer")]
				if !s.receive(q) {
					s.act(q)
				}
			}
			require.Nil(t, s.r.failure)
		}
		s.goesOn()
		again, resumed, met = again+s.again, resumed+s.resumed, met+s.met
	})
	t.Logf("assignments: %d go on from a kept iterate, %d begin again; losses during moves: %d", resumed, again, met)
	require.Positive(t, resumed)
	require.Positive(t, met, "losses in epochs in which parts move")
}

// round lets each peer act once.
func (s *stage) round() {
	for _, q := range slices.Clone(s.peers) {
		if !s.receive(q) {
			s.act(q)
		}
	}
}

// goesOn requires that the run goes on when nothing more happens to it.
func (s *stage) goesOn() {
	from := iterate.Iteration(0)
	for _, q := range s.peers {
		from = max(from, q.at)
	}
	for range 2000 {
		s.round()
		s.r.checkMoves()
		s.meet()
		if !s.r.active && len(s.r.pending) == 0 && s.all(s.r.epoch, func(p *model) bool { return p.at > from+2*keepEach }) {
			return
		}
	}
	var at []string
	for _, q := range s.peers {
		at = append(at, fmt.Sprintf("rank %d of %d: epoch %d, listens %v, work %v, ready %v, at %d, keeps %v", q.m.rank, q.pid, q.epoch,
			q.listens, q.work != nil, q.ready, q.at, q.keeps))
	}
	for _, l := range s.r.losses {
		at = append(at, fmt.Sprintf("lost %d: %s", l.Rank, l.Why))
	}
	s.t.Fatalf("the run stands still: active %v, epoch %d, pending %d: %v", s.r.active, s.r.epoch, len(s.r.pending), at)
}
