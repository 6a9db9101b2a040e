package simulate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// twoSites returns a model of two clusters of PCs, 20 ms from each other over a wide-area link.
func twoSites(machines int) *cluster.Model {
	pcs := []cluster.Group{{Class: "pc"}}
	d := &cluster.Description{
		Name:    "two sites",
		Classes: []cluster.Class{{Name: "pc", Cores: 2, Relaxation: 1e6}},
		Networks: []cluster.Network{{
			Name: "gigabit", Kind: cluster.Ether, Rate: 125e6, Latency: 20 * time.Microsecond, Queue: 512 << 10, MTU: 1500,
			Frame: 38,
		}},
		Sites: []cluster.Site{{Name: "north", Network: "gigabit", Machines: pcs}, {Name: "south", Network: "gigabit",
			Machines: pcs}},
		WAN: []cluster.WANLink{{
			Between: [2]string{"north", "south"}, Rate: 12.5e6, Latency: 20 * time.Millisecond, Queue: 1 << 20,
		}},
	}
	if err := d.Check(); err != nil {
		log.Fatal(err)
	}
	m, err := d.Model(machines)
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// membrane returns a solve of the membrane problem with 24 points along each axis by four peers.
func membrane(scheme iterate.Scheme) problem.Config {
	builtin, err := problems.Lookup("membrane")
	if err != nil {
		log.Fatal(err)
	}
	p, err := builtin.Make([3]int{24, 24, 24})
	if err != nil {
		log.Fatal(err)
	}
	slabs, err := problem.Slabs(p.N, 4, nil)
	if err != nil {
		log.Fatal(err)
	}
	return problem.Config{Problem: p, Partition: slabs, Scheme: scheme, Tolerance: 1e-4}
}

// In the synchronous scheme every machine waits for the wide-area link in every sweep. In the
// asynchronous scheme none waits, and a sweep may read values of earlier sweeps.
func ExampleRun() {
	model := twoSites(4)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		r, err := simulate.Run(context.Background(), simulate.Config{Model: model, Solver: membrane(scheme)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %v after %.1f s and %.0f sweeps, residual below 1e-4: %v\n",
			scheme.Name(), r.Reason, r.Virtual.Seconds(), r.Sweeps(), r.Residual <= 1e-4)
	}
	// Output:
	// sync: converged after 8.6 s and 401 sweeps, residual below 1e-4: true
	// async: converged after 1.6 s and 430 sweeps, residual below 1e-4: true
}

// A built-in cluster is found by its name, and any other by the name of its YAML file.
func ExampleRun_builtin() {
	f, err := clusterfile.Open("graphene-ib")
	if err != nil {
		log.Fatal(err)
	}
	model, err := f.Model(4)
	if err != nil {
		log.Fatal(err)
	}
	r, err := simulate.Run(context.Background(), simulate.Config{Model: model, Solver: membrane(iterate.Synchronous())})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, %.0f sweeps, %d messages of rank 1\n", r.Reason, r.Sweeps(), r.Ranks[1].Messages)
	// Output:
	// converged, 401 sweeps, 826 messages of rank 1
}
