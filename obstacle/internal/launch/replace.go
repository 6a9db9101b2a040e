package launch

import (
	"fmt"
	"strconv"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// replace puts another process in the place of a lost peer: a spare one; or a new one, on the host of the launcher if it
// started the peers and can start another, else in the process of the peer that has the fewest.
func (r *run) replace(m *member) {
	m.quietTicks, m.attempts, m.awaited = 0, m.attempts+1, true
	if q := r.companion(m); q != nil {
		r.by(m, "with peer "+strconv.Itoa(q.rank))
		if q.conn != nil {
			q.notify(rendezvous.Host{Rank: m.rank})
		} else {
			q.guests = append(q.guests, m.rank)
		}
		return
	}
	for len(r.spares) > 0 {
		s := r.spares[0]
		r.spares = r.spares[1:]
		label, err := r.label(m.rank, s.conn, s.join)
		if s.rank = m.rank; err == nil {
			err = r.seat(s, s.conn, s.join, label)
		}
		if err != nil {
			r.Log.Warn().Err(err).Msg("a spare peer cannot take part")
			s.conn.Close()
			r.retired = append(r.retired, s)
			continue
		}
		s.box, s.final, s.sweep, s.attempts, s.former, s.carried = m.box, m.final, m.sweep, m.attempts, m.former, m.carried
		r.members[m.rank] = s
		r.by(s, "spare "+s.String())
		return
	}
	if r.Spawn != nil {
		err := r.start(m, m.rank)
		if err == nil {
			r.by(m, "new "+m.String())
			return
		}
		r.Log.Warn().Err(err).Int("rank", m.rank).Msg("cannot start a peer in place of a lost one: another one's process runs it")
	}
	least := r.preferred
	for _, leaving := range []bool{false, true} { // if all processes leave, the run ends after the recovery
		for _, q := range r.members {
			free := q.conn != nil && (q.child == nil || r.Spawn != nil) && !q.lost && (leaving || !r.leaving[processOf(q)])
			if free && r.preferred == nil && (least == nil || r.parts(q) < r.parts(least)) {
				least = q
			}
		}
		if least != nil {
			break
		}
	}
	if least == nil {
		m.awaited = false // the next epoch tries again
		return
	}
	least.notify(rendezvous.Host{Rank: m.rank})
	r.by(m, "process of "+least.String())
}

// companion returns a peer that was lost with a peer and has got a process of its own, nil if there is none. The process
// takes the other parts, too.
func (r *run) companion(m *member) *member {
	for _, q := range r.members {
		together := r.Parts > 1 && q != m && m.former != (process{}) && q.former == m.former
		if together && (q.child != nil || q.conn != nil) && !q.valued {
			return q
		}
	}
	return nil
}

// parts returns how many peers the process of a peer runs.
func (r *run) parts(m *member) (n int) {
	for _, q := range r.members {
		if q.conn != nil && processOf(q) == processOf(m) {
			n++
		}
	}
	return n
}

// by records which process takes the place of a lost one.
func (r *run) by(m *member, process string) {
	for _, l := range r.open {
		if l.Rank == m.rank {
			l.By = process
		}
	}
	r.Log.Info().Int("rank", m.rank).Msg("replacement: " + process)
}

// maxAttempts bounds the attempts to replace one lost peer.
const maxAttempts = 3

// checkReplacements looks for replacements that do not come.
func (r *run) checkReplacements() {
	for _, m := range r.members {
		if !r.active || m.conn != nil {
			continue
		}
		if m.quietTicks++; m.quietTicks <= r.ticks(r.PeerTimeout) && !m.exited {
			continue
		}
		if m.child != nil { // a process that did not join
			m.child.Kill()
			r.retired = append(r.retired, &member{rank: m.rank, child: m.child, ended: m.ended, lost: true})
			m.child, m.exited = nil, false
		}
		if m.attempts >= maxAttempts {
			m.gone = true
			r.fail(failure{closed, m.rank, fmt.Sprintf("peer %d was lost, and no other process took its place", m.rank)})
			return
		}
		r.replace(m)
	}
}
