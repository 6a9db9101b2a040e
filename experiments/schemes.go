package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/sim"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pointTime is the time of a point in these experiments: 0.4 GLUP/s, what the memory of one core
// allows (bench -only kernels).
const pointTime = 2.5 // nanoseconds

// simulation is a run in virtual time of the real protocol and numerics on a model of the network.
type simulation struct {
	n, peers int
	sites    int           // the peers are spread over as many sites in a row
	apart    time.Duration // latency between sites
	near     time.Duration // latency within a site
	jitter   time.Duration // random, on top of it; 0: a quarter of it
	slow     map[int]float64
	scheme   func(clusters []int) iterate.Scheme
	method   problem.MethodConfig
	boxes    bool // instead of slabs
	tol      float64
	most     iterate.Iteration // sweeps after which a run may end without converging; 0: it must converge
	seed     uint64
}

// outcome is the outcome of a simulation.
type outcome struct {
	seconds   float64 // virtual
	sweeps    float64 // points relaxed / points
	iterates  float64 // largest number of iterates of a peer
	work      float64 // largest work of a peer, in sweeps over its box
	converged bool
}

func fixed(s iterate.Scheme) func([]int) iterate.Scheme {
	return func([]int) iterate.Scheme { return s }
}

// with returns the simulation with another scheme and method.
func (e simulation) with(scheme func([]int) iterate.Scheme, m problem.MethodConfig) simulation {
	e.scheme, e.method = scheme, m
	return e
}

// run runs the simulation, unless ctx has ended.
func (e simulation) run(ctx context.Context) (outcome, error) {
	p, err := measure.Membrane(e.n)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return outcome{}, err
	}
	s := &sim.Scenario{
		Seed: 2*e.seed + 2, Problem: p, What: fmt.Sprintf("membrane %d³", e.n), Tolerance: e.tol, MTU: 9000,
		Method: e.method,
		Repeat: 4 * max(e.near, e.apart), Patience: 24 * time.Hour, MaxSweeps: e.most,
	}
	s.Partition, err = problem.Slabs(p.N, e.peers, nil)
	if e.boxes {
		s.Partition, err = problem.Boxes(p.N, e.peers)
	}
	if err != nil {
		return outcome{}, err
	}
	clusters := make([]int, e.peers)
	for r := range clusters {
		clusters[r] = r * max(1, e.sites) / e.peers
	}
	if e.sites > 1 {
		s.Clusters = clusters
		s.Sites = &sim.Sites{Of: clusters, Apart: e.apart - e.near}
	}
	s.Scheme = e.scheme(clusters)
	s.After = mptest.Faults{Delay: e.near, Jitter: cmp.Or(e.jitter, e.near/4)}
	s.Faults, s.Control = s.After, sim.ControlFaults{Delay: e.near}
	for r := range e.peers {
		// A point takes whole nanoseconds: the slowdown has the fraction.
		s.Costs = append(s.Costs, sim.Cost{Point: 1, Slow: pointTime * max(1, e.slow[r]), Send: 2 * time.Microsecond})
	}
	r, err := sim.Play(s)
	if err != nil {
		return outcome{}, err
	}
	reason := r.Outcomes[0].Reason
	if reason != iterate.Converged && e.most == 0 {
		return outcome{}, fmt.Errorf("the run ended because it %v", reason)
	}
	v := outcome{
		seconds: r.Virtual.Seconds(), sweeps: float64(r.Points) / float64(p.Points()),
		converged: reason == iterate.Converged,
	}
	for _, o := range r.Outcomes {
		v.iterates, v.work = max(v.iterates, float64(o.Sweeps)), max(v.work, o.Work)
	}
	return v, nil
}

