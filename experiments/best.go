package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// bestOf compares the best synchronous with the best asynchronous method on the clusters of the schemes experiment,
// and with one machine alone. FAS needs grids that halve: its grids have a point less an axis, which its name says.
func bestOf(ctx context.Context, r *measure.Run) error {
	for _, c := range []struct {
		name string
		of   simulation
	}{
		{"64³, 16 peers, one 5 times slower", simulation{
			n: 64, peers: 16, near: 50 * time.Microsecond, slow: map[int]float64{8: 5}, tol: 1e-6, boxes: true,
		}},
		{"128³, two sites, round trip 20 ms, 2 peers each", simulation{
			n: 128, peers: 4, sites: 2, near: 50 * time.Microsecond, apart: 10 * time.Millisecond, tol: 1e-6, boxes: true,
		}},
	} {
		if err := compareBest(ctx, r, c.name, c.of); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a method that may be the best of its kind.
type candidate struct {
	name   string
	method problem.MethodConfig
}

// methodsOf returns the methods for a kind of scheme. Richardson is the slowest of each and is left out.
func methodsOf(asynchronous bool) []candidate {
	schwarz := problem.MethodConfig{Name: problem.Schwarz, Overlap: 2}
	once := schwarz
	once.InnerCycles = 1
	far := once
	far.Overlap = 8
	all := []candidate{
		{name: "Schwarz", method: schwarz},
		{name: "Schwarz, one inner cycle", method: once},
		{name: "Schwarz, one inner cycle, overlap 8", method: far},
		{name: "FAS", method: problem.MethodConfig{Name: problem.FAS}},
	}
	if asynchronous {
		return all
	}
	return append(all, candidate{name: "multigrid", method: problem.MethodConfig{Name: problem.Multigrid}},
		candidate{name: "SOR", method: problem.MethodConfig{Name: problem.SOR}})
}

// measured is the virtual time of a method.
type measured struct {
	method  string
	seconds float64
}

// compareBest adds the times of all methods on a cluster, the best of each kind, and those of one fast machine.
func compareBest(ctx context.Context, r *measure.Run, name string, on simulation) error {
	best := map[bool]measured{}
	for _, asynchronous := range []bool{false, true} {
		scheme := fixed(iterate.Synchronous())
		if asynchronous {
			scheme = fixed(iterate.Asynchronous())
		}
		for _, c := range methodsOf(asynchronous) {
			v, err := on.with(scheme, c.method).run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, c.name, err)
			}
			r.Add(measure.One(fmt.Sprintf("%s: %s, %s", name, kindOf(asynchronous), c.name), "s", v.seconds))
			if b, ok := best[asynchronous]; !ok || v.seconds < b.seconds {
				best[asynchronous] = measured{c.name, v.seconds}
			}
		}
	}
	alone := on
	alone.peers, alone.sites, alone.slow = 1, 1, nil
	one, err := alone.with(fixed(iterate.Synchronous()), problem.MethodConfig{Name: problem.Multigrid}).run(ctx)
	if err != nil {
		return fmt.Errorf("%s, one machine: %w", name, err)
	}
	r.Add(measure.One(name+": best synchronous method, "+best[false].method, "s", best[false].seconds).
		Against("best asynchronous method, "+best[true].method, []float64{best[true].seconds}).
		Against("one fast machine alone, multigrid", []float64{one.seconds}))
	return nil
}

func kindOf(asynchronous bool) string {
	if asynchronous {
		return "asynchronous"
	}
	return "synchronous"
}
