package iteratetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

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

// values returns the values of all peers.
func (w *sequential) values(peers []iterate.Peer) [][]float64 {
	x := make([][]float64, len(peers))
	for r, p := range peers {
		x[r] = make([]float64, w.blocks[r].Values())
		p.Solution(x[r])
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
