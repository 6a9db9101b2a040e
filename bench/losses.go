package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// losses measures, in virtual time, what lost peers cost: ten of sixteen in one run, and one of 4096.
func losses(ctx context.Context, r *measure.Run) error {
	for _, c := range []struct {
		scheme iterate.Scheme
		silent bool
	}{{iterate.Synchronous(), false}, {iterate.Asynchronous(), false}, {iterate.Asynchronous(), true}} {
		if err := tenLosses(ctx, r, c.scheme, c.silent); err != nil {
			return err
		}
	}
	return lossAmongMany(ctx, r)
}

// lossyRun returns a run of the membrane on side³ points, each of which stands for scale³, on the Ethernet of 1 Gbit/s.
func lossyRun(machines, side, scale int, s iterate.Scheme) (simulate.Config, error) {
	sample := measure.Sample{Cluster: "graphene-eth", Machines: machines}
	m, err := sample.Model()
	if err != nil {
		return simulate.Config{}, err
	}
	p, err := measure.Membrane(side)
	if err != nil {
		return simulate.Config{}, err
	}
	part, err := problem.Boxes(p.N, machines)
	return simulate.Config{
		Model: m, Scale: scale, Seed: 1, Recover: &simulate.Recovery{}, Threads: 1,
		Solver: problem.Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-6},
	}, err
}

// tenLosses compares a run in which ten peers are lost, at equal intervals, with one without losses.
func tenLosses(ctx context.Context, r *measure.Run, s iterate.Scheme, silent bool) error {
	const machines, lost = 16, 10
	run, err := lossyRun(machines, 32, 8, s)
	if err != nil {
		return err
	}
	alone, err := simulate.Run(ctx, run)
	if err != nil {
		return err
	}
	what, why := "killed", ""
	if silent {
		what, why = "silent", " Each silence is noticed after 1 s, in which nobody relaxes the block."
	}
	for k := range time.Duration(lost) {
		run.Model.Events = append(run.Model.Events, cluster.Event{
			At: alone.Virtual * (2*k + 1) / (2 * lost), Rank: int(5*k+3) % machines, Killed: !silent, Lost: silent,
		})
	}
	result, err := simulate.Run(ctx, run)
	switch {
	case err != nil:
		return err
	case result.Reason != iterate.Converged || len(result.Losses) != lost:
		return fmt.Errorf("%d losses, and the run ended because it %v", len(result.Losses), result.Reason)
	}
	name := fmt.Sprintf("%d of %d peers %s, 256³, %s: time", lost, machines, what, s.Name())
	r.Add(measure.One(name, "× without losses", float64(result.Virtual)/float64(alone.Virtual)).AtMost(1.3).
		Because(fmt.Sprintf("%.3g s instead of %.3g s of virtual time, %.0f sweeps instead of %.0f.%s", result.Virtual.Seconds(),
			alone.Virtual.Seconds(), result.Sweeps(), alone.Sweeps(), why)))
	return nil
}

// lossAmongMany measures how long it takes to replace one of many peers.
func lossAmongMany(ctx context.Context, r *measure.Run) error {
	const machines = 4096
	run, err := lossyRun(machines, 64, 16, iterate.Synchronous())
	if err != nil {
		return err
	}
	run.Solver.MaxSweeps = 8
	const rank = 597 // whose block takes the most work to solve
	run.Model.Events = []cluster.Event{{At: time.Millisecond, Rank: rank, Lost: true}}
	result, err := simulate.Run(ctx, run)
	if err != nil {
		return err
	}
	if len(result.Losses) != 1 || result.Losses[0].Resumed == 0 {
		return fmt.Errorf("no recovery among %d peers: %+v", machines, result.Losses)
	}
	l := &result.Losses[0]
	took := (l.Resumed - l.Noticed).Seconds()
	name := fmt.Sprintf("one of %d peers lost, 64³ a peer, sync: from the suspicion until all relax again", machines)
	r.Add(measure.One(name, "s", took).AtMost(0.3).
		Because(fmt.Sprintf("The local solve takes %.3g s.", l.Repair.Seconds())))
	return nil
}
