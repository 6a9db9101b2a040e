package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// outcome sums up; the peers may go.
func (r *run) outcome() *Outcome {
	close(r.over)
	if r.series != nil {
		r.series.close()
	}
	for _, m := range r.members {
		if !m.done() || m.missing() {
			m.conn.Close()
			r.halt(m)
			<-m.attended // nothing is placed any more
		}
	}
	o := &Outcome{U: r.vector(), Strangers: r.refused.Load(), Setup: r.started.Sub(r.begin), Gather: time.Since(r.started)}
	o.Run = o.Gather
	if !r.verdict.IsZero() {
		o.Run = r.verdict.Sub(r.started)
	}
	for _, m := range r.members {
		res := rendezvous.Result{Points: m.final.Points(), Lost: -1, Residual: nullable.NaN()}
		if m.result != nil {
			res = *m.result
			o.Reason = worse(o.Reason, res.Reason)
		}
		if m.missing() {
			o.Missing = append(o.Missing, m.rank)
		}
		o.Boxes = append(o.Boxes, m.final)
		o.Peers = append(o.Peers, res)
		o.Hosts = append(o.Hosts, rendezvous.Member{Rank: m.rank, Host: m.join.Host, Pid: m.join.Pid, Control: m.control, Cluster: m.label})
	}
	if r.series == nil {
		r.holes = r.empty(o)
	}
	if r.failure != nil || len(o.Missing) > 0 {
		o.Reason = Failed
		o.Failure = "a block did not come whole"
		if r.failure != nil {
			o.Failure = r.failure.text
		} else {
			for _, m := range r.members {
				m.tell(rendezvous.Lost{Rank: -1, Why: o.Failure})
			}
		}
	}
	if r.series != nil {
		r.series.sum(o)
	}
	return o
}

// halt ends a peer that may still be writing to the answer.
func (r *run) halt(m *member) {
	if r.Answer == nil || m.child == nil {
		return
	}
	m.child.Kill()
	endsWithin(killTime, m.ended)
}

// empty puts starting values where no peer's block has come, and returns these boxes. In a
// run that has failed, planes may have been on their way between two peers.
func (r *run) empty(o *Outcome) (holes []problem.Box) {
	if !r.Balance {
		for _, rank := range o.Missing {
			holes = append(holes, r.members[rank].box)
		}
	} else {
		holes = r.claims.gaps(func(rank int) bool { return !r.members[rank].missing() })
		if len(holes) > 0 && r.failure == nil {
			axis := r.claims.axis
			r.failure = &failure{closed, -1, fmt.Sprintf("no peer has the planes %d to %d", holes[0].Lo[axis], holes[0].Hi[axis])}
		}
	}
	for _, b := range holes {
		startingValues(r.Problem, r.Initial, b, r.vector())
	}
	return holes
}

// worse is the reason that describes a run of two peers best. They agree unless
// one of them failed.
func worse(a, b string) string {
	if a == "" || b == Failed {
		return b
	}
	return a
}

// killTime is how long a peer's process may take to end once the run is over.
const killTime = 3 * time.Second

// release lets the peers go, and leaves no process behind.
func (r *run) release(cancel context.CancelFunc) {
	select {
	case <-r.over:
	default:
		close(r.over)
	}
	if r.listener != nil {
		r.listener.Close()
	}
	for _, m := range r.members {
		if m.conn != nil {
			m.tell(rendezvous.Bye{})
			close(m.out)
		}
	}
	patience := killTime
	for _, m := range r.members {
		if m.child == nil {
			continue
		}
		if m.gone || r.started.IsZero() || r.ctx.Err() != nil {
			m.child.Kill()
		}
		if !endsWithin(patience, m.ended) {
			r.Log.Warn().Int("rank", m.rank).Msg("the peer's process did not end; it is killed")
			patience = 0
			m.child.Kill()
			<-m.ended
		}
	}
	cancel()
	for _, m := range r.members {
		if m.conn == nil {
			continue
		}
		if !endsWithin(patience, m.written) {
			patience = 0
		}
		m.conn.Close()
	}
}
