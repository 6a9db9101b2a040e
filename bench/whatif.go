package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// The published run: 256³ points, 9523 s on one machine.
const (
	publishedSide    = 256
	publishedSeconds = 9523
)

// publishedSweeps is how many sweeps the published run has in a described cluster: what a
// machine of it relaxes in the time of the sequential run.
func publishedSweeps(m *cluster.Model) float64 {
	return m.Hosts[0].Relaxation * publishedSeconds / (publishedSide * publishedSide * publishedSide)
}

// steadySweeps are played for the time of one in the steady state.
const steadySweepsOf = 16

// Cuts of 64 machines.
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

// whole has a message travel as one request: the adapter cuts it.
func whole(m *cluster.Model) { m.Networks[0].MTU = 1 << 20 }

// oneSided has the adapter fetch and place what is sent, with no copy by a processor at
// either end.
func oneSided(m *cluster.Model) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		h.Send, h.Receive = cluster.Cost{Message: time.Microsecond}, cluster.Cost{}
	}
}

// jumbo has Ethernet carry frames of 9000 bytes.
func jumbo(m *cluster.Model) { m.Networks[0].MTU = 9000 }

// unaided is both: the adapter needs no processor.
func unaided(m *cluster.Model) { whole(m); oneSided(m) }

// refinements, alone and together; the first is how the paper's synchronous runs are modelled.
// Slabs have one plane of the stand-in, behind which nothing can be overlapped.
func refinements() []refinement {
	return []refinement{
		{name: "as published: pencils, faces sent when the block is relaxed", cut: "pencils", late: true},
		{name: "overlap of communication and relaxation", cut: "pencils"},
		{name: "slabs", cut: "slabs", late: true},
		{name: "boxes", cut: "boxes", late: true},
		{name: "boxes, overlap", cut: "boxes"},
		{name: "frames of 9000 bytes", cut: "pencils", late: true, network: "eth", change: jumbo},
		{name: "one request a message, nothing handled before all of it is there", cut: "pencils", late: true, network: "ib", change: whole},
		{name: "one-sided halos, segment by segment", cut: "pencils", late: true, network: "ib", change: oneSided},
		{name: "one-sided halos, one request a message", cut: "pencils", late: true, network: "ib", change: unaided},
		{name: "one-sided halos, boxes", cut: "boxes", late: true, network: "ib", change: oneSided},
		{name: "one-sided halos, boxes, overlap", cut: "boxes", network: "ib", change: oneSided},
		{name: "asynchronous", cut: "pencils", async: true},
		{name: "asynchronous, boxes", cut: "boxes", async: true},
		{name: "asynchronous, one-sided halos, boxes", cut: "boxes", async: true, network: "ib", change: oneSided},
	}
}

// trial of a refinement on a network.
func (r *refinement) trial(network string) trial {
	t := trial{
		cluster: "graphene-" + network, machines: 64, side: 64, standing: publishedSide / 64, parts: cutsOf64()[r.cut],
		scheme: iterate.Synchronous(), late: r.late, change: r.change, sweeps: steadySweepsOf,
	}
	if r.async {
		t.scheme = iterate.Asynchronous()
	}
	return t
}

// projection is how long the published run takes.
type projection struct {
	sweep time.Duration // steady
	more  float64       // relaxations by those of the synchronous run
	all   float64       // seconds
}

// project plays some sweeps, and, out of lockstep, as far on a coarser grid that what stale
// values cost is seen.
func project(ctx context.Context, t trial) (projection, error) {
	m, err := t.model()
	if err != nil {
		return projection{}, err
	}
	r, err := t.play(ctx)
	if err != nil {
		return projection{}, err
	}
	p := projection{sweep: r.Steady, more: 1}
	if !t.scheme.Lockstep() {
		if p.more, err = staleness(ctx, t); err != nil {
			return projection{}, err
		}
	}
	p.all = p.sweep.Seconds() * p.more * publishedSweeps(m)
	return p, nil
}

