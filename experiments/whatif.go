package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// publishedSweeps returns the number of sweeps of the published run on a described cluster: what a
// machine of it relaxes in the time of the sequential run.
func publishedSweeps(m *cluster.Model) float64 {
	return m.Hosts[0].Relaxation * published.Sequential / published.Points
}

// steadySweeps is the number of sweeps simulated to find the steady time of one.
const steadySweeps = 16

// cutsOf64 returns the number of boxes along each axis for 64 machines.
func cutsOf64() map[string][3]int {
	return map[string][3]int{"slabs": {1, 1, 64}, "pencils": {8, 8, 1}, "boxes": {4, 4, 4}}
}

// A refinement is a way to run on 64 machines.
type refinement struct {
	name    string
	cut     string
	late    bool
	async   bool
	network string // ib or eth: only there; "": both
	change  func(*cluster.Model)
}

// oneRequest has the adapter segment messages: each is one request.
func oneRequest(m *cluster.Model) { m.Networks[0].MTU = 1 << 20 }

// oneSided has the adapter fetch and place messages without a copy by a processor at either end.
func oneSided(m *cluster.Model) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		h.Send, h.Receive = cluster.Cost{Message: time.Microsecond}, cluster.Cost{}
	}
}

// jumbo has Ethernet carry frames of 9000 bytes.
func jumbo(m *cluster.Model) { m.Networks[0].MTU = 9000 }

// refinements returns the refinements, alone and combined; the first is the model of the paper's
// synchronous runs. Slabs have one plane of the proxy grid, which leaves nothing to overlap.
func refinements() []refinement {
	return []refinement{
		{name: "as published: pencils, faces sent when the block is relaxed", cut: "pencils", late: true},
		{name: "overlap of communication and relaxation", cut: "pencils"},
		{name: "slabs", cut: "slabs", late: true},
		{name: "boxes", cut: "boxes", late: true},
		{name: "boxes, overlap", cut: "boxes"},
		{name: "frames of 9000 bytes", cut: "pencils", late: true, network: "eth", change: jumbo},
		{name: "one request a message, nothing handled before all of it is there", cut: "pencils", late: true,
			network: "ib", change: oneRequest},
		{name: "one-sided halos, segment by segment", cut: "pencils", late: true, network: "ib", change: oneSided},
		{name: "one-sided halos, one request a message", cut: "pencils", late: true, network: "ib",
			change: func(m *cluster.Model) { oneRequest(m); oneSided(m) }},
		{name: "one-sided halos, boxes", cut: "boxes", late: true, network: "ib", change: oneSided},
		{name: "one-sided halos, boxes, overlap", cut: "boxes", network: "ib", change: oneSided},
		{name: "asynchronous", cut: "pencils", async: true},
		{name: "asynchronous, boxes", cut: "boxes", async: true},
		{name: "asynchronous, one-sided halos, boxes", cut: "boxes", async: true, network: "ib", change: oneSided},
	}
}

// sample returns the run of a refinement on a network.
func (r *refinement) sample(network string) measure.Sample {
	s := measure.Sample{
		Cluster: "graphene-" + network, Machines: 64, Side: 64, Scale: published.Side / 64, Parts: cutsOf64()[r.cut],
		Scheme: iterate.Synchronous(), Late: r.late, Change: r.change, Sweeps: steadySweeps,
	}
	if r.async {
		s.Scheme = iterate.Asynchronous()
	}
	return s
}

// projection is the time of the published run.
type projection struct {
	sweep time.Duration // steady
	more  float64       // relaxations / those of the synchronous run
	all   float64       // seconds
}

// project simulates some sweeps. For an asynchronous scheme it also finds the cost of old values, on
// coarser proxy grids.
func project(ctx context.Context, s measure.Sample) (projection, error) {
	m, err := s.Model()
	if err != nil {
		return projection{}, err
	}
	r, err := s.Play(ctx)
	if err != nil {
		return projection{}, err
	}
	p := projection{sweep: r.Steady, more: 1}
	if !s.Scheme.Lockstep() {
		if p.more, err = costOfOldValues(ctx, s); err != nil {
			return projection{}, err
		}
	}
	p.all = p.sweep.Seconds() * p.more * publishedSweeps(m)
	return p, nil
}

// costOfOldValues returns the relaxations of an asynchronous run by those of the synchronous one with
// the same residual, extrapolated to the full grid. It compares them on the coarsest proxy grid that
// gives every machine a box of two points a side, and on the next finer one.
func costOfOldValues(ctx context.Context, s measure.Sample) (float64, error) {
	all, side := s.Side*s.Scale, 16
	for side*side*side < 8*s.Machines || side < 2*slices.Max(s.Parts[:]) {
		side *= 2
	}
	s.Sweeps = iterate.Iteration(max(60, 240/max(1, s.Machines/64)))
	var found [2]published.Sample
	for i := range found {
		s.Side = side << i
		s.Scale = all / s.Side
		r, err := s.Play(ctx)
		if err != nil {
			return 0, err
		}
		same, err := equivalent(s.Side, r.Residual)
		if err != nil {
			return 0, err
		}
		found[i] = published.Sample{Side: s.Side, More: r.Sweeps()/same - 1}
	}
	more, err := published.MoreAt(all, found[0], found[1])
	return 1 + more, err
}

