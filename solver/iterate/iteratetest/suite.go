// Package iteratetest tests iterations. Network runs peers over a simulated, deterministic network in virtual
// time. Suite checks the blocks of an iteration. The package imports no test framework.
package iteratetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Suite tests the blocks of an iteration. Blocks is required.
type Suite struct {
	Blocks    []iterate.Block   // of the peers, by rank; every run uses them again
	Tolerance float64           // relative residual of the runs; with 0 it is 1e-6
	MaxSweeps iterate.Iteration // a run that needs more sweeps fails; with 0 it is 100 000
	Seeds     int               // number of networks for each scheme; with 0 it is 4
	// LockstepOnly omits the schemes that read old values, for an iteration that converges only in
	// lockstep.
	LockstepOnly bool
}

// Check returns an error if a block breaks the contract of iterate.Block, or if a run ends with a wrong
// result. It checks that
//
//  1. neighbours agree on the number of values that they exchange;
//  2. Relax depends on its arguments alone and does not change x or ghosts;
//  3. in lockstep every run gives the bits of the sequential iteration;
//  4. in every scheme, over networks that lose, duplicate and reorder halos, the run converges, and
//     the residual of the assembled answer, computed anew, meets the tolerance;
//  5. so does a run that loses a peer in the middle and goes on with a repaired block (iterate.Repair), unless
//     LockstepOnly is set.
func (s Suite) Check() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("iteratetest: %w", err)
	}
	return nil
}

func (s Suite) check() error {
	s.Tolerance, s.MaxSweeps, s.Seeds = cmp.Or(s.Tolerance, 1e-6), cmp.Or(s.MaxSweeps, 100_000), cmp.Or(s.Seeds, 4)
	if len(s.Blocks) == 0 {
		return errors.New("no blocks; set Suite.Blocks")
	}
	if _, err := s.peers(iterate.Config{Scheme: iterate.Synchronous()}, s.Blocks); err != nil {
		return err
	}
	w, err := newSequential(s.Blocks)
	if err != nil {
		return err
	}
	if err := w.checkPure(); err != nil {
		return err
	}
	clusters := make([]int, len(s.Blocks))
	for r := range clusters {
		clusters[r] = 2 * r / len(clusters)
	}
	schemes := []iterate.Scheme{
		iterate.Synchronous(),
		iterate.BoundedDelay(0),
		iterate.Hybrid(make([]int, len(clusters))),
	}
	if !s.LockstepOnly {
		schemes = append(schemes, iterate.BoundedDelay(3), iterate.Asynchronous(), iterate.Hybrid(clusters))
	}
	for _, scheme := range schemes {
		for seed := range s.Seeds {
			if err := s.run(w, scheme, uint64(seed)); err != nil {
				return fmt.Errorf("scheme %s, network %d: %w", scheme.Name(), seed, err)
			}
			if err := s.lose(w, scheme, uint64(seed)); err != nil {
				return fmt.Errorf("scheme %s, network %d, with the loss of a peer: %w", scheme.Name(), seed, err)
			}
		}
	}
	return nil
}

// peers returns new peers of some blocks, whose configurations differ in the rank only.
func (s Suite) peers(c iterate.Config, blocks []iterate.Block) ([]iterate.Peer, error) {
	c.Peers, c.Tolerance, c.MaxSweeps = len(blocks), s.Tolerance, s.MaxSweeps
	var peers []iterate.Peer
	for r, b := range blocks {
		c.Rank = iterate.Rank(r)
		p, err := iterate.NewPeer(c, b)
		if err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// run makes one run over a network and checks its result.
func (s Suite) run(w *sequential, scheme iterate.Scheme, seed uint64) error {
	peers, err := s.peers(iterate.Config{Scheme: scheme}, s.Blocks)
	if err != nil {
		return err
	}
	x, err := s.converge(w, network(seed, scheme, peers))
	if err != nil || !scheme.Lockstep() {
		return err
	}
	sweeps := peers[0].Outcome().Iterate
	want := w.start()
	for range sweeps {
		want = w.relax(want)
	}
	for r := range x {
		if !sameBits(x[r], want[r]) {
			return fmt.Errorf("after %d sweeps the values of peer %d differ from those of the sequential iteration",
				sweeps, r)
		}
	}
	return nil
}

// network returns a network that loses, duplicates and reorders halos.
func network(seed uint64, scheme iterate.Scheme, peers []iterate.Peer) *Network {
	n := NewNetwork(seed, scheme, peers)
	n.Loss, n.Duplicate = 0.1*float64(seed%3), 0.1
	return n
}

// converge runs the peers of a network to their end, checks it and returns the answer.
func (s Suite) converge(w *sequential, n *Network) ([][]float64, error) {
	if err := n.Run(); err != nil {
		return nil, err
	}
	if n.Failed != nil {
		return nil, n.Failed
	}
	for r, p := range n.Peers {
		if o := p.Outcome(); o.Reason != iterate.Converged {
			return nil, fmt.Errorf("peer %d ended after %d sweeps with a residual of %.3g: %s",
				r, o.Sweeps, o.Residual, o.Reason)
		}
	}
	x := w.values(n.Peers)
	if residual := w.residual(x) / w.residual(w.start()); residual > s.Tolerance {
		return nil, fmt.Errorf("the residual of the answer is %.17g, above the tolerance of %g", residual, s.Tolerance)
	}
	return x, nil
}

// sameBits reports whether two vectors are equal bit by bit.
func sameBits(x, y []float64) bool {
	return slices.EqualFunc(x, y, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}
