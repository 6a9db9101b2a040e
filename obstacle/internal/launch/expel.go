package launch

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// unreachable handles a peer that goes on without another one, which the launcher reaches. The path between the two is
// broken. The other one is replaced, in the process of the first if no spare peer waits.
func (r *run) unreachable(m *member, msg *rendezvous.Unreachable) {
	if msg.Epoch != r.epoch || r.active || msg.Rank < 0 || msg.Rank >= len(r.members) || r.members[msg.Rank] == m {
		return // the epoch is over, or the peer is lost already
	}
	q := r.members[msg.Rank]
	if q.closed != nil {
		return // its exit status says more
	}
	text := fmt.Sprintf("%s cannot be reached by %s: %s", q, m, msg.Why)
	if msg.Refused {
		r.ban(q)
		text = fmt.Sprintf("%s was refused by %s: %s", q, m, msg.Why)
	}
	r.preferred = m
	r.lose(q, failure{reported, q.rank, text})
	r.preferred = nil
}

// ban refuses the process of a peer from now on, unless it is this one.
func (r *run) ban(m *member) {
	p := processOf(m)
	if p == r.self {
		return
	}
	if r.banned == nil {
		r.banned = map[process]bool{}
	}
	r.banned[p] = true
	r.spares = slices.DeleteFunc(r.spares, func(s *member) bool {
		if processOf(s) == p {
			r.add(retire{s})
		}
		return processOf(s) == p
	})
}

// expel loses a peer that has sent what no peer of the run sends. The run goes on without its process.
func (r *run) expel(m *member, why error) {
	r.ban(m)
	r.add(disconnect{m})
	r.lose(m, failure{closed, m.rank, fmt.Sprintf("%s was refused%s: %v", m, r.when(), why)})
}
