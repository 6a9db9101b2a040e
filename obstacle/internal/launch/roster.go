package launch

import (
	"cmp"
	"slices"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// roster is what all peers of an epoch have in common.
type roster struct {
	config problem.Config // what their links depend on
	fresh  []*member      // those that took the place of a lost one, by rank
	all    []rendezvous.Member

	buddies []iterate.Rank // by rank; nil: no iterates are kept
}

// lostRanks returns the ranks of the peers that were lost since all peers relaxed in the same epoch. Other processes have
// taken the places of some of them.
func (r *run) lostRanks() (ranks []int) {
	for _, m := range r.members {
		if m.gone || !m.valued || m.seated > r.settled {
			ranks = append(ranks, m.rank)
		}
	}
	return ranks
}

func (r *run) roster() (*roster, error) {
	labels, now := make([]string, len(r.members)), &roster{}
	for i, m := range r.members {
		now.all = append(now.all, m.entry())
		if labels[i] = m.label; m.since > 0 {
			now.fresh = append(now.fresh, m)
		}
	}
	if r.exact() {
		now.buddies = buddy.Of(rendezvous.Apart(now.all))
	}
	s, err := r.Catalog.Scheme(r.Scheme, labels)
	now.config = problem.Config{Problem: r.Problem, Partition: r.Partition, Scheme: s, Method: r.Method, Order: r.Order}
	return now, err
}

// news returns the entries of the list of all peers that a peer needs in this epoch, by rank: those that it connects
// to, whose addresses are new, and those of processes that it does not know. Lists of all for n peers would have n²
// entries.
func (r *run) news(m *member, now *roster) []rendezvous.Member {
	if !m.informed {
		return now.all
	}
	var need []*member
	for _, l := range r.Catalog.Methods.Links(&now.config, iterate.Rank(m.rank)) {
		need = append(need, r.members[l.Rank])
	}
	for q, b := range now.buddies {
		if own := iterate.Rank(m.rank); b == own || iterate.Rank(q) == own {
			need = append(need, r.members[q], r.members[b])
		}
	}
	for _, q := range now.fresh {
		if q.since > m.listed {
			need = append(need, q)
		}
	}
	slices.SortFunc(need, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
	need = slices.Compact(need)
	out := make([]rendezvous.Member, len(need))
	for i, q := range need {
		out[i] = q.entry()
	}
	return out
}
