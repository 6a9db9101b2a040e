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

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/rs/zerolog"
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
		every:  lookEvery(p.PeerTimeout),
	}
	for rank := range p.Partition.Peers() {
		box := p.Partition.Box(iterate.Rank(rank))
		r.members = append(r.members, &member{rank: rank, box: box, final: box})
	}
	r.claims = newClaims(&p)
	var err error
	if r.series, err = newSeries(&p); err != nil {
		return nil, err
	}
	children, cancel := context.WithCancel(ctx)
	r.ctx = children
	release := sync.OnceFunc(func() { r.release(cancel) })
	defer release()
	if err := r.gather(); err != nil {
		return nil, err
	}
	if err := r.assign(); err != nil {
		return nil, err
	}
	r.watch()
	o := r.outcome()
	release() // before the launcher computes: the peers have their memory still
	r.fill(ctx, o)
	return o, nil
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
	room     sync.Once     // makes u
	claims   *claims       // whose values are placed in u
	holes    []problem.Box // of u, where none are
	series   *series       // nil: the problem is stationary
	happen   chan occurrence
	refused  atomic.Int64 // connections that were sent away

	every    time.Duration // between two looks
	joining  bool          // peers may still come
	refusal  error         // why the last peer that joined was given up; nil: none was
	stopping bool          // an early end was asked for
	failure  *failure      // the best account of what went wrong
	left     int           // looks until the peers are overdue; 0: nothing was asked of them
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
		m.quiet = 0
		m.tell(rendezvous.Start{})
	}
	r.Status.Enter(Solving)
	r.Log.Info().Int("peers", len(r.members)).Dur("setup", r.started.Sub(r.begin)).Msg("started")
	look := time.NewTicker(r.every)
	defer look.Stop()
	// The peers keep to MaxTime themselves; this is for one that does not.
	limit := 0
	if r.MaxTime > 0 {
		limit = r.looks(r.MaxTime + r.patience())
	}
	interrupt := r.Interrupt
	for !r.finished() {
		select {
		case o := <-r.happen:
			r.handle(o)
		case <-look.C:
			if r.listen(); r.left == 1 {
				r.overdue()
				return
			}
			r.left = max(r.left-1, 0)
			if limit--; limit == 0 {
				r.stop()
			}
		case <-interrupt:
			interrupt = nil
			r.stop()
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
	m := o.of
	m.quiet = 0
	switch {
	case o.exited:
		// What it has sent may still be unread: the end of its connection comes after that.
		m.exited, m.exit = true, o.exit
		if m.result == nil && (m.gone || m.held.Load()) {
			r.lose(m)
		}
	case o.closed != nil:
		m.gone = true
		switch {
		case m.result != nil:
		case m.exited:
			r.lose(m)
		default:
			r.fail(failure{closed, m.rank, fmt.Sprintf("%s closed its connection: %v", m, o.closed)})
		}
	case o.bytes > 0:
		m.received += o.bytes
	case o.message != nil:
		r.receive(m, o.message)
	}
}

// lose gives up a peer whose process has ended.
func (r *run) lose(m *member) {
	m.gone = true
	r.fail(failure{exited, m.rank, fmt.Sprintf("%s ended: %s", m, exitText(m.exit))})
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

// listen looks for peers that have been silent for too long, or have ended.
func (r *run) listen() {
	for _, m := range r.members {
		held := m.held.Load()
		switch {
		case m.done():
		case held && m.exited:
			r.lose(m)
		case m.look(held, r.looks(r.PeerTimeout)):
			m.gone = true
			r.fail(failure{silent, m.rank, m.silence(r.PeerTimeout)})
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
		for _, m := range r.members { // also those that have given their results: their run failed
			m.tell(rendezvous.Lost{Rank: f.rank, Why: f.text})
		}
		r.left = r.looks(StopTime)
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
	r.left = r.looks(r.patience())
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
