package launch

import (
	"cmp"
	"context"
	"fmt"
	"net"
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
	r := newRun(p, s.Record.Run, driver.Key(s.Record.Key))
	r.started = s.Received.Add(-time.Duration(s.Record.ElapsedMS) * time.Millisecond)
	r.begin, r.epoch, r.term, r.returning, r.active, r.inherits = r.started, s.Term.Epoch, s.Term, true, true, true
	if err := rendezvous.Nested(s.Record.Losses, &r.losses); err != nil {
		return nil, fmt.Errorf("the losses of the run: %w", err)
	}
	for _, m := range r.members {
		m.valued, m.informed, m.assigned, m.since = true, true, true, r.epoch+1
	}
	r.keeper.Store(s.Keeper)
	s.Keeper.LeaderReached(true) // it is this process
	r.series, r.copies = emptySeries(&p), s.Ends
	children, cancel := context.WithCancel(ctx)
	r.ctx, r.server = children, s.Server
	r.Log.Warn().Int("term", s.Term.Number).Str("address", s.Term.Leader).
		Msg("the leader of the run was lost: this process leads it now")
	r.Status.Enter(Solving)
	r.reportEpoch()
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
func (r *run) ownProcess() process {
	host, _ := os.Hostname()
	return process{host, os.Getpid(), driver.PidSpace()}
}

// reachedBy returns the address at which the other end of a connection reaches a server of this process that listens at
// the given address.
func reachedBy(c *rendezvous.Conn, listens string) string {
	host, port, _ := net.SplitHostPort(listens)
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host, _, _ = net.SplitHostPort(c.Local())
	}
	return net.JoinHostPort(host, port)
}

// reseat gives a peer that lost its leader its place again.
func (r *run) reseat(conn *rendezvous.Conn, j rendezvous.Join) {
	if !r.returning || j.Rank < 0 || j.Rank >= len(r.members) || r.members[j.Rank].conn != nil ||
		!r.validSteps(j.Standing.Steps) {
		r.Log.Warn().Msg(conn.Refuse("its place in the run was given to another process").Error())
		conn.Close()
		return
	}
	m, s := r.members[j.Rank], j.Standing
	m.control, m.listens, m.sweep, m.valued, m.ready = s.Control, s.Epoch, s.Sweep, s.Valued, s.Settled
	m.steps = s.Steps
	w := rendezvous.Welcome{Rank: m.rank, Epoch: r.epoch, Cluster: s.Cluster} // it has the settings
	if r.welcome(m, conn, j, w) != nil {
		conn.Close()
		return
	}
	m.notify(rendezvous.Start{})
	m.notify(rendezvous.Term{Term: r.term})
	for _, m := range r.members {
		if m.conn == nil {
			return
		}
	}
	r.lead()
}

// lead leads the run with the peers that have returned. If all of them relax in the same epoch, they go on undisturbed.
func (r *run) lead() {
	r.returning = false
	settled, missing := r.resumeSteps(), false
	for _, m := range r.members {
		here := m.conn != nil
		m.valued, missing = m.valued && here, missing || !here
		settled = settled && here && m.ready && m.listens == r.epoch
	}
	r.Log.Info().Int("epoch", r.epoch).Bool("undisturbed", settled).Msg("leading the run")
	for _, m := range r.members {
		if m.conn == nil {
			r.lose(m, failure{closed, m.rank, fmt.Sprintf("peer %d was lost with the leader of the run", m.rank)})
		}
	}
	r.reportEpoch()
	switch {
	case settled:
		r.active = false
		r.askKeepers()
		r.record()
	case !missing:
		r.nextEpoch()
	}
}
