package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// countStaleness counts the ages of the newest faces received. It is called when a sweep begins.
func (m *machine) countStaleness() {
	newest := m.peer.Outcome().Iterate
	at := 0
	for _, n := range m.host.Exchange.Neighbours() {
		if len(n.Slots) == 0 {
			continue
		}
		age := 0
		step, _, label := iterate.UnpackLabel(n.Newest())
		// A face may be of the next time step. In a run that goes on from a kept iterate, which is in lockstep, the labels
		// may begin again.
		if label < newest && step <= m.peer.Progress().Step && m.e.run.resumed.copies == nil {
			age = int(newest - label)
		}
		m.staleness[iterate.AgeBucket(age)]++
		if at == len(m.reads) {
			m.reads = append(m.reads, Reads{Rank: n.Rank})
		}
		r := &m.reads[at]
		if n.Newest() != r.label {
			r.Fresh, r.label = r.Fresh+1, n.Newest()
		}
		r.Faces++
		r.Sum, r.Newest = r.Sum+uint64(age), age
		at++
	}
}

// timeline records when the sweeps of a rank ended. It keeps those whose number is a multiple of a
// stride, which doubles when there are too many.
type timeline struct {
	swept  iterate.Iteration
	stride iterate.Iteration
	ends   []microproto.Instant // of sweeps stride, 2·stride and so on
	last   microproto.Instant
}

const timelineMost = 64

// add records the end of another sweep and returns the number of sweeps so far.
func (t *timeline) add(now microproto.Instant) iterate.Iteration {
	t.swept++
	t.last = now
	t.stride = cmp.Or(t.stride, 1)
	if t.swept%t.stride == 0 {
		t.ends = append(t.ends, now)
		if len(t.ends) == timelineMost {
			for i := range timelineMost / 2 {
				t.ends[i] = t.ends[2*i+1]
			}
			t.ends = t.ends[:timelineMost/2]
			t.stride *= 2
		}
	}
	return t.swept
}

// steady returns the mean time of a sweep in the second half; 0: there were too few.
func (t *timeline) steady() time.Duration {
	half := len(t.ends) / 2
	if half == 0 {
		return 0
	}
	return t.last.Sub(t.ends[half-1]) / time.Duration(t.swept-iterate.Iteration(half)*t.stride)
}

// result collects the outcome of the run.
func (e *engine) result() (*Result, error) {
	r := &Result{Reason: e.ended, Virtual: e.elapsed(), Setup: time.Duration(e.now), Residual: math.NaN(),
		Ranks: make([]RankResult, len(e.hosts))}
	if e.began != microproto.Never {
		r.Setup = time.Duration(e.began)
	}
	if int(e.done.Load()) == len(e.hosts) {
		r.Reason = e.hosts[0].peer.Outcome().Reason
	}
	for _, p := range e.processes {
		r.Events += p.events
	}
	var steady []time.Duration
	for rank, m := range e.hosts {
		k := &r.Ranks[rank]
		*k = e.account(m, r.Virtual)
		m.host.Sessions(func(id p2psap.SessionID, _ bool) {
			if i, err := m.host.Node.Info(id); err == nil {
				k.Messages += i.MessagesSent
			}
		})
		for age, n := range m.staleness {
			r.Staleness[age] += n
		}
		if s := m.timeline.steady(); s > 0 {
			steady = append(steady, s)
		}
	}
	if len(steady) > 0 {
		slices.Sort(steady)
		r.Steady = steady[len(steady)/2]
	}
	if e.run.New != nil {
		r.Residual = e.hosts[0].peer.Outcome().Residual
		return r, nil
	}
	if err := e.assess(r); err != nil {
		return r, err
	}
	all := e.run.resumed.series == nil || e.run.resumed.series.over()
	if e.run.Evaluate && all {
		r.Met = e.metBy(r.Virtual, r.Residual)
	}
	return r, nil
}

// account returns the account of a rank after some time, but for its messages.
func (e *engine) account(m *machine, virtual time.Duration) RankResult {
	k := m.rank
	k.Lost = m.gone.Load()
	k.Sweeps = float64(m.points) / float64(m.block)
	k.Relaxing, k.Protocol = m.relaxing, m.stolen
	if until := m.host.Busy(); m.host.Relaxing() && until > e.now {
		k.Relaxing = max(0, k.Relaxing-until.Sub(e.now)) // the rest of its part has not been relaxed
	}
	if m.shared && m.protocol > e.now {
		k.Protocol = max(0, k.Protocol-m.protocol.Sub(e.now)) // nor has the protocol handled all that it received
	}
	k.Idle = max(0, virtual-k.Relaxing-k.Protocol)
	k.Reads = slices.Clone(m.reads)
	return k
}

// add adds what the same rank has read in the epochs before.
func (k *RankResult) add(before []Reads) {
	for _, b := range before {
		i := slices.IndexFunc(k.Reads, func(r Reads) bool { return r.Rank == b.Rank })
		if i < 0 {
			k.Reads = append(k.Reads, b)
			continue
		}
		k.Reads[i].Faces += b.Faces
		k.Reads[i].Fresh += b.Fresh
		k.Reads[i].Sum += b.Sum
	}
}

// assess sets the answer and its residual.
func (e *engine) assess(r *Result) error {
	if s := e.run.resumed.series; s != nil {
		if !e.left {
			e.completeSteps(microproto.Never) // the launcher waits for the blocks after the run
		}
		return s.result(r)
	}
	r.U = e.assemble()
	v, err := verify.Evaluate(e.run.Solver.Problem, r.U, nil)
	r.Residual = v.RelativeResidual
	return err
}

// settled returns the machine's problem.Peer once no relaxation of it is in progress.
func (m *machine) settled() problem.Peer {
	m.peer.Outcome()
	return m.solution
}

// assemble returns the blocks of all ranks in one grid, [z][y][x].
func (e *engine) assemble() []float64 {
	p := e.run.Solver.Problem
	u := make([]float64, p.Points())
	for rank, m := range e.hosts {
		virtual.Place(u, p.N, m.settled().Box(), e.solution(rank))
	}
	return u
}
