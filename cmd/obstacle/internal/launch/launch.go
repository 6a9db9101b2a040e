package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/finite"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver"
)

// ErrInterrupted says that a run was interrupted before its first relaxation.
var ErrInterrupted = errors.New("interrupted before the first relaxation")

// Run solves. It returns an error when the run could not start; whatever happens
// after the first relaxation is in the Outcome, also a failure. When ctx ends it
// kills its children and returns at once.
func Run(ctx context.Context, p Plan) (*Outcome, error) {
	r := &run{
		Plan:   p,
		name:   rand.Text(),
		key:    driver.NewKey(),
		begin:  time.Now(),
		happen: make(chan occurrence, 4*p.Partition.Peers()+16),
		over:   make(chan struct{}),
	}
	for rank := range p.Partition.Peers() {
		box := p.Partition.Box(solver.Rank(rank))
		r.members = append(r.members, &member{rank: rank, box: box, final: box})
	}
	r.claims = newClaims(&p)
	var err error
	if r.series, err = newSeries(&p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r.ctx = ctx
	defer r.release(cancel)
	if err := r.gather(); err != nil {
		return nil, err
	}
	if err := r.assign(); err != nil {
		return nil, err
	}
	r.watch()
	return r.outcome(), nil
}

// run is a run in progress. Its fields belong to the goroutine of Run; the
// others talk to it over happen, and place blocks in u, each in its own box.
type run struct {
	Plan
	ctx      context.Context // ends: children are killed
	over     chan struct{}   // closed: occurrences are of no interest any more
	name     string
	key      driver.Key // of the control channels
	begin    time.Time
	started  time.Time
	verdict  time.Time // the last result came
	listener net.Listener
	members  []*member
	u        []float64
	room     sync.Once // makes u
	claims   *claims   // whose values are placed in u
	series   *series   // nil: the problem is stationary
	happen   chan occurrence
	refused  atomic.Int64 // connections that were sent away

	stopping bool     // an early end was asked for
	failure  *failure // the best account of what went wrong
	deadline <-chan time.Time
	beat     Progress
}

// failure is one account of what went wrong; a heavier one replaces it.
type failure struct {
	weight int
	rank   int // the peer that is to blame; -1: none
	text   string
}

// Accounts of a failure, from the vaguest to the surest.
const (
	reported = iota + 1 // a peer says so
	silent              // the launcher has not heard of it
	closed              // its connection ended
	exited              // its process ended
)

// vector is the assembled iterate, made when the first block comes: a peer of this
// process has given up its arrays by then.
func (r *run) vector() []float64 {
	r.room.Do(func() {
		if r.u = r.Answer; r.u == nil {
			r.u = host.Array(r.Problem.Points())
		}
	})
	return r.u
}

// emit hands an occurrence to the launcher; false when the run is over.
func (r *run) emit(o occurrence) bool {
	select {
	case r.happen <- o:
		return true
	case <-r.over:
		return false
	}
}

// watch starts the relaxations and follows them to the end.
func (r *run) watch() {
	r.started = time.Now()
	r.beat.Residual = math.NaN()
	for _, m := range r.members {
		m.heard = r.started
		m.tell(rendezvous.Start{})
	}
	r.Status.Enter(Solving)
	r.Log.Info().Int("peers", len(r.members)).Dur("setup", r.started.Sub(r.begin)).Msg("started")
	var limit <-chan time.Time
	if r.MaxTime > 0 {
		// The peers keep to it themselves; this is for one that does not.
		t := time.NewTimer(r.MaxTime + r.patience())
		defer t.Stop()
		limit = t.C
	}
	look := time.NewTicker(max(r.PeerTimeout/20, 5*time.Millisecond))
	defer look.Stop()
	interrupt := r.Interrupt
	for !r.finished() {
		select {
		case o := <-r.happen:
			r.handle(o)
		case <-look.C:
			r.listen()
		case <-limit:
			r.stop()
		case <-interrupt:
			interrupt = nil
			r.stop()
		case <-r.deadline:
			r.overdue()
			return
		case <-r.ctx.Done():
			r.fail(failure{exited, -1, "ended at once, on request"})
			return
		}
	}
}

// finished tells that every peer has given its result or is gone.
func (r *run) finished() bool {
	for _, m := range r.members {
		if !m.done() {
			return false
		}
	}
	// A peer that is gone may still be about to say why: its process ends.
	if r.failure != nil && r.failure.weight == closed && r.failure.rank >= 0 {
		if m := r.members[r.failure.rank]; m.gone && m.child != nil && !m.exited {
			return false
		}
	}
	return true
}

func (r *run) handle(o occurrence) {
	if o.joined != nil { // too late: every seat is taken
		r.seat(o.joined, o.join)
		return
	}
	m := r.members[o.rank]
	m.heard = time.Now()
	switch {
	case o.exited:
		m.exited = true
		if m.result == nil {
			m.gone = true
			r.fail(failure{exited, m.rank, fmt.Sprintf("%s ended: %s", m, exitText(o.exit))})
		}
	case o.closed != nil:
		m.gone = true
		if m.result == nil {
			r.fail(failure{closed, m.rank, fmt.Sprintf("%s closed its connection: %v", m, o.closed)})
		}
	case o.bytes > 0:
		m.received += o.bytes
	case o.message != nil:
		r.receive(m, o.message)
	}
}

func exitText(err error) string {
	if err == nil {
		return "it left the run"
	}
	return err.Error()
}

func (r *run) receive(m *member, msg rendezvous.Message) {
	switch msg := msg.(type) {
	case rendezvous.Beat:
		r.Status.setSweeps(m.rank, msg.Sweep)
		if m.rank == 0 {
			if r.beat.Sweep == 0 && msg.Sweep > 0 {
				r.Log.Info().Msg("relaxing")
			}
			r.beat.Step, r.beat.Sweep = msg.Step, msg.Sweep
		}
		if res := float64(msg.Residual); !math.IsNaN(res) {
			r.beat.Residual = res
		}
		if m.rank == 0 {
			r.beat.Elapsed = time.Since(r.started)
			r.Status.setProgress(r.beat)
			if r.Watch != nil {
				r.Watch(r.beat)
			}
		}
	case rendezvous.Sessions:
		r.Status.setSessions(m.rank, msg.Sessions)
	case rendezvous.Result:
		r.verdict = time.Now()
		if msg.Placed && (r.Answer == nil || m.child == nil) {
			m.gone = true
			m.conn.Close()
			r.fail(failure{closed, m.rank, fmt.Sprintf("%s says that its block is in memory that it was not given", m)})
			return
		}
		m.result = &msg
		if msg.Placed {
			m.received = blocks.Bytes(m.final)
		}
		r.Log.Debug().Int("rank", m.rank).Str("reason", msg.Reason).Uint64("sweeps", msg.Sweeps).Msg("result")
		if msg.Reason != Failed {
			return
		}
		text := fmt.Sprintf("%s failed: %s", m, msg.Error)
		blame := m.rank
		if msg.Lost >= 0 && msg.Lost < len(r.members) {
			blame = msg.Lost
			text = fmt.Sprintf("%s was lost: %s says %s", r.members[blame], m, msg.Error)
		}
		r.fail(failure{reported, blame, text})
	case rendezvous.Block:
		m.final = msg.Box()
	case rendezvous.Step:
	default:
		m.gone = true
		m.conn.Close()
		r.fail(failure{closed, m.rank, fmt.Sprintf("%s sent a %T out of turn", m, msg)})
	}
}

// listen finds peers that have been silent for too long.
func (r *run) listen() {
	for _, m := range r.members {
		if m.held.Load() {
			m.heard = time.Now()
		}
		if quiet := time.Since(m.heard); !m.done() && quiet > r.PeerTimeout {
			m.gone = true
			r.fail(failure{silent, m.rank, fmt.Sprintf("%s has been silent for %v (--peer-timeout %v)", m, quiet.Round(10*time.Millisecond), r.PeerTimeout)})
		}
	}
}

// fail notes what went wrong and, the first time, ends the run.
func (r *run) fail(f failure) {
	first := r.failure == nil
	level := zerolog.DebugLevel
	if first || f.weight > r.failure.weight && (r.failure.rank == f.rank || r.failure.weight == reported) {
		r.failure = &f
		level = zerolog.WarnLevel
	}
	if f.weight > reported {
		r.Status.setLost(f.rank)
	}
	r.Log.WithLevel(level).Int("rank", f.rank).Msg(f.text)
	if first {
		for _, m := range r.members {
			if !m.done() {
				m.tell(rendezvous.Lost{Rank: f.rank, Why: f.text})
			}
		}
		r.deadline = time.After(StopTime)
	}
}

// stop asks the peers for an early end.
func (r *run) stop() {
	if r.stopping || r.failure != nil {
		return
	}
	r.stopping = true
	r.Log.Info().Msg("stopping")
	for _, m := range r.members {
		if !m.done() {
			m.tell(rendezvous.Stop{})
		}
	}
	r.deadline = time.After(r.patience())
}

// patience is how long the peers may take to agree on an early end and to hand
// over their blocks.
func (r *run) patience() time.Duration { return 3*r.PeerTimeout + StopTime }

// overdue names the peers that did not end in time.
func (r *run) overdue() {
	for _, m := range r.members {
		if !m.done() {
			r.fail(failure{reported, m.rank, fmt.Sprintf("%s did not end in time after being asked to", m)})
		}
	}
}

// outcome sums up; the peers may go.
func (r *run) outcome() *Outcome {
	close(r.over)
	if r.series != nil {
		r.series.close()
	}
	for _, m := range r.members {
		if !m.done() || m.missing() {
			m.conn.Close()
			r.halt(m)
			<-m.attended // nothing is placed any more
		}
	}
	o := &Outcome{U: r.vector(), Strangers: r.refused.Load(), Setup: r.started.Sub(r.begin), Gather: time.Since(r.started)}
	o.Run = o.Gather
	if !r.verdict.IsZero() {
		o.Run = r.verdict.Sub(r.started)
	}
	for _, m := range r.members {
		res := rendezvous.Result{Points: m.final.Points(), Lost: -1, Residual: finite.NaN()}
		if m.result != nil {
			res = *m.result
			o.Reason = worse(o.Reason, res.Reason)
		}
		if m.missing() {
			o.Missing = append(o.Missing, m.rank)
		}
		o.Boxes = append(o.Boxes, m.final)
		o.Peers = append(o.Peers, res)
		o.Hosts = append(o.Hosts, rendezvous.Member{Rank: m.rank, Host: m.join.Host, Pid: m.join.Pid, Control: m.control, Cluster: m.label})
	}
	if r.series == nil {
		r.fill(o)
	}
	if r.failure != nil || len(o.Missing) > 0 {
		o.Reason = Failed
		o.Failure = "a block did not come whole"
		if r.failure != nil {
			o.Failure = r.failure.text
		}
	}
	if r.series != nil {
		r.series.sum(o)
	}
	return o
}

// halt ends a peer that may still be writing to the answer.
func (r *run) halt(m *member) {
	if r.Answer == nil || m.child == nil {
		return
	}
	m.child.Kill()
	select {
	case <-m.ended:
	case <-time.After(killTime):
	}
}

// fill puts starting values where no peer's block has come. In a run that has failed,
// planes may have been on their way between two peers.
func (r *run) fill(o *Outcome) {
	if !r.Balance {
		for _, rank := range o.Missing {
			startingValues(r.Problem, r.Initial, r.members[rank].box, r.vector())
		}
		return
	}
	gaps := r.claims.gaps(func(rank int) bool { return !r.members[rank].missing() })
	for _, gap := range gaps {
		startingValues(r.Problem, r.Initial, gap, r.vector())
	}
	if len(gaps) > 0 && r.failure == nil {
		r.failure = &failure{closed, -1, fmt.Sprintf("no peer has the planes %d to %d", gaps[0].Lo[r.claims.axis], gaps[0].Hi[r.claims.axis])}
	}
}

// worse is the reason that describes a run of two peers best. They agree unless
// one of them failed.
func worse(a, b string) string {
	if a == "" || b == Failed {
		return b
	}
	return a
}

// killTime is how long a peer's process may take to end once the run is over.
const killTime = 3 * time.Second

// release lets the peers go, and leaves no process behind.
func (r *run) release(cancel context.CancelFunc) {
	select {
	case <-r.over:
	default:
		close(r.over)
	}
	if r.listener != nil {
		r.listener.Close()
	}
	for _, m := range r.members {
		if m.conn != nil {
			m.tell(rendezvous.Bye{})
			close(m.out)
		}
	}
	patience := time.NewTimer(killTime)
	defer patience.Stop()
	for _, m := range r.members {
		if m.child == nil {
			continue
		}
		if m.gone || r.started.IsZero() || r.ctx.Err() != nil {
			m.child.Kill()
		}
		select {
		case <-m.ended:
		case <-patience.C:
			r.Log.Warn().Int("rank", m.rank).Msg("the peer's process did not end; it is killed")
			patience.Reset(0)
			m.child.Kill()
			<-m.ended
		}
	}
	cancel()
	for _, m := range r.members {
		if m.conn == nil {
			continue
		}
		select {
		case <-m.written:
		case <-patience.C:
			patience.Reset(0)
		}
		m.conn.Close()
	}
}
