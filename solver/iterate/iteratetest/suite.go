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
//     the residual of the assembled answer, computed anew, meets the tolerance.
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
	if _, err := s.peers(iterate.Synchronous()); err != nil {
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
		}
	}
	return nil
}

// peers returns new peers of the blocks.
func (s Suite) peers(scheme iterate.Scheme) ([]iterate.Peer, error) {
	var peers []iterate.Peer
	for r, b := range s.Blocks {
		p, err := iterate.NewPeer(iterate.Config{
			Rank: iterate.Rank(r), Peers: len(s.Blocks), Scheme: scheme, Tolerance: s.Tolerance, MaxSweeps: s.MaxSweeps,
		}, b)
		if err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// run makes one run over a network and checks its result.
func (s Suite) run(w *sequential, scheme iterate.Scheme, seed uint64) error {
	peers, err := s.peers(scheme)
	if err != nil {
		return err
	}
	n := NewNetwork(seed, scheme, peers)
	n.Loss, n.Duplicate = 0.1*float64(seed%3), 0.1
	if err := n.Run(); err != nil {
		return err
	}
	if n.Failed != nil {
		return n.Failed
	}
	x := make([][]float64, len(peers))
	for r, p := range peers {
		if o := p.Outcome(); o.Reason != iterate.Converged {
			return fmt.Errorf("peer %d ended after %d sweeps with a residual of %.3g: %s",
				r, o.Sweeps, o.Residual, o.Reason)
		}
		x[r] = make([]float64, s.Blocks[r].Values())
		p.Solution(x[r])
	}
	if residual := w.residual(x) / w.residual(w.start()); residual > s.Tolerance {
		return fmt.Errorf("the residual of the answer is %.17g, above the tolerance of %g", residual, s.Tolerance)
	}
	if !scheme.Lockstep() {
		return nil
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

// sameBits reports whether two vectors are equal bit by bit.
func sameBits(x, y []float64) bool {
	return slices.EqualFunc(x, y, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
}

// sequential evaluates the whole iteration in one place: each block reads the newest values of the others.
type sequential struct {
	blocks     []iterate.Block
	neighbours [][]iterate.Neighbour
	ghosts     [][]float64
}

func newSequential(blocks []iterate.Block) (*sequential, error) {
	w := &sequential{blocks: blocks}
	for _, b := range blocks {
		positions := []int{-1}
		n := b.Neighbours()
		for _, q := range n {
			positions = append(positions, q.Receive...)
		}
		w.neighbours, w.ghosts = append(w.neighbours, n), append(w.ghosts, make([]float64, slices.Max(positions)+1))
	}
	for r := range blocks {
		for _, q := range w.neighbours[r] {
			other := w.neighbour(q.Rank, iterate.Rank(r))
			if other == nil {
				return nil, fmt.Errorf("rank %d has rank %d as a neighbour, but not the reverse", r, q.Rank)
			}
			if len(other.Receive) != len(q.Send) {
				return nil, fmt.Errorf("rank %d sends %d values to rank %d, which receives %d",
					r, len(q.Send), q.Rank, len(other.Receive))
			}
		}
	}
	return w, nil
}

// neighbour returns the entry of rank q among the neighbours of rank r, nil if there is none.
func (w *sequential) neighbour(r, q iterate.Rank) *iterate.Neighbour {
	i := slices.IndexFunc(w.neighbours[r], func(n iterate.Neighbour) bool { return n.Rank == q })
	if i < 0 {
		return nil
	}
	return &w.neighbours[r][i]
}

func (w *sequential) start() [][]float64 {
	x := make([][]float64, len(w.blocks))
	for r, b := range w.blocks {
		x[r] = make([]float64, b.Values())
		b.Start(x[r])
	}
	return x
}

// relax returns F(x).
func (w *sequential) relax(x [][]float64) [][]float64 {
	next := make([][]float64, len(x))
	for r, b := range w.blocks {
		w.readGhosts(r, x)
		next[r] = make([]float64, len(x[r]))
		b.Relax(next[r], x[r], w.ghosts[r])
	}
	return next
}

// readGhosts copies the values of x that block r reads to its ghosts.
func (w *sequential) readGhosts(r int, x [][]float64) {
	for _, q := range w.neighbours[r] {
		send := w.neighbour(q.Rank, iterate.Rank(r)).Send
		for i, at := range q.Receive {
			w.ghosts[r][at] = x[q.Rank][send[i]]
		}
	}
}

// residual returns a lower bound of ‖x − F(x)‖₂: the computed norm less its rounding error.
func (w *sequential) residual(x [][]float64) float64 {
	sum := 0.0
	for r, f := range w.relax(x) {
		for i, v := range f {
			d := x[r][i] - v
			sum += d * d
		}
	}
	return math.Sqrt(sum) * (1 - 1e-12)
}

// checkPure returns an error if Relax changes its arguments or depends on anything else.
func (w *sequential) checkPure() error {
	x := w.start()
	for range 3 {
		next := make([][]float64, len(x))
		for r, b := range w.blocks {
			w.readGhosts(r, x)
			values, ghosts := slices.Clone(x[r]), slices.Clone(w.ghosts[r])
			again := make([]float64, len(x[r]))
			for i := range again {
				again[i] = math.NaN() // the previous contents of next must not matter
			}
			next[r] = make([]float64, len(x[r]))
			for _, dst := range [][]float64{next[r], again} {
				b.Relax(dst, x[r], w.ghosts[r])
				if !sameBits(values, x[r]) || !sameBits(ghosts, w.ghosts[r]) {
					return fmt.Errorf("Relax of rank %d changes x or ghosts; it may write to next only", r)
				}
			}
			if !sameBits(again, next[r]) {
				return fmt.Errorf("Relax of rank %d gives two results for the same x and ghosts; it must keep no state",
					r)
			}
		}
		x = next
	}
	return nil
}
