package launch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Succession is what a process needs to lead a run whose leader was lost.
type Succession struct {
	Record   rendezvous.Record
	Received time.Time     // of Record
	Term     register.Term // which makes this process the leader
	Keeper   *keep.Keeper
	Server   *rendezvous.Server // of this process
	Hold     time.Duration      // bounds the time for which the answer is kept
	Leave    <-chan struct{}    // closed when this process is asked to leave; may be nil
	Ends     []End              // copies of blocks that the leader has passed on
}

// Lead leads a run after the loss of its leader. Peers connect to the server with their standing; those that do not are
// replaced. Lead keeps the answer until an obstacle attach has fetched it. Plan needs Catalog, ProblemSpec, Problem, Identity,
// Interrupt and Log, and Continue for checkpoints.
func Lead(ctx context.Context, p Plan, s Succession) (*Outcome, error) {
	defer exitOnPanic()
	if p.Spec, p.Checkpoint = s.Record.Spec, s.Record.Checkpoint; p.Reports {
		p.Status = &Status{}
	}
	if len(s.Record.Key) != len(driver.Key{}) {
		return nil, fmt.Errorf("%w: a key of %d bytes", rendezvous.ErrMalformed, len(s.Record.Key))
	}
	saver := p.save(s.Term.Number)
	r := newShell(p, s.Record.Run, driver.Key(s.Record.Key))
	r.zero = s.Received.Add(-time.Duration(s.Record.ElapsedMS) * time.Millisecond)
	r.called, r.now = r.zero, time.Since(r.zero)
	if err := rendezvous.Nested(s.Record.Losses, &r.losses); err != nil {
		return nil, fmt.Errorf("the losses of the run: %w", err)
	}
	r.keeper.Store(s.Keeper)
	s.Keeper.LeaderReached(true) // it is this process
	r.series = emptySeries(&p)
	children, cancel := context.WithCancel(ctx)
	r.ctx, r.server, r.listens = children, s.Server, s.Server.Addr()
	r.succeed(s.Term, s.Ends)
	r.execute()
	s.Server.Handle(r.admit)
	r.limitTime()
	r.monitor()
	requests := [2]<-chan struct{}{s.Leave, r.Interrupt}
	for i, c := range requests {
		if isClosed(c) { // it may have ended the run
			requests[i] = nil
		}
	}
	o := r.outcome()
	r.shutdown(cancel)
	r.fill(ctx, o)
	var unsaved error
	if saver != nil { // first of all that is written, since the time left may be short
		unsaved = saver.End(o)
	}
	r.publish(o)
	if r.Led != nil {
		asked := s.Leave != nil && isClosed(s.Leave) // to leave: nobody may be in time
		if s.Hold > 0 && !asked && r.final.await(ctx, s.Hold, [2]<-chan struct{}{s.Leave}) == nil {
			r.Log.Info().Msg("another process has fetched the answer")
			r.final.drain(ctx)
			return o, unsaved
		}
		err := r.Led(&r.Spec, r.ProblemSpec.Marshal(), o)
		r.final.drain(ctx)
		return o, cmp.Or(unsaved, err)
	}
	return o, cmp.Or(r.hold(ctx, &s, o, requests), unsaved)
}

// ownProcess identifies this process as join messages do.
func ownProcess() process {
	host, _ := os.Hostname()
	return process{host, os.Getpid(), driver.PidSpace()}
}
