package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A scaling is a curve of efficiency by machines.
type scaling struct {
	cluster  string
	side     int
	machines []int
	scheme   func(machines int) iterate.Scheme
}

// scalings returns the curves of Richardson with boxes and overlap.
func scalings() []scaling {
	sync := func(int) iterate.Scheme { return iterate.Synchronous() }
	async := func(int) iterate.Scheme { return iterate.Asynchronous() }
	all, few := []int{64, 256, 1024, 4096}, []int{64, 256}
	const side = published.Side
	return []scaling{
		{"graphene-ib", side, all, sync}, {"graphene-ib", side, all, async},
		{"graphene-ib", 4 * side, all, sync}, {"graphene-ib", 4 * side, all, async},
		{"graphene-eth", side, all, sync}, {"graphene-eth", side, all, async},
		{"grid-10ms", side, few, sync}, {"grid-10ms", side, few, twoSites}, {"grid-10ms", side, few, async},
	}
}

// twoSites is the hybrid scheme of machines in two sites.
func twoSites(machines int) iterate.Scheme {
	sites := make([]int, machines)
	for r := machines / 2; r < machines; r++ {
		sites[r] = 1
	}
	return iterate.Hybrid(sites)
}

// efficiencies measures the efficiency of Richardson by the number of machines and draws the curves.
func efficiencies(ctx context.Context, r *measure.Run) error {
	curves := scalings()
	values := make([][]float64, len(curves))
	var points [][2]int // curve and index of its machines
	for i, c := range curves {
		values[i] = make([]float64, len(c.machines))
		for k := range c.machines {
			points = append(points, [2]int{i, k})
		}
	}
	slices.SortStableFunc(points, func(x, y [2]int) int {
		return curves[x[0]].machines[x[1]] - curves[y[0]].machines[y[1]]
	})
	err := measure.Each(ctx, len(points), func(ctx context.Context, i int) (err error) {
		curve, k := points[i][0], points[i][1]
		values[curve][k], err = efficiency(ctx, r, curves[curve], k)
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range curves {
		for k, m := range c.machines {
			name := fmt.Sprintf("%s, %d³, %d machines, boxes, overlap, Richardson %s", c.cluster, c.side, m, c.scheme(m).Name())
			r.Add(measure.One(name, "%", 100*values[i][k]))
		}
	}
	if r.Dry {
		return nil
	}
	return drawScalings(filepath.Join(r.Root, "docs", "pictures", "efficiency.png"), curves, values)
}

// efficiency returns the time that the machines of a curve's point would take without communication,
// relaxing as one machine does, by the time that they take.
func efficiency(ctx context.Context, r *measure.Run, c scaling, point int) (float64, error) {
	machines := c.machines[point]
	s := measure.Sample{Cluster: c.cluster, Machines: machines, Side: 32, Scheme: c.scheme(machines), Sweeps: 12}
	if machines > 512 {
		s.Side = 64
	}
	s.Scale = c.side / s.Side
	p, err := project(ctx, s)
	if err != nil {
		return 0, err
	}
	m, err := s.Model()
	if err != nil {
		return 0, err
	}
	side := float64(c.side)
	alone := side * side * side / m.Hosts[0].Relaxation / float64(machines)
	e := alone / (p.sweep.Seconds() * p.more)
	fmt.Fprintf(r.Log(), "  %s, %d³, %d machines, %s: %.1f %%\n", c.cluster, c.side, machines, s.Scheme.Name(), 100*e)
	return e, nil
}
