package iterate_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// ring is one unknown of x_i = (x_{i−1} + x_{i+1})/3 + 1 on a ring of peers. The solution is 3
// everywhere.
type ring struct{ left, right iterate.Rank }

func (r ring) Values() int                     { return 1 }
func (r ring) Start(x []float64)               { x[0] = 0 }
func (r ring) Relax(next, _, ghosts []float64) { next[0] = (ghosts[0]+ghosts[1])/3 + 1 }

func (r ring) Neighbours() []iterate.Neighbour {
	return []iterate.Neighbour{
		{Rank: r.left, Send: []int{0}, Receive: []int{0}},
		{Rank: r.right, Send: []int{0}, Receive: []int{1}},
	}
}

// A Block runs asynchronously over a simulated network that loses and duplicates messages.
func Example() {
	const peers = 4
	scheme := iterate.Asynchronous()
	var run []iterate.Peer
	for r := range iterate.Rank(peers) {
		p, err := iterate.NewPeer(
			iterate.Config{Rank: r, Peers: peers, Scheme: scheme, Tolerance: 1e-6},
			ring{left: (r + peers - 1) % peers, right: (r + 1) % peers},
		)
		if err != nil {
			fmt.Println(err)
			return
		}
		run = append(run, p)
	}
	n := iteratetest.NewNetwork(1, scheme, run)
	n.Loss, n.Duplicate = 0.2, 0.1
	if err := n.Run(); err != nil {
		fmt.Println(err)
		return
	}
	for r, p := range run {
		x := make([]float64, 1)
		p.Solution(x)
		fmt.Printf("peer %d: %s, x = %.4f\n", r, p.Outcome().Reason, x[0])
	}
	// Output:
	// peer 0: converged, x = 3.0000
	// peer 1: converged, x = 3.0000
	// peer 2: converged, x = 3.0000
	// peer 3: converged, x = 3.0000
}
