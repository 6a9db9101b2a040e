package sim

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// emulate runs the partition in one process without a transport. In the order in-turn it is the
// reference of synchronous runs, since there the answer depends on the partition.
func (s *Scenario) emulate() (richardson.Sequence, error) {
	workers, peers := make([]problem.Peer, s.Peers()), make([]iterate.Peer, s.Peers())
	for r := range workers {
		c := s.config(iterate.Rank(r), nil)
		c.Scheme = iterate.Synchronous()
		w, err := solver.New(c)
		if err != nil {
			return richardson.Sequence{}, err
		}
		workers[r], peers[r] = w, w
	}
	if err := iteratetest.NewNetwork(s.Seed, iterate.Synchronous(), peers).Run(); err != nil {
		return richardson.Sequence{}, fmt.Errorf("sim: emulation of %v: %w", s.Partition.Cuts, err)
	}
	out := richardson.Sequence{U: make([]float64, s.Problem.Points())}
	for _, w := range workers {
		v := make([]float64, w.Box().Points())
		w.Solution(v)
		virtual.Place(out.U, s.Problem.N, w.Box(), v)
	}
	o := workers[0].Outcome()
	out.Sweeps, out.Residual = o.Sweeps, o.Residual
	out.Reason = o.Reason
	return out, nil
}
