package solvertest

import (
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Network is an iteratetest.Network of peers on a grid.
type Network struct {
	*iteratetest.Network
	Peers []problem.Peer
	// Stepped, unless nil, is called with the values of a peer's box at the end of a time step.
	Stepped func(rank int, r iterate.StepResult, u []float64)
}

// NewNetwork returns a network with the peers that build returns.
func NewNetwork(seed uint64,
	build func(problem.Config) (problem.Peer, error), configs []problem.Config) (*Network, error) {
	n := &Network{}
	var all []iterate.Peer
	for _, c := range configs {
		p, err := build(c)
		if err != nil {
			return nil, err
		}
		n.Peers, all = append(n.Peers, p), append(all, p)
	}
	n.Network = iteratetest.NewNetwork(seed, configs[0].Scheme, all)
	n.Network.Stepped = func(rank int, r iterate.StepResult) {
		if n.Stepped != nil {
			u := make([]float64, n.Peers[rank].Box().Points())
			n.Peers[rank].Solution(u)
			n.Stepped(rank, r, u)
		}
	}
	return n, nil
}

// Assemble returns the assembled answer of all boxes.
func (n *Network) Assemble(p *problem.Problem) []float64 {
	u := make([]float64, p.Points())
	for _, q := range n.Peers {
		v := make([]float64, q.Box().Points())
		q.Solution(v)
		for d, idx := range q.Box().Each {
			u[p.Dense(idx)] = v[d]
		}
	}
	return u
}
