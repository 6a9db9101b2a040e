// Package runner runs a peer in real time over P2PSAP sockets. Package exchange decides what is sent
// and received; the runner supplies time, sockets, threads, early ends and progress. One goroutine
// does everything but the relaxations of a peer of several threads.
package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/trace"
)

// Runner is one peer of a run: New, Run once, Solution, Close. Its methods are for one goroutine, except Do and Abandon.
type Runner struct {
	config   Config
	log      *slog.Logger
	peer     iterate.Peer
	gridPeer problem.Peer // peer, of an obstacle problem; nil otherwise
	points   int          // that a sweep relaxes, at the beginning
	pool     *Pool
	exchange *exchange.Exchange
	sessions []*session

	start        time.Time
	keeping      sync.Mutex      // held while Config.Keep reads values
	closed       bool            // it reads no more
	calls        *calls          // of Do
	stopContext  context.Context // ends when an early end is requested
	running      context.Context // ends with the run
	end          context.CancelFunc
	ended        context.Context // has ended: for calls that must not block
	adapted      chan struct{}   // signalled when a session has changed its mode
	first        time.Duration   // when the first relaxation began; −1: not yet
	stopped      time.Duration   // when the run ended
	pace         pace
	delayDebt    time.Duration // that a slowed-down peer still waits
	fastest      float64       // shortest time in which it has relaxed a point, in seconds
	relaxed      uint64        // points
	busy         time.Duration // that this has taken
	waiting      time.Duration // for other peers, since the first relaxation
	reads        []Reads       // of the neighbours with halos; with Config.CountReads
	asynchronous bool          // some neighbours are asynchronous by the scheme
	news         bool          // something has arrived since the sweep began

	stopping        bool          // an early end was requested
	stopRequestedAt time.Duration // by ran
	stopWhy         iterate.Reason
	lookedAt        time.Duration // at the paths, by ran; see cutOff
	ran             ranTime
	nextTimeout     time.Duration // when the time of a neighbour that has closed its sessions ends, by ran
}

// New builds the peer's block and opens its sessions: it blocks until every neighbour has opened its own, one of
// them refuses, or ctx ends. On an error nothing stays open.
func New(ctx context.Context, c Config) (*Runner, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Runner{
		config: c, calls: newCalls(), first: -1, nextTimeout: exchange.Never, adapted: make(chan struct{}, 1),
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)).With("rank", int(c.Rank)),
	}
	ended, end := context.WithCancel(context.Background())
	end()
	r.ended = ended
	r.running, r.end = context.WithCancel(context.Background())
	if err := r.build(); err != nil {
		r.Close()
		return nil, err
	}
	r.connect()
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// ErrAbandoned is returned by Run when Abandon has ended it.
var ErrAbandoned = errors.New("runner: the run was abandoned")

// build makes the peer of an obstacle problem, with its threads; a peer that is given is taken as it is.
func (r *Runner) build() (err error) {
	c := &r.config
	if c.Peer != nil {
		r.peer, r.points = c.Peer, c.Points
		return nil
	}
	if c.Solver.Executor == nil && c.Threads > 1 {
		r.pool = NewPool(c.Threads)
		c.Solver.Executor = r.pool
		c.Solver.Tiling.Pieces = cmp.Or(c.Solver.Tiling.Pieces, c.Threads)
	}
	if r.gridPeer, err = c.New(c.Solver); err != nil {
		return err
	}
	r.peer = r.gridPeer
	return nil
}

// sweepPoints returns the points that a sweep relaxes now.
func (r *Runner) sweepPoints() int {
	if r.gridPeer != nil {
		return r.gridPeer.Box().Points()
	}
	return r.points
}

// connect makes the exchange of the peer.
func (r *Runner) connect() {
	r.exchange = exchange.New(exchange.Config{
		Rank: r.config.Rank, Peer: r.peer,
		Name: func(q iterate.Rank) string { return r.config.Names[q] }, Survive: r.config.Survive,
		Lost: func(q iterate.Rank, why error) {
			r.log.Info("going on without a neighbour", "error", why)
			if r.config.Lost != nil {
				r.config.Lost(q, why)
			}
		},
		Pump: r.pump,
	})
	for _, n := range r.exchange.Neighbours() {
		r.asynchronous = r.asynchronous || n.Asynchronous
	}
}

