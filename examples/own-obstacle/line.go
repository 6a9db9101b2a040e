package main

import "github.com/p2pdc/p2pdc/solver/iterate"

// newLine returns the iteration x[i] ← (x[i−1] + x[i+1])/4 + 1 on a line of v[0] values whose ends are fixed at 2. Every
// value converges to 2.
func newLine(v []float64) (iterate.FixedPoint, error) {
	return iterate.FixedPoint{Unknowns: int(v[0]), Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		return line{cuts[rank+1] - cuts[rank], rank, len(cuts) - 1}, nil
	}}, nil
}

// line is one peer's part of it.
type line struct {
	values int
	rank   iterate.Rank
	peers  int
}

// Values implements iterate.Block.
func (l line) Values() int { return l.values }

// Neighbours implements iterate.Block.
func (l line) Neighbours() (out []iterate.Neighbour) {
	if l.rank > 0 {
		out = append(out, iterate.Neighbour{Rank: l.rank - 1, Send: []int{0}, Receive: []int{0}})
	}
	if int(l.rank) < l.peers-1 {
		out = append(out, iterate.Neighbour{Rank: l.rank + 1, Send: []int{l.values - 1}, Receive: []int{len(out)}})
	}
	return out
}

// Start implements iterate.Block.
func (line) Start(x []float64) { clear(x) }

// Relax implements iterate.Block.
func (l line) Relax(next, x, ghosts []float64) {
	left, end := 2.0, 2.0
	if l.rank > 0 {
		left = ghosts[0]
	}
	if int(l.rank) < l.peers-1 {
		end = ghosts[len(ghosts)-1]
	}
	for i, v := range x {
		right := end
		if i+1 < len(x) {
			right = x[i+1]
		}
		next[i] = (left+right)/4 + 1
		left = v
	}
}
