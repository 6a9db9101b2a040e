package launch

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// exitOnPanic prints the panic of a leader and ends its process with exit code 1. As after a kill, no deferred call tells
// the peers that the run is over, so one of them leads it.
func exitOnPanic() {
	if why := recover(); why != nil {
		fmt.Fprintf(os.Stderr, "panic: %v\n\n%s", why, debug.Stack())
		os.Exit(1)
	}
}

// outcome collects the results of the run.
func (r *shell) outcome() *Outcome {
	close(r.done)
	if r.series != nil {
		r.series.close()
	}
	for _, m := range slices.Concat(r.retired, r.members) {
		l := r.links[m.conn]
		if l != nil && l.served != nil && !m.moved && (m.lost || !m.done() || m.missing()) {
			l.Close()
			r.stopWriter(m)
			<-l.served // nothing more is written to the answer
		}
	}
	o := &Outcome{
		U: r.vector(), Refused: r.server.Refused(), Setup: r.zero.Sub(r.called), Gather: r.now,
		Losses: r.losses, Moves: r.moves, Gone: r.Status.State().Gone, Parts: max(r.Parts, 1),
	}
	o.Run = o.Gather
	if r.verdict > 0 {
		o.Run = r.verdict
	}
	for _, m := range r.members {
		res := rendezvous.Result{Points: m.final.Points(), Lost: -1, Residual: nullable.NaN()}
		if m.result != nil {
			res = *m.result
			res.Relaxed += m.carried
			o.Reason = combine(o.Reason, res.Reason)
		}
		if m.missing() {
			o.Missing = append(o.Missing, m.rank)
		}
		o.Boxes = append(o.Boxes, m.final)
		o.Peers = append(o.Peers, res)
		o.Hosts = append(o.Hosts, m.entry())
	}
	if r.series == nil {
		r.holes = r.resetHoles(o)
	}
	if r.failure != nil || len(o.Missing) > 0 {
		o.Reason = Failed
		o.Failure = "a block is incomplete"
		if r.failure != nil {
			o.Failure = r.failure.text
		} else {
			for _, m := range r.members {
				r.send(m, rendezvous.Lost{Rank: -1, Why: o.Failure, CutOff: r.cutOff})
			}
		}
	}
	if o.Reason == Diverged {
		o.Failure = r.Problem.DivergenceAdvice(&r.Method)
	}
	if r.cutOff {
		o.Reason = CutOff
	}
	if r.series != nil {
		r.series.summarize(o)
	}
	r.execute()
	r.solved.Store(o.Reason == Converged)
	return o
}

// stopWriter ends a peer that may still write to the shared answer.
func (r *shell) stopWriter(m *member) {
	if c := r.children[m.child]; r.Answer != nil && c != nil {
		c.Kill()
		closedWithin(killTime, c.ended)
	}
}

// resetHoles writes starting values where no block arrived, and returns these boxes. In a failed run, planes may have
// been in transit between two peers.
func (r *shell) resetHoles(o *Outcome) (holes []problem.Box) {
	if !r.Balance {
		for _, rank := range o.Missing {
			holes = append(holes, r.members[rank].box)
		}
	} else {
		holes = r.owned.unowned(func(rank int) bool { return !r.members[rank].missing() })
		if len(holes) > 0 && r.failure == nil {
			axis := r.owned.ownership.axis
			r.failure = &failure{closed, -1,
				fmt.Sprintf("no peer sent planes %d to %d", holes[0].Lo[axis], holes[0].Hi[axis])}
		}
	}
	for _, b := range holes {
		r.Problem.Start(r.vector(), r.Initial, b)
	}
	return holes
}

// combine returns the reason of a run from those of two peers, which are equal unless one of them failed.
func combine(a, b string) string {
	if a == "" || b == Failed {
		return b
	}
	return a
}

// killTime bounds the time that a peer may take to end after the run.
const killTime = 10 * time.Second // beside other work a process may need seconds

// shutdown says Bye to the peers and waits until they have closed their connections and their processes have ended.
// If the launcher closed a connection first, a message that the peer sends meanwhile would be answered by a reset, which
// may overtake a lost Bye. The peer would take the answer for lost.
func (r *shell) shutdown(cancel context.CancelFunc) {
	select {
	case <-r.done:
	default:
		close(r.done)
	}
	if r.server != nil && !r.inherits {
		r.server.Close()
	}
	r.turnAwayAll()
	r.endMovesEarly()
	r.execute()
	bye := rendezvous.Bye{Early: !r.solved.Load()}
	var links []*link // of peers
	for _, m := range r.members {
		if l := r.links[m.conn]; l != nil {
			l.notify(bye)
			l.finish()
			links = append(links, l)
		}
	}
	for _, s := range r.spares {
		l := r.links[s.conn]
		l.notify(bye) // the end of the connection ends it, too
		l.Close()
	}
	timeout, killWait := killTime, killTime
	all := slices.Concat(r.members, r.retired, r.spares, r.starting)
	hangUp := context.AfterFunc(r.ctx, func() { // on a request to end at once
		for _, l := range links {
			l.Close()
		}
	})
	for _, m := range r.members {
		if l := r.links[m.conn]; m.child == 0 && l != nil && l.served != nil && !closedWithin(timeout, l.served) {
			timeout = 0
		}
	}
	hangUp()
	for _, m := range all {
		c := r.children[m.child]
		if c == nil {
			continue
		}
		if m.gone || m.lost || m.conn == 0 || r.early() || r.ctx.Err() != nil || c.Stopped() {
			c.Kill()
		}
		if !closedWithin(timeout, c.ended) {
			r.Log.Warn().Int("rank", m.rank).Msg("the peer's process did not end: killing it")
			timeout = 0
			c.Kill()
			if !closedWithin(killWait, c.ended) { // it waits for storage that does not answer
				r.Log.Warn().Int("rank", m.rank).Str("process", m.name).Msg("the peer's process could not be killed")
				killWait = 0
			}
		}
	}
	cancel()
	for _, m := range all {
		l := r.links[m.conn]
		if l == nil || l.written == nil {
			continue
		}
		if !closedWithin(timeout, l.written) {
			timeout = 0
		}
		l.Close()
	}
}

// turnAway ends a connection of a process that joins after the end of the run.
func (r *shell) turnAway(conn *rendezvous.Conn) {
	_ = conn.Send(rendezvous.Bye{Early: !r.solved.Load()})
	conn.Close()
}

// turnAwayAll does so with processes whose joining was not handled before the end.
func (r *shell) turnAwayAll() {
	for {
		select {
		case o := <-r.inputs:
			if o.arrived != nil {
				r.turnAway(o.arrived)
			}
		default:
			return
		}
	}
}

// closedWithin waits until done is closed, for at most the time d in which this process runs, and reports whether it
// was.
func closedWithin(d time.Duration, done <-chan struct{}) bool {
	tick := time.NewTicker(maxTick)
	defer tick.Stop()
	for left := int(d / maxTick); ; left-- {
		select {
		case <-done:
			return true
		default:
		}
		if left < 0 {
			return false
		}
		select {
		case <-done:
		case <-tick.C:
		}
	}
}