// pump handles arrivals and tells the exchange which sessions have changed.
func (r *Runner) pump() error {
	if r.config.Node == nil {
		return nil
	}
	err := r.config.Node.Pump()
	for _, s := range r.sessions {
		if k := s.Activity(); k != s.seen {
			s.seen = k
			r.exchange.Touch(s.with, s.halo)
		}
	}
	return err
}

// open opens all sessions at once, since neighbours open theirs in different orders. The first
// error ends the other attempts.
func (r *Runner) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type attempt struct {
		socket Socket
		with   *exchange.Neighbour
		halo   bool
		err    error
	}
	results := make(chan attempt)
	attempts := 0
	for _, n := range r.exchange.Neighbours() {
		open := func(options func() p2psap.OpenOptions, halo bool) {
			attempts++
			go func() {
				s, err := r.config.Node.Open(ctx, n.Name, options())
				if err != nil {
					err = n.Fail(err)
				}
				results <- attempt{s, n, halo, err}
			}()
		}
		if n.HasHalo() {
			open(n.HaloOptions, true)
		}
		if n.Agreement > 0 {
			open(n.AgreeOptions, false)
		}
	}
	var first error
	for range attempts {
		a := <-results
		switch {
		case a.err == nil:
			s := &session{Socket: a.socket, r: r, with: a.with, halo: a.halo, seen: a.socket.Activity() - 1} // read it once
			if r.sessions = append(r.sessions, s); a.halo {
				a.with.Halo = s
			} else {
				a.with.Agree = s
			}
		case first == nil || errors.Is(first, context.Canceled):
			first = a.err
			cancel()
		}
	}
	return first
}

func (r *Runner) now() time.Duration { return time.Since(r.start) }

// Run iterates until the verdict. An early end (ctx, Config.Stop, Config.MaxTime) is no error: Result.Reason gives
// it. Where the path to a neighbour carries nothing, the peer then ends alone, with its newest iterate. An error ends the run of this peer; Solution then returns its newest complete iterate.
func (r *Runner) Run(ctx context.Context) (Result, error) {
	r.start = time.Now()
	stopContext, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.end()
	go func() {
		select {
		case <-r.config.Stop: // nil: never
			cancel()
		case <-r.running.Done():
		}
	}()
	r.stopContext = stopContext
	wake := context.AfterFunc(stopContext, r.calls.wake)
	defer wake()
	err := r.loop()
	alone := errors.Is(err, errCutOff)
	if alone {
		err = nil
	}
	if r.stopped = r.now(); r.config.Progress != nil {
		r.report(r.stopped)
	}
	r.calls.end()
	res := r.result()
	if alone {
		res.Reason = r.stopWhy
	}
	return res, err
}

