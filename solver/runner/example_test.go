package runner_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// newNode starts a node on the loopback interface.
func newNode(name string) *driver.Node {
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		log.Fatal(err)
	}
	n, err := driver.New(driver.Config{
		Name: name, Run: "example", Plain: true, Listen: "127.0.0.1:0",
		Rails: []driver.Rail{{Link: link}}, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
	})
	if err != nil {
		log.Fatal(err)
	}
	return n
}

// Two peers of this process solve a membrane problem and exchange faces over UDP on the loopback interface.
func Example() {
	ctx := context.Background()
	nodes := []*driver.Node{newNode("a"), newNode("b")}
	defer func() { _, _ = nodes[0].Close(), nodes[1].Close() }()
	// Of two nodes, the one with the lower name leaves dialling to the other for a second. So b dials a.
	if err := nodes[1].Connect(ctx, "a", nodes[0].ControlAddr().String()); err != nil {
		log.Fatal(err)
	}
	if err := nodes[0].Connect(ctx, "b", ""); err != nil {
		log.Fatal(err)
	}
	p := &problem.Problem{
		Name: "membrane", Dimension: 2, N: [3]int{15, 15, 1}, Hi: problem.Point{1, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Boundary:  func(problem.Point) float64 { return 0 },
		Obstacle:  func(q problem.Point) float64 { return q[0]*(1-q[0])*q[1]*(1-q[1]) - 0.01 },
	}
	slabs, err := problem.Slabs(p.N, 2, nil)
	if err != nil {
		log.Fatal(err)
	}
	var peers sync.WaitGroup
	results := make([]runner.Result, 2)
	for rank, node := range nodes {
		peers.Go(func() {
			r, err := runner.New(ctx, runner.Config{
				New: solver.New, Node: runner.Over(node), Names: []string{"a", "b"},
				Solver: problem.Config{
					Problem: p, Partition: slabs, Rank: iterate.Rank(rank),
					Scheme: iterate.Synchronous(), Tolerance: 1e-6,
				},
			})
			if err != nil {
				log.Fatal(err)
			}
			defer r.Close()
			if results[rank], err = r.Run(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	peers.Wait()
	for rank, r := range results {
		fmt.Printf("rank %d: %s after %d sweeps\n", rank, r.Reason, r.Sweeps)
	}
	// Output:
	// rank 0: converged after 80 sweeps
	// rank 1: converged after 80 sweeps
}

// Three goroutines share ten pieces of work.
func ExamplePool() {
	pool := runner.NewPool(3)
	defer pool.Close()
	var sum atomic.Int64
	pool.For(10, func(i int) { sum.Add(int64(i)) })
	fmt.Println(pool.Threads(), sum.Load())
	// Output: 3 45
}
