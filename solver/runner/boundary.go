package runner

import (
	"context"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// attendEvery is how often a wait for neighbours to change over looks at what else is
// due.
const attendEvery = 20 * time.Millisecond

// adapt brings the halo sessions that are asynchronous by the scheme to a mode, all at
// once: neighbours ask theirs in different orders. It returns when both ends of each
// have changed, so it is a meeting with those neighbours.
func (r *Runner) adapt(op iterate.Op) error {
	mode := microproto.ModeSynchronous
	if op.Asynchronous {
		mode = microproto.ModeAsynchronous
	}
	begin := r.now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type changed struct {
		nb  *neighbour
		err error
	}
	results, open := make(chan changed, len(r.neighbours)), 0
	for _, nb := range r.neighbours {
		if !nb.loose || nb.halo == nil {
			continue
		}
		open++
		go func() { results <- changed{nb, nb.halo.Adapt(ctx, mode)} }()
	}
	look := time.NewTicker(attendEvery)
	defer look.Stop()
	var failed error
	fail := func(err error) {
		if failed == nil && err != nil {
			failed = err
			cancel()
		}
	}
	for open > 0 {
		select {
		case c := <-results:
			open--
			c.nb.async = op.Asynchronous
			for i := range c.nb.out {
				c.nb.out[i].transfer = 0 // of the mode that was; its buffer is free
			}
			if c.err != nil && failed == nil {
				fail(r.closed(c.nb, &c.nb.haloOut, c.err))
			}
		case <-look.C:
			if failed == nil {
				fail(r.attend())
			}
		}
	}
	r.changes++
	r.changing += r.now() - begin
	return failed
}

// step passes the end of a time step on.
func (r *Runner) step(op iterate.Op) error {
	r.config.Log.Debug().Int("rank", int(r.config.Solver.Rank)).Int("step", op.Step.Step).Uint64("sweeps", uint64(op.Step.Sweeps)).
		Float64("residual", op.Step.Residual).Msg("time step complete")
	if r.config.Step == nil {
		return nil
	}
	return r.config.Step(*op.Step, r.worker.Box(), r.worker.Solution)
}
