package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// schwarz counts what the Schwarz method needs to solve the membrane to 1e-6, and compares the
// measured number of local cycles between two exchanges with fixed ones.
func schwarz(ctx context.Context, r *measure.Run) error {
	for _, count := range []func(context.Context, *measure.Run) error{countExchanges, countRelaxations, compareCycles} {
		if err := count(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// countExchanges counts exchanges with the neighbours in lockstep, and the work of a peer in sweeps
// over its own box. A peer does one multigrid cycle between two exchanges. The counts do not depend
// on the machine.
func countExchanges(ctx context.Context, r *measure.Run) error {
	for _, peers := range []int{8, 64} {
		target := map[int]float64{8: 15, 64: 20}[peers]
		for i, correction := range []string{"no coarse correction", "coarse grid of 1/64 of the points"} {
			coarse := i - 1
			for _, overlap := range []int{0, 1, 2, 4, 8} {
				v, err := simulation{
					n: 64, peers: peers, boxes: true, near: time.Microsecond, tol: 1e-6, most: 200,
					scheme: fixed(iterate.Synchronous()),
					method: problem.MethodConfig{Name: problem.Schwarz, Overlap: overlap, InnerCycles: 1, Coarse: coarse},
				}.run(ctx)
				if err != nil {
					return err
				}
				name := fmt.Sprintf("64³, %d peers, overlap %d, %s: ", peers, overlap, correction)
				count := measure.One(name+"exchanges", "exchanges", v.iterates)
				if !v.converged {
					count = count.Because("It did not converge.")
				}
				if coarse == 0 && overlap == 4 {
					count = count.AtMost(target)
				} else {
					count = count.AsDetail()
				}
				r.Add(count, measure.One(name+"work of the busiest peer", "sweeps of its box", v.work).AsDetail())
			}
		}
	}
	return nil
}

// countRelaxations counts relaxations without and with the coarse correction in asynchronous runs,
// with boxes of 16³ points and a latency of a third of a relaxation.
func countRelaxations(ctx context.Context, r *measure.Run) error {
	for _, parts := range []int{2, 3, 4} {
		var count, seconds [2][]float64
		for seed := range r.Repeat(min(r.Rounds, 2)) {
			for i, coarse := range []int{-1, 0} {
				v, err := simulation{
					n: 16 * parts, peers: parts * parts * parts, boxes: true, near: 50 * time.Microsecond, tol: 1e-6,
					seed:   uint64(seed),
					scheme: fixed(iterate.Asynchronous()),
					method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 4, InnerCycles: 1, Coarse: coarse},
				}.run(ctx)
				if err != nil {
					return err
				}
				count[i], seconds[i] = append(count[i], v.iterates), append(seconds[i], v.seconds)
			}
		}
		name := fmt.Sprintf("%d³, %d peers, overlap 4, asynchronous, with coarse correction: ", 16*parts, parts*parts*parts)
		r.Add(measure.Over(name+"relaxations of the busiest peer", "relaxations", count[1]).Against("without", count[0]),
			measure.Over(name+"virtual time", "s", seconds[1]).Against("without", seconds[0]).AsDetail())
	}
	return nil
}

// fixedCycles are the numbers of cycles between two exchanges that measured ones are compared with.
var fixedCycles = map[string][]int{
	problem.Multigrid: {1, 2, 3, 4},
	problem.SOR:       {2, 4, 8, 16, 32},
}

// cycleSeeds is the number of runs of a mean.
const cycleSeeds = 3

// compareCycles compares the virtual time with a measured number of cycles to that with the best
// fixed one, on a network with a latency of a twentieth of a multigrid cycle and on one of ten
// cycles.
func compareCycles(ctx context.Context, r *measure.Run) error {
	for _, local := range []string{problem.Multigrid, problem.SOR} {
		for _, latency := range []time.Duration{5 * time.Microsecond, time.Millisecond} {
			for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
				name := fmt.Sprintf("32³, 8 peers, overlap 2, %s, latency %v, %s: ", local, latency, scheme.Name())
				if err := compareWork(ctx, r, cyclesOf(local, latency, scheme), name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cyclesOf is a simulation whose number of cycles is measured.
func cyclesOf(local string, latency time.Duration, s iterate.Scheme) simulation {
	return simulation{
		n: 32, peers: 8, boxes: true, near: latency, tol: 1e-6, scheme: fixed(s),
		method: problem.MethodConfig{Name: problem.Schwarz, Local: local, Overlap: 2},
	}
}

func compareWork(ctx context.Context, r *measure.Run, e simulation, name string) error {
	best, at := math.Inf(1), 0
	for _, work := range fixedCycles[e.method.Local] {
		e.method.InnerCycles = work
		v, err := meanSeconds(ctx, e, cycleSeeds)
		if err != nil {
			return err
		}
		if v < best {
			best, at = v, work
		}
		r.Add(measure.One(fmt.Sprintf("%s%d cycles, virtual time", name, work), "s", v).AsDetail())
	}
	e.method.InnerCycles = 0
	v, err := meanSeconds(ctx, e, cycleSeeds)
	if err != nil {
		return err
	}
	r.Add(measure.One(name+"measured cycles, virtual time", "s", v).
		Against(fmt.Sprintf("best fixed number, %d", at), []float64{best}).RatioAtMost(1.1))
	return nil
}

// meanSeconds returns the mean virtual time of runs with different seeds.
func meanSeconds(ctx context.Context, e simulation, seeds int) (float64, error) {
	sum := 0.0
	for seed := range seeds {
		e.seed = uint64(seed)
		v, err := e.run(ctx)
		if err != nil {
			return 0, err
		}
		sum += v.seconds
	}
	return sum / float64(seeds), nil
}
