package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// MaxHeld bounds the ends of time steps that a peer holds.
const MaxHeld = 2

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
	case first == 0 && !r.FromFile: // u(0) is that of the problem
		if err := r.series.start(0, nil, false); err != nil {
			r.fail(failure{exited, -1, err.Error()})
		}
		from = 1
	default:
		r.collect(first)
	}
	r.info("the peers send the ends of their time steps again", "from", from, "known", known)
	for _, m := range r.members {
		if m.conn != 0 {
			r.send(m, rendezvous.Resend{From: from})
		}
	}
	return known
}

// commonStep returns the oldest time step of whose end the block of every peer is held by the peer, or by this process.
func (r *run) commonStep() (step int, known bool) {
	for _, step := range slices.Sorted(slices.Values(r.heldOf(r.members[0]))) {
		if step < r.Problem.Steps() && !slices.ContainsFunc(r.members, func(m *member) bool {
			return !slices.Contains(r.heldOf(m), step)
		}) {
			return step, true
		}
	}
	return 0, false
}

// heldOf returns the time steps of whose ends the block of a peer is held.
func (r *run) heldOf(m *member) (steps []int) {
	if m.conn != 0 {
		steps = slices.Clone(m.steps)
	}
	for _, e := range r.copies {
		if e.Rank == m.rank {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// collect awaits the end of a time step from all peers, but for those whose block is held here alone.
func (r *run) collect(first int) {
	r.series.collect(first)
	for _, e := range r.copies {
		m := r.members[e.Rank]
		if e.Step != first || m.conn != 0 && slices.Contains(m.steps, first) {
			continue
		}
		if err := r.series.place(&e); err != nil {
			r.warn("the copy of the block of a lost peer cannot be used", "error", err, "rank", e.Rank)
		}
	}
}

// validSteps reports whether a peer can hold the ends of these time steps.
func (r *run) validSteps(steps []int) bool {
	for i, m := range steps {
		if m < 0 || m > r.Problem.Steps() || m != steps[0]+i {
			return false
		}
	}
	return len(steps) <= MaxHeld
}

// lacksStart reports whether the starting values were known only to a process that led the run before.
func (r *run) lacksStart() bool { return r.inherits && r.FromFile }

// startAgain begins again with the first time step. The run fails if u(0) is not that of the problem.
func (r *run) startAgain() {
	why := ""
	if r.lacksStart() {
		why = "the starting values were known only to the process that was lost"
	} else if err := r.series.start(0, nil, true); err != nil {
		why = err.Error()
	}
	if why != "" {
		r.fail(failure{exited, -1, "the end of no time step is known of every peer, and the run cannot begin again: " + why})
		return
	}
	r.warn("the end of no time step is known of every peer: the run begins again with the first step")
}

// awaitsSteps reports whether an epoch has to wait for the end of the time step after which it begins, which the peers
// send again. If one of them was lost before, the run begins again.
func (r *run) awaitsSteps() bool {
	if r.waiting = false; r.series == nil {
		return false
	}
	late := r.series.missing()
	if slices.ContainsFunc(late, func(rank int) bool { return r.members[rank].conn == 0 }) {
		r.startAgain()
		return false
	}
	r.waiting = len(late) > 0
	return r.waiting
}

// stepArrived handles a peer's end of a time step, which has arrived. It begins the epoch that has waited for it.
func (r *run) stepArrived() {
	if done := r.series.completed(); done != r.passed {
		r.passed = done
		for _, m := range r.members {
			r.passOn(m)
		}
	}
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
