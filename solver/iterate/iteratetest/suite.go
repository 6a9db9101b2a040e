package iteratetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Suite is what the blocks of an iteration are tested with. Blocks is required.
type Suite struct {
	Blocks    []iterate.Block   // of the peers, by rank; they are used again and again
	Tolerance float64           // relative residual of the runs; 0: 1e-6
	MaxSweeps iterate.Iteration // of a peer, after which a run counts as not converging; 0: 100 000
	Seeds     int               // networks for each scheme; 0: 4
	// LockstepOnly leaves out schemes that read old values, for an iteration that converges only in
	// lockstep.
	LockstepOnly bool
}

// Check returns an error if a block breaks the contract of iterate.Block, or if a run breaks what a run
// promises:
//
//  1. two neighbours exchange as many values as each other expects;
//  2. Relax depends on its arguments alone, and changes and keeps none of them;
//  3. in lockstep every run gives the bits of the sequential iteration;
//  4. in every scheme, over networks that lose, double and reorder halos, a run converges, and the
//     assembled answer meets the tolerance when its residual is computed anew.
func (s Suite) Check() error {
	if s.Tolerance == 0 {
		s.Tolerance = 1e-6
	}
	if s.MaxSweeps == 0 {
		s.MaxSweeps = 100_000
	}
	if s.Seeds == 0 {
		s.Seeds = 4
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
	schemes := []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Hybrid(make([]int, len(clusters)))}
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

// run makes one run over a network and judges its end.
func (s Suite) run(w *sequential, scheme iterate.Scheme, seed uint64) error {
	var peers []iterate.Peer
	for r, b := range s.Blocks {
		p, err := iterate.NewPeer(iterate.Config{
			Rank: iterate.Rank(r), Peers: len(s.Blocks), Scheme: scheme, Tolerance: s.Tolerance, MaxSweeps: s.MaxSweeps,
		}, b)
		if err != nil {
			return err
		}
		peers = append(peers, p)
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
			return fmt.Errorf("peer %d ended after %d sweeps: %s, with a residual of %.3g", r, o.Sweeps, o.Reason, o.Residual)
		}
		x[r] = make([]float64, s.Blocks[r].Values())
		p.Solution(x[r])
	}
	if residual := w.residual(x) / w.residual(w.start()); residual > s.Tolerance {
		return fmt.Errorf("the run ended with a residual of %.17g, above the tolerance of %g", residual, s.Tolerance)
	}
	if scheme.Lockstep() {
		want := w.start()
		for range peers[0].Outcome().Iterate {
			want = w.relax(want)
		}
		for r := range x {
			if !slices.EqualFunc(x[r], want[r], func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
				return fmt.Errorf("the values of peer %d after %d sweeps are not those of the sequential iteration", r, peers[0].Outcome().Iterate)
			}
		}
	}
	return nil
}

// whole is the iteration on one machine: all blocks, each with the newest values of the others.
type sequential struct {
	blocks     []iterate.Block
	neighbours [][]iterate.Neighbour
	ghosts     [][]float64
}

func newSequential(blocks []iterate.Block) (*sequential, error) {
	if len(blocks) == 0 {
		return nil, errors.New("iteratetest: no blocks")
	}
	w := &sequential{blocks: blocks}
	for _, b := range blocks {
		ghosts := 0
		n := b.Neighbours()
		for _, q := range n {
			for _, at := range q.Receive {
				ghosts = max(ghosts, at+1)
			}
		}
		w.neighbours, w.ghosts = append(w.neighbours, n), append(w.ghosts, make([]float64, ghosts))
	}
	for r := range blocks {
		for _, q := range w.neighbours[r] {
			if q.Rank < 0 || int(q.Rank) >= len(blocks) {
				return nil, fmt.Errorf("rank %d has rank %d as a neighbour, of %d blocks", r, q.Rank, len(blocks))
			}
			other := w.from(int(q.Rank), iterate.Rank(r))
			if other == nil || len(other.Receive) != len(q.Send) || len(other.Send) != len(q.Receive) {
				return nil, fmt.Errorf("ranks %d and %d do not expect the values that the other one sends", r, q.Rank)
			}
		}
	}
	return w, nil
}

// from returns what rank r says of its neighbour q, nil if it has none of that rank.
func (w *sequential) from(r int, q iterate.Rank) *iterate.Neighbour {
	for i := range w.neighbours[r] {
		if w.neighbours[r][i].Rank == q {
			return &w.neighbours[r][i]
		}
	}
	return nil
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
		for _, q := range w.neighbours[r] {
			send := w.from(int(q.Rank), iterate.Rank(r)).Send
			for i, at := range q.Receive {
				w.ghosts[r][at] = x[q.Rank][send[i]]
			}
		}
		next[r] = make([]float64, len(x[r]))
		b.Relax(next[r], x[r], w.ghosts[r])
	}
	return next
}

// residual returns ‖x − F(x)‖₂, the sum rounded once for each value.
func (w *sequential) residual(x [][]float64) float64 {
	sum := 0.0
	for r, f := range w.relax(x) {
		for i, v := range f {
			d := x[r][i] - v
			sum += d * d
		}
	}
	return math.Sqrt(sum) * (1 - 1e-12) // the rounding of this sum is no fault of the run
}

// checkPure refuses a Relax that changes its arguments or depends on anything else.
func (w *sequential) checkPure() error {
	x := w.start()
	for range 3 {
		first := w.relax(x)
		for r, b := range w.blocks {
			values, ghosts, again := slices.Clone(x[r]), slices.Clone(w.ghosts[r]), make([]float64, len(x[r]))
			for i := range again {
				again[i] = math.NaN() // what was in next must not matter
			}
			b.Relax(again, x[r], w.ghosts[r])
			if !slices.Equal(values, x[r]) || !slices.Equal(ghosts, w.ghosts[r]) {
				return fmt.Errorf("Relax of rank %d changes x or ghosts", r)
			}
			if !slices.Equal(again, first[r]) {
				return fmt.Errorf("Relax of rank %d gives two results for the same x and ghosts", r)
			}
		}
		x = first
	}
	return nil
}
