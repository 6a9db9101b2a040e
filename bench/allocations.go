package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

const (
	allocationsN = 48
	fewSweeps    = 300
	manySweeps   = 2300
)

// allocations runs two peers over UDP on the loopback interface within this process, for few sweeps
// and for many. The difference is what the sweeps and their halo exchange allocated.
func allocations(ctx context.Context, r *measure.Run) error {
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		var perSweep []float64
		for range r.Repeat(min(r.Rounds, 5)) {
			few, err := countAllocations(ctx, scheme, fewSweeps)
			if err != nil {
				return err
			}
			many, err := countAllocations(ctx, scheme, manySweeps)
			if err != nil {
				return err
			}
			perSweep = append(perSweep, (many-few)/(2*(manySweeps-fewSweeps)))
		}
		// The runtime starts a goroutine now and then, independently of the sweeps.
		r.Add(measure.Over(scheme.Name()+", two peers over UDP", "per sweep and peer", perSweep).AtMost(0.01))
	}
	return nil
}

// countAllocations returns the allocations of a run of two peers.
func countAllocations(ctx context.Context, scheme iterate.Scheme, sweeps iterate.Iteration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	membrane, err := measure.Membrane(allocationsN)
	if err != nil {
		return 0, err
	}
	part, err := problem.Slabs(membrane.N, 2, nil)
	if err != nil {
		return 0, err
	}
	nodes, err := connectedNodes(ctx)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return 0, err
	}
	peers, err := both(func(i int) (*runner.Runner, error) {
		return runner.New(ctx, runner.Config{
			New:  solver.New,
			Node: runner.Over(nodes[i]), Names: []string{"0", "1"},
			Solver: problem.Config{
				Problem: membrane, Partition: part, Rank: iterate.Rank(i), Scheme: scheme, Tolerance: 1e-12,
				MaxSweeps: sweeps, CheckEvery: 1 << 40,
			},
		})
	})
	if err != nil {
		return 0, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = both(func(i int) (runner.Result, error) { return peers[i].Run(ctx) })
	runtime.ReadMemStats(&after)
	for _, p := range peers {
		p.Close()
	}
	return float64(after.Mallocs - before.Mallocs), err
}

// connectedNodes makes nodes "0" and "1" that are connected to each other, with at most one further
// rail each.
func connectedNodes(ctx context.Context, rails ...driver.Rail) ([]*driver.Node, error) {
	var nodes []*driver.Node
	for i := range 2 {
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		if err != nil {
			return nodes, err
		}
		n, err := driver.New(driver.Config{
			Name: fmt.Sprint(i), Plain: true, Listen: "127.0.0.1:0", Run: "bench",
			Rails:   append([]driver.Rail{{Link: link}}, rails[min(i, len(rails)):min(i+1, len(rails))]...),
			Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
			// Heartbeats go by the clock, not by sweeps: none is sent during these runs.
			PeerTimeout: time.Hour, Heartbeat: 10 * time.Minute,
		})
		if err != nil {
			return nodes, errors.Join(err, link.Close())
		}
		nodes = append(nodes, n)
	}
	_, err := both(func(i int) (struct{}, error) {
		return struct{}{}, nodes[i].Connect(ctx, fmt.Sprint(1-i), nodes[1-i].ControlAddr().String())
	})
	return nodes, err
}
