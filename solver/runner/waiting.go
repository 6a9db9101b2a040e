package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// lookTime is how long a wait looks for news before it blocks, on a machine with
// more cores than this peer has threads.
const lookTime = 50 * time.Microsecond

// forever is a time that no run reaches.
const forever = time.Duration(1<<63 - 1)

// attend sees to what is due: an early end, bounds of time, progress. It is called
// between any two operations, and while something is waited for.
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
		return fmt.Errorf("%w: asked for %v ago; the block is this peer's newest", ErrNoVerdict, (ran - r.stopAt).Round(time.Millisecond))
	}
	if f := r.config.Progress; f != nil && now >= r.pace.reportAt {
		r.pace.reportAt = now + r.config.ProgressEvery
		p := r.worker.Progress()
		elapsed := time.Duration(0)
		if r.first >= 0 {
			elapsed = now - r.first
		}
		f(Progress{Elapsed: elapsed, Step: p.Step, Sweep: p.Sweep, Residual: p.Residual})
	}
	return r.departed(ran)
}

// ranTime is the time that a process has run: of any time between two looks at the clock only
// so much counts. A process that stood still (stopped, suspended) has the others' messages
// unread, and must read them before it calls them late.
type ranTime struct{ last, total time.Duration }

// at adds the time since the last call, most at most, and returns the total.
func (t *ranTime) at(now, most time.Duration) time.Duration {
	t.total += min(now-t.last, most)
	t.last = now
	return t.total
}

// tick is the most that counts of the time between two operations, and how long a wait may
// last while somebody is waited for with patience.
func (r *Runner) tick() time.Duration { return r.config.Grace / 8 }

func (r *Runner) stop(now time.Duration, why iterate.Reason) {
	r.stopping, r.stopAt = true, r.ran.total
	r.config.Log.Info().Int("rank", int(r.config.Solver.Rank)).Stringer("why", why).Msg("asking for an early end")
	r.worker.Stop(now, why)
}

// patience is how long a verdict may take once something calls for it.
func (r *Runner) patience() time.Duration {
	return r.config.Grace + 4*r.pace.longest
}

// departed: a neighbour that has closed its sessions knows the verdict, which
// therefore is on its way, or it has failed.
func (r *Runner) departed(ran time.Duration) error {
	for _, nb := range r.neighbours {
		if nb.left && ran >= nb.leftAt+r.patience() {
			return nb.fail(fmt.Errorf("no verdict %v after it had left: %w", (ran - nb.leftAt).Round(time.Millisecond), p2psap.ErrPeerClosed))
		}
	}
	return nil
}

// deadline is when attend has something to do.
func (r *Runner) deadline() time.Duration {
	at := forever
	switch {
	case r.stopping:
		at = r.ran.last + min(r.stopAt+r.patience()-r.ran.total, r.tick())
	case r.config.MaxTime > 0 && r.first >= 0:
		at = r.first + r.config.MaxTime
	}
	if r.config.Progress != nil {
		at = min(at, r.pace.reportAt)
	}
	for _, nb := range r.neighbours {
		if nb.left {
			at = min(at, r.ran.last+min(nb.leftAt+r.patience()-r.ran.total, r.tick()))
		}
	}
	return at
}

// block waits for something to happen on a session, or until then.
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
		return nil // attend looks at ctx
	}
	var lost *p2psap.PeerLostError
	if errors.As(err, &lost) {
		for rank, name := range r.config.Names {
			if name == lost.Peer {
				return &NeighbourError{iterate.Rank(rank), name, err}
			}
		}
	}
	return fmt.Errorf("runner: %w", err)
}

// sleep is block for a peer without neighbours; only slowness makes it wait.
func (r *Runner) sleep(ctx context.Context, d time.Duration) error {
	if d == forever {
		return errors.New("runner: the worker waits, and there is nobody to wait for")
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

// until waits for a condition while everything that comes is taken in.
func (r *Runner) until(condition func() (bool, error)) error {
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		if _, err := r.poll(); err != nil {
			return err
		}
		if err := r.attend(); err != nil {
			return err
		}
		if err := r.block(forever); err != nil {
			return err
		}
	}
}

// wait does an OpWait: until an arrival, or until then.
func (r *Runner) wait(until time.Duration) error {
	heard, err := r.poll()
	if err != nil || heard {
		return err
	}
	if until == 0 {
		until = forever
	}
	if heard, err = r.look(until); err != nil || heard {
		return err
	}
	return r.block(until)
}

// look polls again and again for a short while, since to block and to be woken costs
// more than most waits last. It yields the processor between two polls.
func (r *Runner) look(until time.Duration) (heard bool, err error) {
	if r.config.Crowded || runtime.NumCPU() <= r.config.Threads {
		return false, nil
	}
	for end := min(until, r.now()+lookTime); !heard && err == nil && r.now() < end; {
		yield()
		heard, err = r.poll()
	}
	return heard, err
}

// idle lets time pass until then, as a slow machine would that relaxes: it takes in
// what comes and, where faces may get lost, repeats the newest. An early end ends
// it.
func (r *Runner) idle(until time.Duration) error {
	for !r.stopping && r.now() < until {
		if _, err := r.poll(); err != nil {
			return err
		}
		due, err := r.repeat()
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

// repeat sends again the newest faces that were sent too long ago where faces may get
// lost, and returns when the next will be.
func (r *Runner) repeat() (next time.Duration, err error) {
	next = forever
	for _, nb := range r.neighbours {
		o := &nb.out[nb.newest]
		if !nb.async || nb.haloOut || o.transfer == 0 {
			continue
		}
		due := nb.sentAt + r.config.Solver.Repeat
		if now := r.now(); now >= due {
			if err := r.push(nb, o); err != nil {
				return 0, err
			}
			due = now + r.config.Solver.Repeat
		}
		next = min(next, due)
	}
	return next, nil
}
