package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// workTold are the fixed amounts of work that the measured one is compared with.
var workTold = map[string][]int{
	problem.Multigrid: {1, 2, 3, 4},
	problem.SOR:       {2, 4, 8, 16, 32},
}

// chosenWork tells what measuring how many cycles pay between two exchanges is worth: the
// virtual time of a run with the measured amount over that with the best fixed one, on a
// network whose way takes a twentieth of a cycle of multigrid and on one whose way takes ten.
func (b *bench) chosenWork(ctx context.Context) error {
	networks := []struct {
		name string
		way  time.Duration
	}{{"a way of 5 µs", 5 * time.Microsecond}, {"a way of 1 ms", time.Millisecond}}
	for _, local := range []string{problem.Multigrid, problem.SOR} {
		for _, net := range networks {
			for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
				name := fmt.Sprintf("32³, 8 peers, overlap 2, %s, %s, %s: ", local, net.name, scheme.Name())
				if err := b.compareWork(ctx, workOf(local, net.way, scheme), name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// workOf is an experiment of the comparison, whose work is not set.
func workOf(local string, way time.Duration, s iterate.Scheme) experiment {
	return experiment{
		n: 32, peers: 8, boxes: true, near: way, tol: 1e-6, scheme: fixed(s),
		method: problem.MethodConfig{Name: problem.Schwarz, Local: local, Overlap: 2},
	}
}

func (b *bench) compareWork(ctx context.Context, e experiment, name string) error {
	best, at := math.Inf(1), 0
	for _, work := range workTold[e.method.Local] {
		e.method.Work = work
		v, err := meanSeconds(ctx, e, workSeeds)
		if err != nil {
			return err
		}
		if v < best {
			best, at = v, work
		}
		b.report.add(over("schwarz", fmt.Sprintf("%swork %d, virtual time", name, work), "s", []float64{v}))
	}
	e.method.Work = 0
	v, err := meanSeconds(ctx, e, workSeeds)
	if err != nil {
		return err
	}
	b.report.add(over("schwarz", name+"measured work, virtual time", "s", []float64{v}),
		over("schwarz", fmt.Sprintf("%smeasured work against the best, %d", name, at), "×", []float64{v / best}).atMost(1.1))
	return nil
}

// workSeeds is how many runs a mean is taken of.
const workSeeds = 3

// meanSeconds is the mean virtual time of runs that differ in what is drawn.
func meanSeconds(ctx context.Context, e experiment, seeds int) (float64, error) {
	sum := 0.0
	for seed := range seeds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		e.seed = uint64(seed)
		v, err := e.run()
		if err != nil {
			return 0, err
		}
		sum += v.seconds
	}
	return sum / float64(seeds), nil
}
