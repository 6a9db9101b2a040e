package launch

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// replace puts another process in the place of a lost peer: a spare one; or a new one, on the host of the launcher if it
// started the peers and can start another, else in the process of the peer that has the fewest. Processes on hosts that
// may have been lost, too, come last.
func (r *run) replace(m *member) {
	m.quietTicks, m.attempts, m.awaited, m.host = 0, m.attempts+1, true, nil
	if q := r.companion(m); q != nil {
		r.by(m, "with peer "+strconv.Itoa(q.rank))
		if m.host = q; q.conn != 0 {
			r.send(q, rendezvous.Host{Rank: m.rank})
		} else {
			q.guests = append(q.guests, m.rank)
		}
		return
	}
	if r.seatSpare(m, false) {
		return
	}
	if r.Spawn != nil {
		m.starting = true
		r.add(start{m, m.rank})
		return
	}
	r.settle(m)
}

// childStarted handles the answer to the start of a process for a peer.
func (r *run) childStarted(m *member, c child, s *started) {
	m.child, m.name, m.starting = c, s.name, false
	i := slices.Index(r.starting, m)
	switch {
	case s.err == nil && i < 0:
		r.by(m, "new "+m.String())
	case s.err == nil:
	case i >= 0:
		r.starting = slices.Delete(r.starting, i, i+1)
		r.stopLeaving()
	default:
		r.warn("cannot start a peer in place of a lost one: another one's process runs it", "error", s.err, "rank", m.rank)
		guests := m.guests
		m.guests = nil
		r.settle(m)
		for _, rank := range guests { // those that its process was to run, too
			q := r.members[rank]
			q.attempts--
			r.replace(q)
		}
	}
}

// settle puts the process of another peer in the place of a lost one, or a spare process on a host that may have been
// lost, too.
func (r *run) settle(m *member) {
	least := r.preferred
	for _, last := range []func(q *member) bool{ // of the processes that are left
		func(q *member) bool { return r.leaving[processOf(q)] || r.doubts(q) },
		func(q *member) bool { return r.leaving[processOf(q)] },
		func(*member) bool { return false }, // if all processes leave, the run ends after the recovery
	} {
		for _, q := range r.members {
			free := q.conn != 0 && (q.child == 0 || r.Spawn != nil) && !q.lost && !r.banned[processOf(q)] && !last(q)
			if free && r.preferred == nil && (least == nil || r.parts(q) < r.parts(least)) {
				least = q
			}
		}
		if least != nil {
			break
		}
	}
	if (least == nil || r.preferred == nil && r.doubts(least)) && r.seatSpare(m, true) {
		return
	}
	if least == nil {
		m.awaited = false // the next epoch tries again
		return
	}
	m.host = least
	r.send(least, rendezvous.Host{Rank: m.rank})
	r.by(m, "process of "+least.String())
}

// seatSpare puts a spare peer in the place of a lost one and reports whether there was one, on a host that may have been
// lost, too, only if doubtful is true.
func (r *run) seatSpare(m *member, doubtful bool) bool {
	for {
		i := slices.IndexFunc(r.spares, func(s *member) bool { return doubtful || !r.doubts(s) })
		if i < 0 {
			return false
		}
		s := r.spares[i]
		r.spares = slices.Delete(r.spares, i, i+1)
		label, err := r.label(m.rank, &s.caller)
		if s.rank = m.rank; err != nil {
			r.warn("a spare peer cannot take part", "error", err)
			r.add(retire{s})
			continue
		}
		r.seat(s, &s.caller, label)
		s.box, s.final, s.sweep, s.attempts, s.former, s.carried = m.box, m.final, m.sweep, m.attempts, m.former, m.carried
		r.members[m.rank] = s
		r.by(s, "spare "+s.String())
		return true
	}
}

// doubts reports whether the host of a process may have been lost: a peer there has fallen silent, or is about to be
// suspected.
func (r *run) doubts(q *member) bool {
	return r.silentHosts[q.join.Host] || slices.ContainsFunc(r.members, func(m *member) bool {
		return m.conn != 0 && m.child == 0 && m.join.Host == q.join.Host && m.quietTicks > r.ticks(r.Suspect/2)
	})
}

// askAgain gives up the requests to processes that were lost before the peers for which they were asked have joined.
func (r *run) askAgain() {
	for _, m := range r.members {
		lost := func() bool {
			return !slices.ContainsFunc(r.members, func(q *member) bool { return q.conn != 0 && processOf(q) == processOf(m.host) })
		}
		if m.conn == 0 && m.host != nil && m.host.conn != 0 && lost() {
			m.awaited, m.host, m.attempts = false, nil, m.attempts-1
		}
	}
}

// companion returns a peer that was lost with a peer and has got a process of its own, nil if there is none. The process
// takes the other parts, too.
func (r *run) companion(m *member) *member {
	for _, q := range r.members {
		together := r.Parts > 1 && q != m && m.former != (process{}) && q.former == m.former
		if together && (q.child != 0 || q.starting || q.conn != 0) && !q.valued {
			return q
		}
	}
	return nil
}

// parts returns how many peers the process of a peer runs, or was asked to run.
func (r *run) parts(m *member) (n int) {
	for _, q := range r.members {
		if q.conn == 0 {
			q = q.host
		}
		if q != nil && q.conn != 0 && processOf(q) == processOf(m) {
			n++
		}
	}
	return n
}

// by records which process takes the place of a lost one.
func (r *run) by(m *member, process string) {
	replaced := false
	for _, l := range r.open {
		if l.Rank == m.rank {
			l.By, replaced = process, true
		}
	}
	if replaced || !r.joining {
		r.info("replacement: "+process, "rank", m.rank)
	}
}

// maxAttempts bounds the attempts to replace one lost peer.
const maxAttempts = 3

// checkReplacements looks for replacements that do not come.
func (r *run) checkReplacements() {
	for _, m := range r.members {
		if !r.active || r.failure != nil || m.conn != 0 || m.attempts == 0 && r.waitsFor(m) && !r.allCame() {
			continue
		}
		if m.quietTicks++; m.quietTicks <= r.ticks(r.PeerTimeout) && !m.exited {
			continue
		}
		if m.child != 0 { // a process that did not join
			r.add(retire{&member{rank: m.rank, child: m.child, lost: true}})
			m.child, m.exited = 0, false
		}
		if m.attempts >= maxAttempts {
			m.gone = true
			r.fail(failure{closed, m.rank, fmt.Sprintf("peer %d was lost, and no other process took its place", m.rank)})
			return
		}
		r.replace(m)
	}
}

// lostWith returns the peers that are lost together with m: all peers of its process, or m alone if m has reported a
// failure.
func (r *run) lostWith(m *member, f failure) []*member {
	out := []*member{m}
	for _, q := range r.members {
		if r.Parts > 1 && (f.weight > reported || r.banned[processOf(m)]) && q != m && q.conn != 0 && !q.gone && processOf(q) == processOf(m) {
			out = append(out, q)
		}
	}
	return out
}

// anyOf reports whether a peer of the process of m is such that is returns true.
func (r *run) anyOf(m *member, is func(q *member) bool) bool {
	return is(m) || r.Parts > 1 && slices.ContainsFunc(r.members, func(q *member) bool {
		return q.conn != 0 && processOf(q) == processOf(m) && is(q)
	})
}
