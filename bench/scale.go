package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// scale is what simulating takes on this machine. The 4096 peers come first: the peak of the
// memory is theirs then.
func scale(ctx context.Context, b *bench) error {
	if err := b.crowd(ctx, 4096); err != nil {
		return err
	}
	if err := b.pace(ctx); err != nil {
		return err
	}
	for _, method := range []string{problem.Multigrid, problem.SOR} {
		if err := b.numerics(ctx, method); err != nil {
			return err
		}
	}
	return b.sweeps(ctx)
}

// scaleSweeps are those of Richardson that are played: the 14 064 that it takes to 1e-6 would
// take minutes.
const scaleSweeps = 1000

// sweeps plays some of Richardson's, with the relaxations themselves.
func (b *bench) sweeps(ctx context.Context) error {
	t := trial{cluster: "graphene-ib", machines: 64, side: 128, standing: 1, scheme: iterate.Synchronous(), sweeps: scaleSweeps, crowd: true}
	began := time.Now()
	if _, err := t.play(ctx); err != nil {
		return err
	}
	name := fmt.Sprintf("64 peers, boxes of 128³, real numerics, the first %d sweeps by richardson: time", scaleSweeps)
	b.report.add(over("scale", name, "s of the clock", []float64{time.Since(began).Seconds()}))
	return nil
}

// numerics plays 64 peers with the relaxations themselves, from the start to 1e-6.
func (b *bench) numerics(ctx context.Context, method string) error {
	t := trial{cluster: "graphene-ib", machines: 64, side: 128, standing: 1, scheme: iterate.Synchronous(), method: problem.MethodConfig{Name: method}, crowd: true}
	began := time.Now()
	r, err := t.play(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	name := fmt.Sprintf("64 peers, boxes of 128³, real numerics to 1e-6 by %s, points relaxed %.0f times: ", method, relaxations(r))
	b.report.add(over("scale", name+"time", "s of the clock", []float64{took}).atMost(60),
		over("scale", name+"virtual time", "s", []float64{r.Virtual.Seconds()}))
	return nil
}

// crowd plays some sweeps of very many peers with a stand-in.
func (b *bench) crowd(ctx context.Context, machines int) error {
	const sweeps = 12
	t := trial{cluster: "graphene-ib", machines: machines, side: 64, standing: 16, scheme: iterate.Synchronous(), sweeps: sweeps, crowd: true}
	began := time.Now()
	r, err := t.play(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	name := fmt.Sprintf("%d peers, 64³ for 1024³, %d sweeps, connecting included: ", machines, sweeps)
	b.report.add(over("scale", name+"time", "s of the clock", []float64{took}),
		over("scale", name+"virtual time of a sweep", "ms", []float64{1e3 * r.Steady.Seconds()}))
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.report.add(over("scale", name+"memory taken from the system, a peer", "KiB", []float64{float64(mem.Sys) / 1024 / float64(machines)}).atMost(1024).because("faces of 64² points, sent, on their way and received, are two thirds of it"))
	return nil
}

// pace is how many segments are simulated a second of one core: blocks of 4³ that stand for
// 32³, 64³ and 256³, as 64 machines had in 2013 and have of 1024³, so that messages are what
// takes time, on Ethernet of 10 Gbit/s.
func (b *bench) pace(ctx context.Context) error {
	for _, standing := range []int{8, 16, 64} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			if err := b.paceOf(ctx, standing, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweeps of a pace: those of the run that is taken off another one, connecting included, and
// those that are left, fewer where messages are longer.
const paceConnect, paceSweeps = 10, 1600

func (b *bench) paceOf(ctx context.Context, standing int, s iterate.Scheme) error {
	var rates, connecting []float64
	for range min(b.rounds, 5) {
		var took [2]float64
		var sent [2]uint64
		for i, sweeps := range []int{paceConnect, paceConnect + paceSweeps/standing} {
			t := trial{cluster: "graphene-eth", machines: 64, side: 16, standing: standing, scheme: s, sweeps: iterate.Iteration(sweeps)}
			t.change = func(m *cluster.Model) { m.Networks[0].Rate = 1.25e9 }
			before := processorTime()
			r, err := t.play(ctx)
			if err != nil {
				return err
			}
			took[i], sent[i] = processorTime()-before, segments(r)
		}
		rates, connecting = append(rates, float64(sent[1]-sent[0])/(took[1]-took[0])/1e6), append(connecting, took[0])
	}
	name := fmt.Sprintf("64 peers, blocks of 4³ for %d³, %s: ", 4*standing, s.Name())
	b.report.add(over("scale", name+"segments by the processor's time, once connected", "million a second", rates).highAtLeast(1),
		over("scale", fmt.Sprintf("%sconnecting and %d sweeps", name, paceConnect), "s of the processor", connecting))
	return nil
}