func (r *Runner) loop() error {
	for {
		if err := r.service(); err != nil {
			return err
		}
		a, err := r.exchange.Next(r.now())
		if err != nil {
			return err
		}
		switch a.Kind {
		case exchange.Relax:
			err = r.relax(a.Op)
		case exchange.Wait:
			err = r.waits(func() error { return r.wait(a.Until) })
		case exchange.Blocked:
			err = r.waits(r.blocked)
		case exchange.Step:
			err = r.step(a.Op.Step)
		case exchange.Keep:
			err = r.keep(a.Op)
		case exchange.Done:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// waits calls a function that waits, and measures the time.
func (r *Runner) waits(f func() error) error {
	begin := r.now()
	err := f()
	if r.first >= 0 {
		r.waiting += r.now() - begin
	}
	return err
}

// step reports the end of a time step.
func (r *Runner) step(s *iterate.StepResult) error {
	r.log.Debug("time step complete", "step", s.Step, "sweeps", uint64(s.Sweeps), "residual", s.Residual)
	if r.config.Step == nil {
		return nil
	}
	return r.config.Step(*s, r.gridPeer.Box(), r.peer.Solution)
}

// interruption is the multiple of the shortest time for a point from which a relaxation counts as interrupted.
const interruption = 4

// uninterrupted returns the time of a relaxation without most of the time in which the system ran other processes.
// Multiplied, that time would make a slowed-down peer of a busy machine many times slower than intended.
func (r *Runner) uninterrupted(took time.Duration, points int) time.Duration {
	if points == 0 {
		return took
	}
	if each := took.Seconds() / float64(points); r.fastest == 0 || each < r.fastest {
		r.fastest = each
	}
	return min(took, time.Duration(interruption*r.fastest*float64(points)*float64(time.Second)))
}

// leastIdle is the shortest wait of a slowed-down peer. A timer is late by a part of the time
// that it was set to, and a small part of a box is relaxed in less.
const leastIdle = time.Millisecond

// slow delays the peer after a relaxation of the given duration. Delays accumulate until they are long enough for a
// timer, and a wait that was too long shortens the next.
func (r *Runner) slow(took time.Duration) error {
	r.delayDebt += time.Duration((r.config.Slow - 1) * float64(took))
	if r.delayDebt < leastIdle {
		return nil
	}
	begin := r.now()
	err := r.idle(begin + r.delayDebt)
	r.delayDebt -= r.now() - begin
	return err
}

// relax relaxes one part and receives messages that have arrived meanwhile, so that halos are available when the next
// sweep begins.
func (r *Runner) relax(op *iterate.Op) error {
	end, err := r.relaxInTurn(op)
	if err != nil {
		return err
	}
	whole := r.pace.relaxed(end, op.Points, r.sweepPoints())
	if len(r.exchange.Neighbours()) == 0 {
		return nil
	}
	if end >= r.pace.pollAt {
		news, err := r.exchange.Poll(end)
		if err != nil {
			return err
		}
		r.pace.polled(end, r.now())
		r.news = r.news || news
	}
	if whole {
		if !r.news && r.asynchronous {
			// With fewer processors than peers, another peer's relaxation gains more than a sweep that reads
			// no new values.
			_ = r.waits(func() error { yield(); return nil })
		}
		r.news = false
	}
	return nil
}

// relaxInTurn relaxes one part, when it is this peer's turn in its process, and returns when that was done.
func (r *Runner) relaxInTurn(op *iterate.Op) (end time.Duration, err error) {
	if t := r.config.Turn; t != nil {
		_ = r.waits(func() error { t.Lock(); return nil })
		defer t.Unlock()
	}
	if r.config.CountReads && r.pace.done == 0 {
		r.countReads()
	}
	begin := r.now()
	if r.first < 0 {
		r.first, r.pace.began = begin, begin
	}
	if record := r.config.Record; record != nil {
		sweep := uint64(r.peer.Progress().Sweep) + 1
		record(trace.RelaxBegin, sweep, op.Points)
		r.peer.Relax(*op)
		record(trace.RelaxEnd, sweep, op.Points)
	} else {
		r.peer.Relax(*op)
	}
	end = r.now()
	if r.config.Slow > 1 {
		if err := r.slow(r.uninterrupted(end-begin, op.Points)); err != nil {
			return end, err
		}
		end = r.now()
	}
	r.relaxed += uint64(op.Points)
	r.busy += end - begin
	return end, nil
}

// Solution writes the agreed values of the peer's box, [z][y][x], after Run, or its newest complete iterate when Run
// returned an error. dst has as many values as the box has points.
func (r *Runner) Solution(dst []float64) { r.peer.Solution(dst) }

// Values writes a part of the newest iterate, in coordinates of the grid, for display. Like Solution, it is for the
// goroutine of Run.
func (r *Runner) Values(dst []float64, part problem.Box) { r.gridPeer.Values(dst, part) }

// Progress returns the progress of the peer. Like Solution, it is for the goroutine of Run.
func (r *Runner) Progress() iterate.Progress { return r.peer.Progress() }

// Discard releases the peer's arrays. After it only Close may be called.
func (r *Runner) Discard() {
	r.peer, r.gridPeer = nil, nil
	r.exchange.Close()
	r.exchange = nil
}

// Method describes the peer's method.
func (r *Runner) Method() string { return r.gridPeer.Describe() }

// Box returns the peer's box.
func (r *Runner) Box() problem.Box { return r.gridPeer.Box() }

// Close closes the sessions and ends the threads. It waits until the last messages are accepted, but
// no longer than the node's Linger. After it nothing uses the peer's arrays.
func (r *Runner) Close() {
	r.end()
	r.keeping.Lock()
	r.closed = true
	r.keeping.Unlock()
	var closing sync.WaitGroup
	for _, s := range r.sessions {
		closing.Go(func() { _ = s.Close() }) // its error reports nothing that could still be done
	}
	closing.Wait()
	if r.exchange != nil {
		r.exchange.Close()
	}
	if r.pool != nil {
		r.pool.Close()
		r.pool = nil
	}
}
