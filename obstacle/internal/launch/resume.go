package launch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// resumption is the kept iterate from which all peers go on in an epoch, with --recover exact.
type resumption struct {
	iterate iterate.Iteration
	again   bool                // none is known of every peer: the run begins again
	awaited map[int]*member     // who was asked for the copy of a lost peer, by its rank
	copies  map[int]*lostValues // that have arrived, by rank
}

// awaits reports whether a peer was asked for a copy that has not arrived.
func (s *resumption) awaits(m *member) bool {
	if s == nil {
		return false
	}
	for _, rank := range slices.Sorted(maps.Keys(s.awaited)) {
		if s.awaited[rank] == m {
			return true
		}
	}
	return false
}

// lostValues are a copy of a lost peer's block.
type lostValues struct {
	state  []byte
	values []float64
}

// exact reports whether the run goes back to a kept iterate after a loss. A time step is done again from its start,
// which is exact, too.
func (r *run) exact() bool {
	mode, _ := r.onLoss()
	return mode == rendezvous.RecoverExact
}

// keepEvery returns the least time between two kept iterates, 0 if none is kept.
func (r *run) keepEvery() time.Duration {
	if !r.exact() {
		return 0
	}
	points := 0
	for _, m := range r.members {
		points = max(points, m.box.Points())
	}
	return buddy.KeepEvery(points)
}

// lacks reports whether the copy of a lost peer's block has not arrived.
func (s *resumption) lacks(m *member) bool { return s != nil && s.awaited[m.rank] != nil }

// decideResumption decides with which iterate the epoch begins, once all peers have told what they hold, and asks for
// the copies of lost peers.
func (r *run) decideResumption() {
	if r.resumption != nil {
		return
	}
	held := make([]*buddy.Holding, len(r.members))
	for i, m := range r.members {
		if h := r.handoverTo(m); h != nil {
			held[i] = h.from.holding
		} else if m.valued {
			held[i] = m.holding
		}
	}
	k, from, ok := buddy.Newest(held)
	s := &resumption{iterate: k, again: !ok, awaited: map[int]*member{}, copies: map[int]*lostValues{}}
	r.resumption = s
	if s.again && r.lacksStart() {
		r.fail(failure{exited, -1, "no iterate is known of every peer, and the starting values were known only to the " +
			"process that was lost, so that the run cannot begin again"})
		return
	}
	r.info("all peers go back to an iterate that is known of each", "epoch", r.epoch, "iterate", uint64(k), "again", s.again)
	for _, l := range r.open {
		l.From = nullable.Number(k)
	}
	for _, m := range r.members {
		m.sweep = uint64(k)
		holder, lost := from[iterate.Rank(m.rank)]
		h := r.handoverTo(m)
		if lost || h != nil && ok {
			q := r.members[holder]
			if h != nil {
				q = h.from
			}
			s.awaited[m.rank] = q
			r.send(q, rendezvous.Capture{
				Number: -r.epoch, Copy: &rendezvous.Copy{Rank: m.rank, Iterate: uint64(k)},
			})
		}
	}
	r.newest = uint64(k)
}

// receiveCopy handles the copy of a lost peer's block.
func (r *run) receiveCopy(m *member, msg *rendezvous.Captured, values []float64) {
	s := r.resumption
	if s == nil || msg.Number != -r.epoch || msg.Copy == nil || s.awaited[msg.Copy.Rank] != m {
		return // of a former epoch
	}
	if msg.State == nil || len(values) != r.members[msg.Copy.Rank].box.Points() {
		r.add(disconnect{m})
		why := fmt.Sprintf("%s has no copy of the block of peer %d at iterate %d, which it claimed to have", m, msg.Copy.Rank,
			s.iterate)
		weight := closed
		if to := r.members[m.rank]; to != m { // its part was about to move, to a process that is not lost
			m.gone, m, weight = true, to, reported
		}
		r.lose(m, failure{weight, m.rank, why})
		return
	}
	delete(s.awaited, msg.Copy.Rank)
	s.copies[msg.Copy.Rank] = &lostValues{msg.State, values}
	r.advance()
}

// resumeWith adds to a peer's work of the epoch the iterate from which it goes on.
func (r *run) resumeWith(w *workload, m *member) {
	s, a := r.resumption, &w.assign
	a.Sweeps, a.MaxSweeps = 0, r.MaxSweeps
	a.Resume = &rendezvous.Resume{Iterate: uint64(s.iterate), Again: s.again}
	switch c := s.copies[m.rank]; {
	case s.again:
		a.Initial, w.initial = r.Initial != nil, r.Initial
		a.Earlier = r.Earlier
	case c != nil:
		a.Initial, w.block, a.Resume.State = true, c.values, c.state
	}
}
