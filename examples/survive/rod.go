package main

import "github.com/p2pdc/p2pdc/solver/iterate"

const (
	points = 48
	loss   = 0.02 // of heat at each point, to the surroundings
)

// part is the points lo to hi−1 of a rod that is heated in the middle and cold at its ends: (2 + loss)·x_i = x_{i−1} +
// x_{i+1} + b_i. Jacobi's method is a contraction in the maximum norm, so every scheme converges.
type part struct {
	lo, hi int
	rank   iterate.Rank
	peers  int
}

func (p *part) Values() int     { return p.hi - p.lo }
func (p *part) Start([]float64) {} // from zeros

// Neighbours are the peers of the adjacent parts: ghost 0 lies on the left, ghost 1 on the right.
func (p *part) Neighbours() (out []iterate.Neighbour) {
	if p.rank > 0 {
		out = append(out, iterate.Neighbour{Rank: p.rank - 1, Send: []int{0}, Receive: []int{0}})
	}
	if int(p.rank) < p.peers-1 {
		out = append(out, iterate.Neighbour{Rank: p.rank + 1, Send: []int{p.Values() - 1}, Receive: []int{1}})
	}
	return out
}

func (p *part) Relax(next, x, ghosts []float64) {
	for i := range next {
		sum := source(p.lo + i)
		switch {
		case i > 0:
			sum += x[i-1]
		case p.rank > 0:
			sum += ghosts[0]
		}
		switch {
		case i < len(x)-1:
			sum += x[i+1]
		case int(p.rank) < p.peers-1:
			sum += ghosts[1]
		}
		next[i] = sum / (2 + loss)
	}
}

func source(i int) float64 {
	if i >= points*2/5 && i < points*3/5 {
		return 1
	}
	return 0
}

// parts divides the rod among peers.
func parts(peers int) (out []iterate.Block) {
	for r := range peers {
		out = append(out, &part{
			lo: points * r / peers, hi: points * (r + 1) / peers, rank: iterate.Rank(r), peers: peers,
		})
	}
	return out
}