// schemes compares the schemes of iteration in virtual time.
func schemes(ctx context.Context, r *measure.Run) error {
	if err := oldValues(ctx, r); err != nil {
		return err
	}
	if err := boundedDelay(ctx, r); err != nil {
		return err
	}
	sync, async := fixed(iterate.Synchronous()), fixed(iterate.Asynchronous())
	richardson := problem.MethodConfig{Name: problem.Richardson}
	multigrid := problem.MethodConfig{Name: problem.Multigrid}
	schwarz := problem.MethodConfig{Name: problem.Schwarz, Overlap: 2}
	slow := simulation{n: 64, peers: 16, near: 50 * time.Microsecond, slow: map[int]float64{8: 5}, tol: 1e-6}
	boxes := slow
	boxes.boxes = true
	rough := simulation{
		n: 128, peers: 4, sites: 2, near: 50 * time.Microsecond, apart: 10 * time.Millisecond, tol: 1e-4,
	}
	far := rough
	far.tol = 1e-6
	const (
		slowName = "64³, 16 peers, one in the middle 5 times slower, "
		farName  = "128³, two sites, round trip 20 ms, 2 peers each, "
	)
	for _, c := range []struct {
		name        string
		sync, async simulation
		target      float64 // of the ratio; 0: none
	}{
		{slowName + "Richardson", slow.with(sync, richardson), slow.with(async, richardson), 2.5},
		{farName + "to 1e-4, Richardson", rough.with(sync, richardson), rough.with(async, richardson), 4},
		{slowName + "Schwarz", boxes.with(sync, schwarz), boxes.with(async, schwarz), 0},
		{farName + "to 1e-6, multigrid against Schwarz", far.with(sync, multigrid), far.with(async, schwarz), 0},
		{farName + "to 1e-6, Schwarz", far.with(sync, schwarz), far.with(async, schwarz), 0},
	} {
		if err := compareSchemes(ctx, r, c.name, c.sync, c.async, c.target); err != nil {
			return err
		}
	}
	return nil
}

// compareSchemes runs two simulations with the same seeds and adds the ratio of virtual times.
func compareSchemes(ctx context.Context, r *measure.Run, name string, sync, async simulation, target float64) error {
	rounds := min(r.Rounds, 3)
	if sync.n > 100 {
		rounds = 1 // of minutes
	}
	var seconds, sweeps [2][]float64
	for seed := range rounds {
		for i, x := range []simulation{sync, async} {
			x.seed = uint64(seed)
			v, err := x.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			seconds[i], sweeps[i] = append(seconds[i], v.seconds), append(sweeps[i], v.sweeps)
		}
	}
	m := measure.Over(name+": synchronous, virtual time", "s", seconds[0]).Against("asynchronous", seconds[1])
	if target > 0 {
		m = m.RatioAtLeast(target)
	}
	r.Add(m, measure.Over(name+": synchronous, sweeps", "sweeps", sweeps[0]).Against("asynchronous", sweeps[1]))
	return nil
}

// oldValues measures what it costs to read values that are 0 to 4 sweeps old, every age equally
// likely.
func oldValues(ctx context.Context, r *measure.Run) error {
	membrane, err := measure.Membrane(64)
	if err != nil {
		return err
	}
	slabs, err1 := problem.Slabs(membrane.N, 8, nil)
	boxes, err2 := problem.Boxes(membrane.N, 8)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i, part := range []problem.Partition{slabs, boxes} {
		name := [2]string{"64³, 8 slabs", "64³, 8 boxes"}[i]
		fresh, err := (&sim.Stale{Problem: membrane, Partition: part, Tolerance: 1e-6}).Run()
		if err != nil {
			return err
		}
		var more, age []float64
		for seed := range r.Repeat(min(r.Rounds, 3)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			old, err := (&sim.Stale{Problem: membrane, Partition: part, Tolerance: 1e-6, Most: 4, Seed: uint64(seed)}).Run()
			if err != nil {
				return err
			}
			more = append(more, 100*(float64(old.Sweeps)/float64(fresh.Sweeps)-1))
			age = append(age, old.Age)
		}
		r.Add(measure.Over(name+", values 0 to 4 sweeps old: more sweeps than synchronous", "%", more).AtMost(10),
			measure.Over(name+", values 0 to 4 sweeps old: mean age", "sweeps", age).AsDetail())
	}
	return nil
}

// boundedDelay measures whole runs of delay:4 over a network with latencies of half a sweep to three
// and a half, the search for the end included.
func boundedDelay(ctx context.Context, r *measure.Run) error {
	for _, shape := range []string{"slabs", "boxes"} {
		var more []float64
		e := simulation{n: 64, peers: 8, tol: 1e-6, boxes: shape == "boxes"}
		sweep := time.Duration(pointTime * float64(e.n*e.n*e.n/e.peers))
		for seed := range r.Repeat(min(r.Rounds, 3)) {
			e.near, e.jitter = sweep/2, 3*sweep
			e.seed = uint64(seed)
			var sweeps [2]float64
			for i, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(4)} {
				v, err := e.with(fixed(scheme), problem.MethodConfig{}).run(ctx)
				if err != nil {
					return err
				}
				sweeps[i] = v.sweeps
			}
			more = append(more, 100*(sweeps[1]/sweeps[0]-1))
		}
		name := "64³, 8 " + shape + ", delay:4 over latencies of half a sweep to three and a half: "
		r.Add(measure.Over(name+"more sweeps than synchronous", "%", more).AtMost(10))
	}
	return nil
}
