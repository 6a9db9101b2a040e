package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/exchange"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// pollingTime is how long a wait polls before it blocks, on a machine with more cores than this
// peer has threads.
const pollingTime = 50 * time.Microsecond

// forever is a time that no run reaches.
const forever = exchange.Never

// attend handles what is due: an early end, bounds of time, progress. It is called between any
// two operations, and during waits.
func (r *Runner) attend() error {
	now := r.now()
	ran := r.ran.at(now, r.tick())
	if !r.stopping {
		switch {
		case r.asked.Err() != nil:
			r.stop(now, iterate.Interrupted)
		case r.config.MaxTime > 0 && r.first >= 0 && now-r.first >= r.config.MaxTime:
			r.stop(now, iterate.ReachedTime)
		}
	} else if ran >= r.stopAt+r.patience() {
		return fmt.Errorf("%w: asked for %v ago; the block is this peer's newest", ErrNoVerdict,
			(ran - r.stopAt).Round(time.Millisecond))
	}
	if f := r.config.Progress; f != nil && now >= r.pace.reportAt {
		r.pace.reportAt = now + r.config.ProgressEvery
		p := r.peer.Progress()
		elapsed := time.Duration(0)
		if r.first >= 0 {
			elapsed = now - r.first
		}
		f(Progress{Elapsed: elapsed, Step: p.Step, Sweep: p.Sweep, Residual: p.Residual})
	}
	var err error
	r.leftNext, err = r.exchange.Age(ran, r.patience())
	return err
}

// ranTime is the time that a process has run. Of the time between two calls of at only a
// bounded part counts. A process that was stopped or suspended has messages of the others
// unread, and must read them before it declares the others late.
type ranTime struct{ last, total time.Duration }

// at adds the time since the last call, most at most, and returns the total.
func (t *ranTime) at(now, most time.Duration) time.Duration {
	t.total += min(now-t.last, most)
	t.last = now
	return t.total
}

// tick is the most that counts of the time between two operations. It also bounds a wait while
// a neighbour's or the run's end is awaited with patience.
func (r *Runner) tick() time.Duration { return r.config.Grace / 8 }

func (r *Runner) stop(now time.Duration, why iterate.Reason) {
	r.stopping, r.stopAt = true, r.ran.total
	r.config.Log.Info().Int("rank", int(r.config.Rank)).Stringer("why", why).Msg("asking for an early end")
	r.peer.Stop(now, why)
}

// patience bounds the time to the verdict after an early end was asked for, or after a
// neighbour has left.
func (r *Runner) patience() time.Duration {
	return r.config.Grace + 4*r.pace.longest
}

// deadline is when attend has something to do.
func (r *Runner) deadline() time.Duration {
	at := forever
	switch {
	case r.stopping:
		at = r.within(r.stopAt + r.patience())
	case r.config.MaxTime > 0 && r.first >= 0:
		at = r.first + r.config.MaxTime
	}
	if r.config.Progress != nil {
		at = min(at, r.pace.reportAt)
	}
	if r.leftNext != exchange.Never {
		at = min(at, r.within(r.leftNext))
	}
	return at
}

// within returns when to look at ran again, if something is due when it reaches then.
func (r *Runner) within(then time.Duration) time.Duration {
	return r.ran.last + min(then-r.ran.total, r.tick())
}

// block waits until something happens on a session, or until then.
func (r *Runner) block(until time.Duration) error {
	until = min(until, r.deadline())
	ctx := r.asked
	if r.stopping {
		ctx = context.Background()
	}
	timeout := forever
	if until != forever {
		timeout = until - r.now()
	}
	if r.config.Node == nil {
		return r.sleep(ctx, timeout)
	}
	err := r.config.Node.WaitAny(ctx, timeout)
	if err == nil || ctx.Err() != nil {
		return nil // attend handles the end of ctx
	}
	var lost *p2psap.PeerLostError
	if errors.As(err, &lost) {
		for rank, name := range r.config.Names {
			if name == lost.Peer {
				return &NeighbourError{Rank: iterate.Rank(rank), Peer: name, Err: err}
			}
		}
	}
	return fmt.Errorf("runner: %w", err)
}

// sleep is block for a peer without neighbours, which waits only when it is slowed down.
func (r *Runner) sleep(ctx context.Context, d time.Duration) error {
	if d == forever {
		return errors.New("runner: the peer waits for a message and has no neighbours")
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

// adaptingTick bounds a wait for sessions that change their mode, since no arrival ends it.
const adaptingTick = 20 * time.Millisecond

// blocked waits for a session, in the middle of an operation.
func (r *Runner) blocked() error {
	if !r.exchange.Adapting() {
		return r.block(forever)
	}
	t := time.NewTimer(adaptingTick)
	defer t.Stop()
	select {
	case <-r.adapted:
	case <-t.C:
	}
	return nil
}

// wait waits for an arrival, at most until then. Blocking and being woken takes longer than most
// waits, so it polls for a short while first, and yields the processor between two polls.
func (r *Runner) wait(until time.Duration) error {
	if until == 0 {
		until = forever
	}
	if !r.config.Crowded && runtime.NumCPU() > r.config.Threads {
		for end := min(until, r.now()+pollingTime); r.now() < end; {
			yield()
			if news, err := r.exchange.Poll(r.now()); news || err != nil {
				return err
			}
		}
	}
	return r.block(until)
}

// idle lets time pass until then, as a slow machine would that relaxes. It receives messages
// and repeats faces that may have been lost. An early end ends it.
func (r *Runner) idle(until time.Duration) error {
	for !r.stopping && r.now() < until {
		if _, err := r.exchange.Poll(r.now()); err != nil {
			return err
		}
		due, err := r.exchange.Repeat(r.now(), r.config.Solver.Repeat)
		if err != nil {
			return err
		}
		if err := r.block(min(until, due)); err != nil {
			return err
		}
		if err := r.attend(); err != nil {
			return err
		}
	}
	return nil
}
