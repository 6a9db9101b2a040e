package runner

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Result is the outcome of a peer's run.
type Result struct {
	iterate.Outcome
	// Elapsed is the time from the first relaxation to the verdict.
	Elapsed time.Duration
	// Points is the number of points relaxed by this peer: its sweeps, or the work of its cycles,
	// times the points of its box.
	Points uint64
	// Changes is the number of changes of mode at boundaries of time steps, and Changing the time
	// that they took, including the wait for neighbours.
	Changes  int
	Changing time.Duration
	// Halos and Agreements describe the sessions, in the order of the peer's links.
	Halos, Agreements []Session
}

// Session describes a session with a neighbour as seen by this end.
type Session struct {
	Rank iterate.Rank // the neighbour
	Info p2psap.SessionInfo
}

// Messages returns the number of halo messages sent, and their payload bytes.
func (r *Result) Messages() (messages, bytes uint64) {
	for _, s := range r.Halos {
		messages += s.Info.MessagesSent
		bytes += s.Info.BytesSent
	}
	return messages, bytes
}

func (r *Runner) result() Result {
	res := Result{Outcome: r.peer.Outcome(), Elapsed: r.stopped - max(r.first, 0)}
	res.Changes, res.Changing = r.exchange.Changes()
	points := r.sweepPoints()
	if res.Points = uint64(res.Sweeps) * uint64(points); res.Work > 0 {
		res.Points = uint64(math.Round(res.Work * float64(points)))
	}
	for _, n := range r.exchange.Neighbours() {
		if s, ok := n.Halo.(*session); ok {
			res.Halos = append(res.Halos, Session{n.Rank, s.Info()})
		}
		if s, ok := n.Agree.(*session); ok {
			res.Agreements = append(res.Agreements, Session{n.Rank, s.Info()})
		}
	}
	return res
}
