package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// simulator measures the cost of simulating on this machine. The 4096 peers run first, so that the
// peak of the memory is theirs.
func simulator(ctx context.Context, r *measure.Run) error {
	if err := manyPeers(ctx, r, 4096); err != nil {
		return err
	}
	// Blocks of 4³ points that stand for 32³, 64³ and 256³: messages dominate the cost.
	for _, scale := range []int{8, 16, 64} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			if err := segmentRate(ctx, r, scale, s); err != nil {
				return err
			}
		}
	}
	for _, method := range []string{problem.Multigrid, problem.SOR} {
		s := realNumerics()
		s.Method.Name = method
		if err := timeSample(ctx, r, s, "to 1e-6 by "+method); err != nil {
			return err
		}
	}
	s := realNumerics() // to 1e-6 it would take 14 064 sweeps
	s.Sweeps = 1000
	return timeSample(ctx, r, s, "the first 1000 sweeps by richardson")
}

// realNumerics is a run of 64 peers that relaxes every point.
func realNumerics() *measure.Sample {
	return &measure.Sample{
		Cluster: "graphene-ib", Machines: 64, Side: 128, Scale: 1, Scheme: iterate.Synchronous(), AllProcessors: true,
	}
}

// timeSample measures the time of a sample.
func timeSample(ctx context.Context, r *measure.Run, s *measure.Sample, what string) error {
	began := time.Now()
	result, err := s.Play(ctx)
	if err != nil {
		return err
	}
	m := measure.One("64 peers, 128³, real numerics, "+what, "s", time.Since(began).Seconds())
	if s.Sweeps == 0 {
		m = m.AtMost(60)
	}
	r.Add(m.Because(fmt.Sprintf("Points were relaxed %.0f times in %.3g s of virtual time.",
		result.Sweeps(), result.Virtual.Seconds())))
	return nil
}

// manyPeers simulates some sweeps of many peers on a scaled proxy grid.
func manyPeers(ctx context.Context, r *measure.Run, machines int) error {
	const sweeps = 12
	s := measure.Sample{
		Cluster: "graphene-ib", Machines: machines, Side: 64, Scale: 16, Scheme: iterate.Synchronous(), Sweeps: sweeps,
		AllProcessors: true,
	}
	began := time.Now()
	if _, err := s.Play(ctx); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	name := fmt.Sprintf("%d peers, 64³ for 1024³, %d sweeps: ", machines, sweeps)
	r.Add(measure.One(name+"time, connecting included", "s", took),
		measure.One(name+"memory per peer", "KiB", float64(mem.Sys)/1024/float64(machines)).AtMost(1024).
			Because("Two thirds of it are faces of 64² points, sent, in transit and received."))
	return nil
}

// Sweeps of the run that only connects, and those that a longer run does beyond it, by the scale:
// messages are longer on a larger one.
const connectSweeps, segmentSweeps = 10, 1600

// segmentRate measures segments per second of processor time, on Ethernet of 10 Gbit/s.
func segmentRate(ctx context.Context, r *measure.Run, scale int, scheme iterate.Scheme) error {
	var rates []float64
	for range r.Repeat(min(r.Rounds, 5)) {
		var took [2]time.Duration
		var sent [2]uint64
		for i, sweeps := range []int{connectSweeps, connectSweeps + segmentSweeps/scale} {
			s := measure.Sample{
				Cluster: "graphene-eth", Machines: 64, Side: 16, Scale: scale, Scheme: scheme,
				Sweeps: iterate.Iteration(sweeps),
				Change: func(m *cluster.Model) { m.Networks[0].Rate = 1.25e9 },
			}
			before := measure.ProcessorTime(measure.ThisProcess)
			result, err := s.Play(ctx)
			if err != nil {
				return err
			}
			took[i], sent[i] = measure.ProcessorTime(measure.ThisProcess)-before, measure.Segments(result)
		}
		rates = append(rates, float64(sent[1]-sent[0])/(took[1]-took[0]).Seconds()/1e6)
	}
	name := fmt.Sprintf("64 peers, blocks of 4³ for %d³, %s: ", 4*scale, scheme.Name())
	r.Add(measure.Over(name+"segments per second of processor time", "million/s", rates).BestAtLeast(1))
	return nil
}
