package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pollingTime is how long a wait polls before it blocks, on a machine with more cores than this peer has threads.
const pollingTime = 50 * time.Microsecond

// service handles early ends, bounds of time and progress that are due. It is called between any two operations, and
// during waits.
func (r *Runner) service() error {
	if err := r.calls.run(); err != nil {
		return err
	}
	now := r.now()
	ran := r.ran.at(now, r.tick())
	if !r.stopping {
		switch {
		case r.stopContext.Err() != nil:
			r.stop(now, iterate.Interrupted)
		case r.config.MaxTime > 0 && r.first >= 0 && now-r.first >= r.config.MaxTime:
			r.stop(now, iterate.ReachedTime)
		}
	} else if r.cutOff(ran) {
		return errCutOff
	} else if ran >= r.stopRequestedAt+r.verdictTimeout() {
		return fmt.Errorf("%w: requested %v ago; the block is this peer's newest", ErrNoVerdict,
			(ran - r.stopRequestedAt).Round(time.Millisecond))
	}
	if r.config.Progress != nil && now >= r.pace.reportAt {
		r.pace.reportAt = now + r.config.ProgressEvery
		r.report(now)
	}
	var err error
	r.nextTimeout, err = r.exchange.Age(ran, r.verdictTimeout())
	return err
}

// ranTime is the time that a process has run. Only a bounded part of the time between two calls of at counts. A
// process that was stopped or suspended must read the messages of its neighbours before it reports that they are late.
type ranTime struct{ last, total time.Duration }

// at adds the time since the last call, most at most, and returns the total.
func (t *ranTime) at(now, most time.Duration) time.Duration {
	t.total += min(now-t.last, most)
	t.last = now
	return t.total
}

// tick bounds the time between two operations that counts. It also bounds a wait while verdictTimeout runs.
func (r *Runner) tick() time.Duration { return r.config.Grace / 8 }

func (r *Runner) stop(now time.Duration, why iterate.Reason) {
	r.stopping, r.stopRequestedAt, r.stopWhy = true, r.ran.total, why
	r.log.Info("requesting an early end", "why", why.String())
	r.peer.Stop(now, why)
}

// errCutOff ends the run of a peer that cannot agree with the others on an early end.
var errCutOff = errors.New("runner: no messages pass to a neighbour")

// cutOffAfter is the time after a request for an early end from which a path counts that carries nothing.
const cutOffAfter = 500 * time.Millisecond

// cutOff reports whether an early end was requested and no verdict can come, since the path to a neighbour carries
// nothing. It looks only now and then.
func (r *Runner) cutOff(ran time.Duration) bool {
	if ran < max(r.stopRequestedAt, r.lookedAt)+cutOffAfter {
		return false
	}
	r.lookedAt = ran
	return slices.ContainsFunc(r.sessions, func(s *session) bool { return s.Info().PathDown != "" })
}

// verdictTimeout bounds the time to the verdict after a request for an early end, or after a neighbour has closed its
// sessions.
func (r *Runner) verdictTimeout() time.Duration {
	return r.config.Grace + 4*r.pace.longest
}

// deadline returns the time at which service is due.
func (r *Runner) deadline() time.Duration {
	at := exchange.Never
	switch {
	case r.stopping:
		at = r.within(min(r.stopRequestedAt+r.verdictTimeout(), max(r.stopRequestedAt, r.lookedAt)+cutOffAfter))
	case r.config.MaxTime > 0 && r.first >= 0:
		at = r.first + r.config.MaxTime
	}
	if r.config.Progress != nil {
		at = min(at, r.pace.reportAt)
	}
	if r.nextTimeout != exchange.Never {
		at = min(at, r.within(r.nextTimeout))
	}
	return at
}

// within returns when to update ran again, if something is due when ran reaches then.
func (r *Runner) within(then time.Duration) time.Duration {
	return r.ran.last + min(then-r.ran.total, r.tick())
}

// block waits until something happens on a session, or until then.
func (r *Runner) block(until time.Duration) error {
	until = min(until, r.deadline())
	ctx := r.calls.waiting
	timeout := exchange.Never
	if until != exchange.Never {
		timeout = until - r.now()
	}
	if r.config.Node == nil {
		return r.sleep(ctx, timeout)
	}
	err := r.config.Node.WaitAny(ctx, timeout)
	if err == nil || ctx.Err() != nil {
		return nil // service handles the end of ctx
	}
	var lost *p2psap.PeerLostError
	if !errors.As(err, &lost) {
		return fmt.Errorf("runner: %w", err)
	}
	for rank, name := range r.config.Names {
		if name != lost.Peer {
			continue
		}
		if !r.config.Survive {
			return &NeighbourError{Rank: iterate.Rank(rank), Peer: name, Err: err}
		}
		r.exchange.Lose(iterate.Rank(rank), err)
	}
	if err := r.config.Node.Disconnect(lost.Peer); err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	return nil
}

// sleep is block for a peer without neighbours, which waits only when it is slowed down.
func (r *Runner) sleep(ctx context.Context, d time.Duration) error {
	if d == exchange.Never {
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
		return r.block(exchange.Never)
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
	until = cmp.Or(until, exchange.Never)
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

// idle waits until then, as a slower machine would relax. It receives messages and repeats faces that may have been
// lost. An early end ends it.
func (r *Runner) idle(until time.Duration) error {
	for !r.stopping && r.now() < until {
		if err := r.serve(until); err != nil {
			return err
		}
	}
	return nil
}

// serve receives messages, repeats faces that may have been lost, and waits until something happens, or until then.
func (r *Runner) serve(until time.Duration) error {
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
	return r.service()
}

// valuesUntilClose returns Values for any goroutine. It writes nothing, and returns false, once Close has begun: the
// peer's arrays may be in use for something else then.
func (r *Runner) valuesUntilClose() func(dst []float64, part problem.Box) bool {
	peer := r.gridPeer
	return func(dst []float64, part problem.Box) bool {
		r.keeping.Lock()
		defer r.keeping.Unlock()
		if !r.closed {
			peer.Values(dst, part)
		}
		return !r.closed
	}
}

// keep carries out an OpKeep or OpKept.
func (r *Runner) keep(op *iterate.Op) error {
	k := iterate.Iteration(op.Label)
	if op.Kind == iterate.OpKept {
		r.config.Kept(k)
		return nil
	}
	stored, state, values := make(chan error, 1), op.Message, r.valuesUntilClose()
	go func() {
		stored <- r.config.Keep(k, state, values)
		r.calls.wake()
	}()
	for {
		select {
		case err := <-stored:
			if err == nil || !r.config.Survive {
				return err
			}
			r.log.Info("no copy of the block is stored", "error", err)
		default:
		}
		if err := r.serve(exchange.Never); err != nil {
			return err
		}
	}
}
