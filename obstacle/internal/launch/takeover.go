package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// maxHeld bounds the ends of time steps that a peer holds.
const maxHeld = 2

// resumeSteps decides with which time step a run goes on whose leader was lost, when the peers have returned to this
// process, and asks them for the ends from that step on. It reports whether they can go on without a new epoch.
func (r *run) resumeSteps() bool {
	if r.series == nil {
		return true
	}
	first, known := r.commonStep()
	from := first
	switch {
	case !known:
		r.startAgain()
		from = -1
	case first == 0 && !r.startsFromFile: // u(0) is that of the problem
		if err := r.series.start(0, nil, false); err != nil {
			r.fail(failure{exited, -1, err.Error()})
		}
		from = 1
	default:
		r.series.collect(first)
	}
	r.Log.Info().Int("from", from).Bool("known", known).Msg("the peers send the ends of their time steps again")
	for _, m := range r.members {
		if m.conn != nil {
			m.notify(rendezvous.Resend{From: from})
		}
	}
	return known
}

// commonStep returns the oldest time step of whose end every peer has its block.
func (r *run) commonStep() (step int, known bool) {
	for _, m := range r.members {
		if m.conn == nil || len(m.steps) == 0 {
			return 0, false
		}
		step = max(step, m.steps[0])
	}
	for _, m := range r.members {
		if !slices.Contains(m.steps, step) {
			return 0, false
		}
	}
	return step, step < r.Problem.Steps()
}

// validSteps reports whether a peer can hold the ends of these time steps.
func (r *run) validSteps(steps []int) bool {
	for i, m := range steps {
		if m < 0 || m > r.Problem.Steps() || m != steps[0]+i {
			return false
		}
	}
	return len(steps) <= maxHeld
}

// startAgain begins again with the first time step. The run fails if u(0) is not that of the problem.
func (r *run) startAgain() {
	why := ""
	if r.startsFromFile {
		why = "the starting values were known only to the process that was lost"
	} else if err := r.series.start(0, nil, true); err != nil {
		why = err.Error()
	}
	if why != "" {
		r.fail(failure{exited, -1, "the end of no time step is known of every peer, and the run cannot begin again: " + why})
		return
	}
	r.Log.Warn().Msg("the end of no time step is known of every peer: the run begins again with the first step")
}

// awaitsSteps reports whether an epoch has to wait for the end of the time step after which it begins, which the peers
// send again. If one of them was lost before, the run begins again.
func (r *run) awaitsSteps() bool {
	if r.waiting = false; r.series == nil {
		return false
	}
	for _, rank := range r.series.missing() {
		if r.members[rank].conn == nil {
			r.startAgain()
			return false
		}
		r.waiting = true
	}
	return r.waiting
}

// stepArrived begins the epoch that has waited for the end of a time step.
func (r *run) stepArrived() {
	if r.waiting {
		r.waitTicks = 0
		r.nextEpoch()
	}
}

// checkSteps looks, at every tick, for a peer that does not send the end of a time step for which an epoch waits.
func (r *run) checkSteps() {
	if !r.waiting || r.failure != nil {
		return
	}
	r.waitTicks++
	if late := r.series.missing(); r.waitTicks > r.ticks(max(leastRepair, r.beat.Elapsed)) && len(late) > 0 {
		r.waitTicks = 0
		m := r.members[late[0]]
		r.lose(m, failure{silent, m.rank, m.String() + " has not sent the end of its time step in time"})
	}
}

// goFromStep begins an epoch after the last complete time step.
func (r *run) goFromStep() {
	r.after = r.series.restart(r.epoch)
	for _, l := range r.open {
		l.FromStep = nullable.Number(r.after)
	}
}
