package launch

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// resumeSteps decides with which time step a run goes on whose leader was lost, when the peers have returned to this
// process, and asks them for the ends from that step on. It reports whether they can go on without a new epoch.
func (r *run) resumeSteps() bool {
	if !r.inTime {
		return true
	}
	first, known := r.commonStep()
	from := first
	switch {
	case !known:
		r.startAgain()
		from = -1
	case first == 0 && !r.FromFile: // u(0) is that of the problem
		if why := r.beginSteps(false); why != "" {
			r.fail(failure{exited, -1, why})
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
	var usable []End
	boxes, here := newOwnership(&r.Plan), map[int]bool{}
	for _, e := range r.copies {
		m := r.members[e.Rank]
		if e.Step != first || here[e.Rank] || m.conn != 0 && slices.Contains(m.steps, first) {
			continue
		}
		if err := e.check(boxes); err != nil {
			r.warn(unusable, "error", err, "rank", e.Rank)
			continue
		}
		here[e.Rank], usable = true, append(usable, e)
	}
	r.add(collectSteps{first, usable})
	r.steps = timeSteps{done: first - 1}
	for _, m := range r.members {
		if !here[m.rank] {
			r.steps.missing = append(r.steps.missing, m.rank)
		}
	}
	if len(here) == len(r.members) {
		r.steps.done = first
	}
}

const unusable = "the copy of the block of a lost peer cannot be used"

// check returns an error if the block of a peer cannot be taken from the copy. It declares the box.
func (e *End) check(boxes *ownership) error {
	if boxes.config.Balance {
		if err := boxes.declare(e.Rank, e.Box); err != nil {
			return err
		}
	}
	if n := boxes.box(e.Rank).Points(); len(e.U) != n {
		return fmt.Errorf("%d values of a block of %d", len(e.U), n)
	}
	return nil
}

// beginSteps begins again with the first time step. It returns why that is not possible.
func (r *run) beginSteps(suspended bool) (why string) {
	if _, err := r.Problem.InitialValues(0, problem.Box{Hi: r.Problem.N}, nil); err != nil {
		return err.Error()
	}
	r.add(beginSteps{suspended})
	r.steps = timeSteps{}
	return ""
}

// validSteps reports whether a peer can hold the ends of these time steps.
func (r *run) validSteps(steps []int) bool {
	for i, m := range steps {
		if m < 0 || m > r.Problem.Steps() || m != steps[0]+i {
			return false
		}
	}
	return len(steps) <= rendezvous.MaxHeld
}

// lacksStart reports whether the starting values were known only to a process that led the run before.
func (r *run) lacksStart() bool { return r.inherits && r.FromFile }

// startAgain begins again with the first time step. The run fails if u(0) is not that of the problem.
func (r *run) startAgain() {
	why := ""
	if r.lacksStart() {
		why = "the starting values were known only to the process that was lost"
	} else {
		why = r.beginSteps(true)
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
	if r.waiting = false; !r.inTime {
		return false
	}
	late := r.steps.missing
	if slices.ContainsFunc(late, func(rank int) bool { return r.members[rank].conn == 0 }) {
		r.startAgain()
		return false
	}
	r.waiting = len(late) > 0
	return r.waiting
}

// stepArrived handles a peer's end of a time step, which has arrived. It begins the epoch that has waited for it.
func (r *run) stepArrived() {
	if done := r.steps.done; done != r.passed {
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
	if late := r.steps.missing; r.waitTicks > r.ticks(max(leastRepair, r.beat.Elapsed)) && len(late) > 0 {
		r.waitTicks = 0
		m := r.members[late[0]]
		r.lose(m, failure{silent, m.rank, m.String() + " has not sent the end of its time step in time"})
	}
}

// goFromStep begins an epoch after the last complete time step.
func (r *run) goFromStep() {
	r.add(restartSteps{r.epoch})
}

// restarted handles the answer to restartSteps.
func (r *run) restarted() {
	r.after = r.steps.done
	for _, l := range r.open {
		l.FromStep = nullable.Number(r.after)
	}
}

// succeed begins to lead a run whose leader was lost, with copies of blocks at the ends of time steps. Its peers return.
func (r *run) succeed(t register.Term, copies []End) {
	r.epoch, r.term, r.returning, r.active, r.inherits, r.kept = t.Epoch, t, true, true, true, true
	r.started = true
	for _, m := range r.members {
		m.valued, m.informed, m.assigned, m.since = true, true, true, r.epoch+1
	}
	r.copies = copies
	r.limitTime()
	r.warn("the leader of the run was lost: this process leads it now", "term", t.Number, "address", t.Leader)
	r.change(Solving)
	r.reportEpoch()
}

// reseat gives a peer that lost its leader its place again.
func (r *run) reseat(c *caller) {
	j := &c.join
	if !r.returning || j.Rank < 0 || j.Rank >= len(r.members) || r.members[j.Rank].conn != 0 ||
		!r.validSteps(j.Standing.Steps) {
		r.add(refuse{conn: c.conn, why: "its place in the run was given to another process"})
		return
	}
	m, s := r.members[j.Rank], j.Standing
	m.control, m.listens, m.sweep, m.valued, m.ready = s.Control, s.Epoch, s.Sweep, s.Valued, s.Settled
	m.steps = s.Steps
	w := rendezvous.Welcome{Rank: m.rank, Epoch: r.epoch, Cluster: s.Cluster} // it has the settings
	r.welcome(m, c, w)
	r.send(m, rendezvous.Start{})
	r.send(m, rendezvous.Term{Term: r.term})
	for _, m := range r.members {
		if m.conn == 0 {
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
		here := m.conn != 0
		m.valued, missing = m.valued && here, missing || !here
		settled = settled && here && m.ready && m.listens == r.epoch
	}
	r.info("leading the run", "epoch", r.epoch, "undisturbed", settled)
	for _, m := range r.members {
		if m.conn == 0 {
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
