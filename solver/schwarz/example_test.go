package schwarz_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/schwarz"
)

// membrane is a membrane over the unit square, fixed at 0 on the boundary and held up by a paraboloid.
func membrane() *problem.Problem {
	return &problem.Problem{
		Name: "membrane", Dimension: 2, N: [3]int{31, 31, 1}, Hi: problem.Point{1, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Boundary:  func(problem.Point) float64 { return 0 },
		Obstacle: func(q problem.Point) float64 {
			x, y := q[0]-0.5, q[1]-0.5
			return 0.5 - 4*(x*x+y*y)
		},
	}
}

// Four asynchronous peers solve on boxes that overlap by two layers, and exchange values over a simulated network that
// loses messages.
func ExampleMethod_New() {
	boxes, err := problem.Boxes(membrane().N, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	scheme := iterate.Asynchronous()
	var peers []iterate.Peer
	for rank := range iterate.Rank(4) {
		p, err := schwarz.Method{}.New(problem.Config{
			Problem: membrane(), Partition: boxes, Rank: rank, Scheme: scheme, Tolerance: 1e-8,
			Method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 2, InnerCycles: 1},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		peers = append(peers, p)
	}
	n := iteratetest.NewNetwork(1, scheme, peers)
	n.Loss = 0.1
	if err := n.Run(); err != nil {
		fmt.Println(err)
		return
	}
	for rank, p := range peers {
		o := p.Outcome()
		fmt.Printf("rank %d: %s, residual below 1e-8: %v\n", rank, o.Reason, o.Residual <= 1e-8)
	}
	// Output:
	// rank 0: converged, residual below 1e-8: true
	// rank 1: converged, residual below 1e-8: true
	// rank 2: converged, residual below 1e-8: true
	// rank 3: converged, residual below 1e-8: true
}

// Links returns the peers whose extended boxes intersect, also across a corner.
func ExampleMethod_Links() {
	boxes, err := problem.Boxes(membrane().N, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := problem.Config{
		Problem: membrane(), Partition: boxes, Scheme: iterate.Asynchronous(),
		Method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 2},
	}
	for _, l := range (schwarz.Method{}).Links(&c, 0) {
		fmt.Println("rank", l.Rank, "asynchronous:", l.Asynchronous)
	}
	// Output:
	// rank 1 asynchronous: true
	// rank 2 asynchronous: true
	// rank 3 asynchronous: true
}
