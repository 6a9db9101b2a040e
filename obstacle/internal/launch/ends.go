package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// End is a copy of a peer's block at the end of a time step.
type End struct {
	Rank, Step int
	Box        problem.Box
	U          []float64
}

// copies are those of the blocks of some peers, at the end of the step that is the newest when they are sent.
type copies struct {
	series *series
	ranks  []int
}

// send writes the copies to a keeper.
func (c copies) send(l *link) error {
	l.passing.Store(false) // a step that ends from now on needs other copies
	for _, e := range c.series.ends(c.ranks) {
		if err := l.Send(rendezvous.Held{Rank: e.Rank, Step: e.Step, Box: e.Box}); err != nil {
			return err
		}
		if err := sendArray(l.Conn, rendezvous.StreamStep, e.U); err != nil {
			return err
		}
	}
	return nil
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

// ends returns copies of the blocks of some peers at the end of the newest step.
func (s *series) ends(ranks []int) (out []End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done < s.first {
		return nil
	}
	for _, rank := range ranks {
		b := s.boxes[rank]
		out = append(out, End{rank, s.done, b, blocks.Extract(s.at(s.done), s.problem.N, b)})
	}
	return out
}

// place writes the block of a peer from a copy.
func (s *series) place(e *End) error {
	data := make([]byte, 8*len(e.U))
	blocks.Encode(data, e.U)
	if s.owned.config.Balance {
		if err := s.declare(e.Rank, e.Box); err != nil {
			return err
		}
	}
	if err := s.put(e.Rank, 0, data); err != nil {
		return err
	}
	return s.complete(e.Rank, rendezvous.Step{Step: e.Step, Residual: nullable.NaN()}, int64(len(data)))
}
