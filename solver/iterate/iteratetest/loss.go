package iteratetest

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// lose makes one run that loses a peer after some sweeps, unless it has ended before. Its block is repaired from the
// values of the others, and all go on in a new run. Residuals are relative to that of the same starting values.
func (s Suite) lose(w *sequential, scheme iterate.Scheme, seed uint64) error {
	if s.LockstepOnly || len(s.Blocks) < 2 {
		return nil // the values around a block may not determine it
	}
	c := iterate.Config{Scheme: scheme}
	peers, err := s.peers(c, s.Blocks)
	if err != nil {
		return err
	}
	lost, sweeps := int(seed)%len(peers), iterate.Iteration(1+4*seed)
	n := network(seed, scheme, peers)
	n.Until = func() bool { return peers[lost].Progress().Sweep >= sweeps }
	if err := n.Run(); err != nil || !n.Until() || peers[lost].Outcome().Reason != iterate.Running {
		return err
	}
	x := w.values(peers)
	if x[lost], err = s.repair(iterate.Rank(lost), x); err != nil {
		return fmt.Errorf("rank %d: %w", lost, err)
	}
	blocks := slices.Clone(s.Blocks)
	for r, b := range blocks {
		blocks[r] = iterate.StartFrom(b, x[r])
	}
	reference := w.residual(w.start())
	c.Reference = func(float64) float64 { return reference }
	if peers, err = s.peers(c, blocks); err != nil {
		return err
	}
	_, err = s.converge(w, network(seed, scheme, peers))
	return err
}

// repairSweeps bounds the sweeps of a repair. What is left is for the run.
const repairSweeps = 100

// repair returns the values of a lost block. x holds those of the others.
func (s Suite) repair(lost iterate.Rank, x [][]float64) ([]float64, error) {
	halos := map[iterate.Rank][]float64{}
	for r, b := range s.Blocks {
		halos[iterate.Rank(r)] = iterate.Halo(b, lost, x[r])
	}
	fixed, _, _, err := iterate.Repair(s.Blocks[lost], halos, 0, repairSweeps, nil)
	return fixed, err
}
