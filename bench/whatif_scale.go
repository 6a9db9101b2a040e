package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/p2pdc/p2pdc/bench/internal/published"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// lookFor is how many sweeps an asynchronous run does until its residual is compared.
func lookFor(machines int) iterate.Iteration {
	return iterate.Iteration(max(60, 240/max(1, machines/64)))
}

// staleness is how many relaxations a run out of lockstep does by those of the synchronous
// one whose residual is the same. It is found on the coarsest grid that gives every machine a
// box of two points a side, where a point stands for as many as make it the grid of the
// trial, and on the next finer one; both together say what the full grid needs.
func staleness(ctx context.Context, t trial) (float64, error) {
	all, side := t.side*t.standing, 16
	for side*side*side < 8*t.machines || !divides(side, t) {
		side *= 2
	}
	t.sweeps = lookFor(t.machines)
	var found [2]published.Sample
	for i := range found {
		t.side = side << i
		t.standing = all / t.side
		r, err := t.play(ctx)
		if err != nil {
			return 0, err
		}
		same, err := equivalent(t.side, r.Residual)
		if err != nil {
			return 0, err
		}
		found[i] = published.Sample{Side: t.side, More: relaxations(r)/same - 1}
	}
	more, err := published.MoreAt(all, found[0], found[1])
	return 1 + more, err
}

// divides tells whether a grid has two planes for every machine along each axis.
func divides(side int, t trial) bool {
	return side >= 2*t.parts[0] && side >= 2*t.parts[1] && side >= 2*t.parts[2]
}

// methods are the best ones beside Richardson, on 64 machines, to 1e-6.
func (b *bench) methods(ctx context.Context) error {
	schwarz := problem.MethodConfig{Name: problem.Schwarz, Overlap: 1, Work: 1}
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
	err := each(ctx, len(list), func(ctx context.Context, i int) error {
		t := trial{cluster: "graphene-ib", machines: 64, side: 32, standing: publishedSide / 32, scheme: list[i].scheme, method: list[i].method}
		if t.method.Name == "" {
			t.side, t.standing = 16, publishedSide/16
		}
		r, err := t.play(ctx)
		if err != nil {
			return err
		}
		seconds[i] = r.Virtual.Seconds()
		if t.method.Name == "" {
			seconds[i] *= math.Pow((publishedSide+1)/float64(t.side+1), 2)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range list {
		name := "graphene-ib, 64 machines, membrane 256³ to 1e-6, " + m.name
		b.report.add(over("whatif", name, "s", seconds[i:i+1]), over("whatif", name+": faster than Richardson, synchronous", "times", []float64{seconds[0] / seconds[i]}))
	}
	return nil
}

// A scaling is a curve of efficiency by machines.
type scaling struct {
	cluster  string
	side     int
	machines []int
	scheme   func(machines int) iterate.Scheme
}

// scalings are those of Richardson with boxes and overlap.
func scalings() []scaling {
	sync := func(int) iterate.Scheme { return iterate.Synchronous() }
	async := func(int) iterate.Scheme { return iterate.Asynchronous() }
	all, few := []int{64, 256, 1024, 4096}, []int{64, 256}
	return []scaling{
		{"graphene-ib", publishedSide, all, sync}, {"graphene-ib", publishedSide, all, async},
		{"graphene-ib", 4 * publishedSide, all, sync}, {"graphene-ib", 4 * publishedSide, all, async},
		{"graphene-eth", publishedSide, all, sync}, {"graphene-eth", publishedSide, all, async},
		{"grid-10ms", publishedSide, few, sync}, {"grid-10ms", publishedSide, few, hybridOf}, {"grid-10ms", publishedSide, few, async},
	}
}

// efficiencies is the efficiency of Richardson by the number of machines: at 256³, and at 1024³.
func efficiencies(ctx context.Context, b *bench) error {
	curves := scalings()
	out, values := make([][]measurement, len(curves)), make([][]float64, len(curves))
	var places [][2]int
	for i, c := range curves {
		out[i], values[i] = make([]measurement, len(c.machines)), make([]float64, len(c.machines))
		for k := range c.machines {
			places = append(places, [2]int{i, k})
		}
	}
	slices.SortStableFunc(places, func(x, y [2]int) int { return curves[x[0]].machines[x[1]] - curves[y[0]].machines[y[1]] })
	err := each(ctx, len(places), func(ctx context.Context, i int) error {
		c, k := curves[places[i][0]], places[i][1]
		m := c.machines[k]
		s := c.scheme(m)
		e, err := efficiency(ctx, c.cluster, c.side, m, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "efficiency: %s, %d³, %d machines, %s: %.1f %%\n", c.cluster, c.side, m, s.Name(), 100*e)
		values[places[i][0]][k] = e
		out[places[i][0]][k] = over("efficiency", fmt.Sprintf("%s, %d³, %d machines, boxes, overlap, Richardson %s", c.cluster, c.side, m, s.Name()), "%", []float64{100 * e})
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range out {
		b.report.add(m...)
	}
	if b.dry {
		return nil
	}
	return drawScalings(filepath.Join(b.root, "docs", "pictures", "efficiency.png"), curves, values)
}

// hybridOf is the scheme of so many machines in two sites.
func hybridOf(machines int) iterate.Scheme {
	sites := make([]int, machines)
	for r := machines / 2; r < machines; r++ {
		sites[r] = 1
	}
	return iterate.Hybrid(sites)
}

// efficiency is what the machines of a cluster would take together without each other, by
// what they take: relaxing alone is what one machine does.
func efficiency(ctx context.Context, cluster string, side, machines int, s iterate.Scheme) (float64, error) {
	t := trial{cluster: cluster, machines: machines, side: 32, scheme: s, sweeps: 12}
	if machines > 512 {
		t.side = 64
	}
	t.standing = side / t.side
	p, err := project(ctx, t)
	if err != nil {
		return 0, err
	}
	m, err := t.model()
	if err != nil {
		return 0, err
	}
	alone := float64(side) * float64(side) * float64(side) / m.Hosts[0].Relaxation / float64(machines)
	return alone / (p.sweep.Seconds() * p.more), nil
}
