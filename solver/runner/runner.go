package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Runner is one peer of a run: New, Run once, Solution, Close. Its methods are for
// one goroutine.
type Runner struct {
	config     Config
	worker     problem.Peer
	pool       *Pool
	pump       func()
	neighbours []*neighbour
	byRank     map[iterate.Rank]*neighbour

	start time.Time
	asked context.Context // ends when an early end is asked for
	gone  context.Context // has ended: for calls that must not block
	first time.Duration   // when the first relaxation began; −1: not yet
	end   time.Duration
	pace  pace
	owed  time.Duration // that a slow peer has still to wait
	loose bool          // some neighbours are asynchronous by the scheme
	news  bool          // something has come since the sweep began

	changes  int           // of mode, both ways
	changing time.Duration // that they took

	stopping bool          // the worker was told to end early
	stopAt   time.Duration // when, by ran
	ran      ranTime
}

// New builds the peer's block and opens its sessions: it blocks until every
// neighbour has opened its own, one of them refuses, or ctx ends. On an error
// nothing stays open.
func New(ctx context.Context, c Config) (*Runner, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Runner{config: c, byRank: map[iterate.Rank]*neighbour{}, first: -1}
	r.pump = func() {}
	if p, ok := c.Node.(pumper); ok {
		r.pump = p.Pump
	}
	if c.Solver.Executor == nil && c.Threads > 1 {
		r.pool = NewPool(c.Threads)
		r.config.Solver.Executor = r.pool
		if r.config.Solver.Tiling.Pieces == 0 {
			r.config.Solver.Tiling.Pieces = c.Threads
		}
	}
	var err error
	if r.worker, err = cmp.Or(r.config.Methods, solver.Methods()).New(r.config.Solver); err != nil {
		r.Close()
		return nil, err
	}
	for _, l := range r.worker.Links() {
		nb := c.newNeighbour(l, c.Names[l.Rank])
		r.neighbours = append(r.neighbours, nb)
		r.byRank[l.Rank] = nb
		r.loose = r.loose || nb.loose
	}
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// open opens the sessions with all neighbours at once; the first error ends the
// other attempts.
func (r *Runner) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(r.neighbours))
	for _, nb := range r.neighbours {
		go func() {
			err := nb.open(ctx, r.config.Node, r.config.Solver.Rank)
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var first error
	for range r.neighbours {
		if err := <-errs; err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

func (r *Runner) now() time.Duration { return time.Since(r.start) }

// Run iterates until the verdict. An early end (ctx, Config.Stop, Config.MaxTime)
// is no error: the verdict says so. After an error the run is over for this peer;
// Solution then gives its newest complete iterate.
func (r *Runner) Run(ctx context.Context) (Result, error) {
	r.start = time.Now()
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-r.config.Stop: // nil: never
			cancel()
		case <-over:
		}
	}()
	r.asked = asked
	ended, end := context.WithCancel(context.Background())
	end()
	r.gone = ended
	err := r.loop()
	r.end = r.now()
	return r.result(), err
}

func (r *Runner) loop() error {
	for {
		if err := r.attend(); err != nil {
			return err
		}
		op := r.worker.Next(r.now())
		var err error
		switch op.Kind {
		case iterate.OpRelax:
			err = r.relax(op)
		case iterate.OpSend:
			err = r.sendFace(op)
		case iterate.OpAgree:
			err = r.sendAgreement(op)
		case iterate.OpWait:
			err = r.wait(op.Until)
		case iterate.OpAdapt:
			err = r.adapt(op)
		case iterate.OpStep:
			err = r.step(op)
		case iterate.OpFail:
			err = op.Err
		case iterate.OpDone:
			return nil
		default:
			err = fmt.Errorf("runner: the worker asks for operation %d, which this runner does not know", op.Kind)
		}
		if err != nil {
			return err
		}
	}
}

// leastIdle is the shortest wait that a slow peer makes: a timer is later than it
// was asked for by a part of that, and a small part of a box is relaxed in less.
const leastIdle = time.Millisecond

// slow makes up for a relaxation that took that long: time is owed until it is worth
// a wait, and what a wait took too long counts as paid.
func (r *Runner) slow(took time.Duration) error {
	r.owed += time.Duration((r.config.Slow - 1) * float64(took))
	if r.owed < leastIdle {
		return nil
	}
	begin := r.now()
	err := r.idle(begin + r.owed)
	r.owed -= r.now() - begin
	return err
}

// relax relaxes one part and takes in what has come meanwhile, so that halos are
// there when the next sweep begins.
func (r *Runner) relax(op iterate.Op) error {
	begin := r.now()
	if r.first < 0 {
		r.first, r.pace.began = begin, begin
	}
	r.worker.Relax(op)
	end := r.now()
	if r.config.Slow > 1 {
		if err := r.slow(end - begin); err != nil {
			return err
		}
		end = r.now()
	}
	whole := r.pace.relaxed(end, op.Points, r.worker.Box().Points())
	if len(r.neighbours) == 0 {
		return nil
	}
	if end >= r.pace.pollAt {
		heard, err := r.poll()
		if err != nil {
			return err
		}
		r.pace.polled(end, r.now())
		r.news = r.news || heard
	}
	if whole {
		if !r.news && r.loose {
			// To relax again without news is worth less than what others may do with
			// this processor, when there are fewer of them than peers.
			yield()
		}
		r.news = false
	}
	return nil
}

// transmit sends on a session; wanted: until there is room for it. What nobody
// there wants any more is dropped.
func (r *Runner) transmit(nb *neighbour, s Socket, closed *bool, wanted bool, tag p2psap.Tag, label p2psap.Label, data []byte, t *p2psap.Transfer) error {
	try := func() (bool, error) {
		if *closed {
			return true, nil
		}
		var err error
		*t, err = s.TrySend(tag, label, data)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, microproto.ErrBusy):
			return !wanted, nil
		}
		return true, r.closed(nb, closed, err)
	}
	if done, err := try(); done || err != nil {
		return err
	}
	return r.until(try)
}

// Solution writes the agreed block [z][y][x] of the peer's box after Run, or its
// newest complete iterate when Run gave an error. dst has as many values as the
// box has points.
func (r *Runner) Solution(dst []float64) { r.worker.Solution(dst) }

// Discard gives up the peer's arrays; only Close may follow.
func (r *Runner) Discard() { r.worker = nil }

// Steps is the number of time steps of the run, 0 if the problem is stationary.
func (r *Runner) Steps() int { return r.config.Solver.Problem.Steps() }

// Method says what the peer's method works with, as solver.Describe.
func (r *Runner) Method() string { return r.worker.Describe() }

// Box is the peer's box.
func (r *Runner) Box() problem.Box { return r.worker.Box() }

// Close closes the sessions, letting the last messages be accepted (the node's
// Linger bounds that), and ends the threads.
func (r *Runner) Close() {
	done := make(chan struct{})
	n := 0
	for _, nb := range r.neighbours {
		for _, s := range nb.sockets() {
			n++
			go func() {
				_ = s.Close() // it tells of nothing that could still be done
				done <- struct{}{}
			}()
		}
	}
	for range n {
		<-done
	}
	if r.pool != nil {
		r.pool.Close()
		r.pool = nil
	}
}