// whatif is what is new, on the cluster of 2013.
func whatif(ctx context.Context, b *bench) error {
	for _, network := range []string{"eth", "ib"} {
		var list []refinement
		for _, r := range refinements() {
			if r.network == "" || r.network == network {
				list = append(list, r)
			}
		}
		out := make([]projection, len(list))
		err := each(ctx, len(list), func(ctx context.Context, i int) (err error) {
			out[i], err = project(ctx, list[i].trial(network))
			return err
		})
		if err != nil {
			return err
		}
		for i, r := range list {
			name := fmt.Sprintf("graphene-%s, 64 machines, 256³, %s: ", network, r.name)
			b.report.add(over("whatif", name+"the published run", "s", []float64{out[i].all}),
				over("whatif", name+"faster than as published", "times", []float64{out[0].all / out[i].all}))
		}
	}
	if err := b.methods(ctx); err != nil {
		return err
	}
	return b.standing(ctx)
}

// validatedSide is a grid of which a run to its end is played in full.
const validatedSide = 64

// standing holds stand-ins against what they stand for: a sweep's time at 256³, and whole
// runs, whose sweeps go with the square of the points a side.
func (b *bench) standing(ctx context.Context) error {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		sweep, err := compareSweeps(ctx, s, publishedSide, 4)
		if err != nil {
			return err
		}
		run, err := compareRuns(ctx, s, validatedSide, 2, 64)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d³ for %d³, 64 machines, %s: ", validatedSide/2, validatedSide, s.Name())
		b.report.add(over("whatif", fmt.Sprintf("%d³ for %d³, 64 machines, %s: a sweep's time, stand-in / real numerics", publishedSide/4, publishedSide, s.Name()), "ratio", []float64{sweep}).between(0.97, 1.03),
			over("whatif", name+"the run to 1e-6 with sweeps as n², stand-in / real numerics", "ratio", []float64{run.verdict}),
			over("whatif", name+"until the tolerance was met, by the sweeps of one machine", "ratio", []float64{run.met}),
			over("whatif", name+"the same, stale values costing half", "ratio", []float64{run.comparable}).between(0.9, 1.1))
	}
	return nil
}

// compareSweeps is the steady time of a sweep on a grid whose points stand for so many a
// side, by that on the grid it stands for.
func compareSweeps(ctx context.Context, s iterate.Scheme, side, standing int) (float64, error) {
	var steady [2]float64
	for i, k := range []int{1, standing} {
		t := trial{cluster: "graphene-ib", machines: 64, side: side / k, standing: k, scheme: s, sweeps: steadySweepsOf}
		r, err := t.play(ctx)
		if err != nil {
			return 0, err
		}
		steady[i] = r.Steady.Seconds()
	}
	return steady[1] / steady[0], nil
}

// likeness is what a stand-in takes by what the grid takes that it stands for.
type likeness struct {
	verdict    float64 // until the verdict, sweeps as n²
	met        float64 // until the tolerance was met, by one machine's sweeps on the same grid
	comparable float64 // the same, sweeps that stale values cost divided by how much coarser it is
}

// compareRuns is the same of whole runs.
func compareRuns(ctx context.Context, s iterate.Scheme, side, standing, machines int) (likeness, error) {
	var l [2]likeness
	for i, k := range []int{1, standing} {
		t := trial{cluster: "graphene-ib", machines: machines, side: side / k, standing: k, scheme: s}
		r, err := t.play(ctx)
		if err != nil {
			return likeness{}, err
		}
		one := trial{cluster: "graphene-ib", machines: 1, side: side / k, standing: k, scheme: iterate.Synchronous()}
		alone, err := one.play(ctx)
		if err != nil {
			return likeness{}, err
		}
		n, more := float64(t.side+1), r.Met.Sweeps/alone.Met.Sweeps-1
		met := r.Met.After.Seconds() / alone.Met.Sweeps
		l[i] = likeness{r.Virtual.Seconds() / (n * n), met, met * (1 + more/float64(k)) / (1 + more)}
	}
	return likeness{l[1].verdict / l[0].verdict, l[1].met / l[0].met, l[1].comparable / l[0].comparable}, nil
}
