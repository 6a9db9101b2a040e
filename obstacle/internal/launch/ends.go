package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// End is a copy of a peer's block at the end of a time step.
type End struct {
	Rank, Step int
	Box        problem.Box
	U          []float64
}

// passOn sends a keeper the blocks, at the end of the newest time step, of peers that would be lost together with this
// process, but not with the keeper. A keeper that does not take them as fast as steps end gets those of the newest.
func (r *run) passOn(m *member) {
	if !r.inTime || m.conn == 0 || !slices.Contains(r.term.Keepers, m.keeps) {
		return
	}
	var ranks []int
	for _, q := range r.members {
		if r.lostTogether(q, m) {
			ranks = append(ranks, q.rank)
		}
	}
	if len(ranks) > 0 {
		r.add(passOn{m, ranks})
	}
}

// lostTogether reports whether a peer is lost if this process or its host is, and a keeper is not.
func (r *run) lostTogether(m, keeper *member) bool {
	return m.conn != 0 && (processOf(m) == r.self || m.join.Host == r.self.host && keeper.join.Host != r.self.host)
}
