package runner

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Result is a peer's account of its run.
type Result struct {
	iterate.Outcome
	// Elapsed is the time from the first relaxation to the verdict.
	Elapsed time.Duration
	// Points relaxed by this peer: its sweeps, or the work of its cycles, times the points
	// of its box.
	Points uint64
	// Changes of mode that the scheme asked for at boundaries of time steps, and what
	// they took, waiting for neighbours to come there included.
	Changes  int
	Changing time.Duration
	// Halos and Agreements describe the sessions, by neighbour in the partition's
	// order.
	Halos, Agreements []Session
}

// Session is a session with a neighbour, as this end saw it.
type Session struct {
	Rank iterate.Rank // the neighbour
	Info p2psap.SessionInfo
}

// Messages are the halo messages sent, and their payload bytes.
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
