// Package calibration makes the description of the machine that it runs on, by measuring.
package calibration

import (
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/solver"
)

// What the rate of relaxation is measured on: a grid whose two arrays are beyond the caches
// of a core, for about so long, several times; the fastest counts.
const (
	points = 96
	pass   = 60 * time.Millisecond
	passes = 3
)

// ThisMachine describes the machine that the program runs on as a cluster of processes that
// talk over loopback. The rate of relaxation is measured, in about a quarter of a second;
// what loopback costs is not.
func ThisMachine() (*cluster.Description, error) {
	rate, err := relaxation()
	if err != nil {
		return nil, fmt.Errorf("this-machine: %w", err)
	}
	cost := cluster.Cost{Message: 2 * time.Microsecond, Segment: 300 * time.Nanosecond, Byte: 0.1}
	return &cluster.Description{
		Name:  "this-machine",
		About: fmt.Sprintf("Processes of this machine (%d processors), each as if it had processors of its own, over loopback.", runtime.NumCPU()),
		Sources: []string{
			fmt.Sprintf("relaxation: measured here, %d³ points, one thread, fastest of %d", points, passes),
			"loopback: usual figures of UDP with segmentation offload, not measured here",
		},
		Classes: []cluster.Class{{Name: "process", Cores: 2, Relaxation: rate, Send: cost, Receive: cost}},
		Networks: []cluster.Network{{
			Name: "loopback", Kind: cluster.Ether, Rate: 6e9, Latency: 4 * time.Microsecond, Queue: 4 << 20, MTU: 65535, Frame: 14,
		}},
		Sites: []cluster.Site{{Name: "here", Network: "loopback", Machines: []cluster.Group{{Class: "process"}}}},
	}, nil
}

// relaxation is how many points a second one thread relaxes.
func relaxation() (float64, error) {
	p := &solver.Problem{
		Name: "calibration", Dimension: 3, N: [3]int{points, points, points}, Hi: solver.Point{1, 1, 1}, Diffusion: solver.Coefficient{Value: 1},
		Obstacle: func(solver.Point) float64 { return -1 },
		Boundary: func(solver.Point) float64 { return 0 },
		Source:   solver.Coefficient{Value: -1},
	}
	part, err := solver.Slabs(p.N, 1, nil)
	if err != nil {
		return 0, err
	}
	peer, err := solver.New(solver.Config{
		Problem: p, Partition: part, Scheme: solver.Synchronous(), Tolerance: 1e-12,
		Method: solver.MethodConfig{Together: 1}, // as a peer among others
	})
	if err != nil {
		return 0, err
	}
	best := 0.0
	for range passes {
		relaxed, began := 0, time.Now()
		for time.Since(began) < pass {
			op := peer.Next(time.Since(began))
			switch op.Kind {
			case solver.OpRelax:
				peer.Relax(op)
				relaxed += op.Points
			case solver.OpDone, solver.OpFail:
				return 0, fmt.Errorf("the run to be measured ended after %d points: %v", relaxed, op.Err)
			}
		}
		best = max(best, float64(relaxed)/time.Since(began).Seconds())
	}
	return best, nil
}