// whatIf projects the published run with what is new, on the cluster of 2013.
func whatIf(ctx context.Context, r *measure.Run) error {
	for _, network := range []string{"eth", "ib"} {
		var list []refinement
		for _, f := range refinements() {
			if f.network == "" || f.network == network {
				list = append(list, f)
			}
		}
		out := make([]projection, len(list))
		err := measure.Each(ctx, len(list), func(ctx context.Context, i int) (err error) {
			out[i], err = project(ctx, list[i].sample(network))
			return err
		})
		if err != nil {
			return err
		}
		for i, f := range list {
			m := measure.One(fmt.Sprintf("graphene-%s, 64 machines, 256³, %s", network, f.name), "s", out[i].all)
			r.Add(m.Against("as published", []float64{out[0].all}))
		}
	}
	if err := methods(ctx, r); err != nil {
		return err
	}
	return validateProxies(ctx, r)
}

// methods compares Richardson with the other methods on 64 machines, to 1e-6.
func methods(ctx context.Context, r *measure.Run) error {
	schwarz := problem.MethodConfig{Name: problem.Schwarz, Overlap: 1, InnerCycles: 1}
	list := []struct {
		name   string
		scheme iterate.Scheme
		method problem.MethodConfig
	}{
		{"Richardson, synchronous", iterate.Synchronous(), problem.MethodConfig{}},
		{"Richardson, asynchronous", iterate.Asynchronous(), problem.MethodConfig{}},
		{"multigrid, synchronous", iterate.Synchronous(), problem.MethodConfig{Name: problem.Multigrid}},
		{"Schwarz, synchronous", iterate.Synchronous(), schwarz},
		{"Schwarz, asynchronous", iterate.Asynchronous(), schwarz},
	}
	seconds := make([]float64, len(list))
	err := measure.Each(ctx, len(list), func(ctx context.Context, i int) error {
		s := measure.Sample{
			Cluster: "graphene-ib", Machines: 64, Side: 32, Scale: published.Side / 32,
			Scheme: list[i].scheme, Method: list[i].method,
		}
		if s.Method.Name == "" {
			s.Side, s.Scale = 16, published.Side/16
		}
		result, err := s.Play(ctx)
		if err != nil {
			return err
		}
		seconds[i] = result.Virtual.Seconds()
		if s.Method.Name == "" {
			seconds[i] *= math.Pow((published.Side+1)/float64(s.Side+1), 2)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range list {
		line := measure.One("graphene-ib, 64 machines, membrane 256³ to 1e-6, "+m.name, "s", seconds[i])
		r.Add(line.Against(list[0].name, seconds[:1]))
	}
	return nil
}

// validateProxies compares proxy grids with the grids that they stand for: the time of a sweep at
// 256³, and whole runs, whose sweeps grow with the square of the points a side.
func validateProxies(ctx context.Context, r *measure.Run) error {
	const side = 64 // of a grid on which whole runs are feasible
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		sweep, err := compareSweeps(ctx, s, published.Side, 4)
		if err != nil {
			return err
		}
		run, err := compareRuns(ctx, s, side, 2, 64)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d³ for %d³, 64 machines, %s: ", side/2, side, s.Name())
		full := fmt.Sprintf("%d³ for %d³, 64 machines, %s: ", published.Side/4, published.Side, s.Name())
		r.Add(measure.One(full+"time of a sweep, proxy / full grid", "ratio", sweep).Between(0.97, 1.03),
			measure.One(name+"run to 1e-6 with sweeps as n², proxy / full grid", "ratio", run.verdict),
			measure.One(name+"until the tolerance is met, by the sweeps of one machine", "ratio", run.met),
			measure.One(name+"the same, old values costing half", "ratio", run.comparable).Between(0.9, 1.1))
	}
	return nil
}

// compareSweeps returns the steady time of a sweep on a proxy grid by that on the full grid.
func compareSweeps(ctx context.Context, scheme iterate.Scheme, side, scale int) (float64, error) {
	var steady [2]float64
	for i, k := range []int{1, scale} {
		s := measure.Sample{
			Cluster: "graphene-ib", Machines: 64, Side: side / k, Scale: k, Scheme: scheme, Sweeps: steadySweeps,
		}
		r, err := s.Play(ctx)
		if err != nil {
			return 0, err
		}
		steady[i] = r.Steady.Seconds()
	}
	return steady[1] / steady[0], nil
}

// likeness compares a run on a proxy grid with one on the full grid, as ratios of times.
type likeness struct {
	verdict    float64 // until the verdict, sweeps as n²
	met        float64 // until the tolerance was met, by one machine's sweeps on the same grid
	comparable float64 // the same, with the sweeps that old values cost divided by the scale
}

// compareRuns compares whole runs.
func compareRuns(ctx context.Context, scheme iterate.Scheme, side, scale, machines int) (likeness, error) {
	var l [2]likeness
	for i, k := range []int{1, scale} {
		s := measure.Sample{Cluster: "graphene-ib", Machines: machines, Side: side / k, Scale: k, Scheme: scheme}
		r, err := s.Play(ctx)
		if err != nil {
			return likeness{}, err
		}
		one := s
		one.Machines, one.Scheme = 1, iterate.Synchronous()
		alone, err := one.Play(ctx)
		if err != nil {
			return likeness{}, err
		}
		n, more := float64(s.Side+1), r.Met.Sweeps/alone.Met.Sweeps-1
		met := r.Met.After.Seconds() / alone.Met.Sweeps
		l[i] = likeness{r.Virtual.Seconds() / (n * n), met, met * (1 + more/float64(k)) / (1 + more)}
	}
	return likeness{l[1].verdict / l[0].verdict, l[1].met / l[0].met, l[1].comparable / l[0].comparable}, nil
}
