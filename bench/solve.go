package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/p2pdc/p2pdc/internal/measure"
)

const (
	memoryN      = 256
	memorySweeps = 20
	memoryLimit  = 44 // bytes per own point
)

// memory measures the peak of a peer's resident memory, less what it had before it knew its block,
// per own point; of two peers, the larger figure.
func memory(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for _, scheme := range []string{"sync", "async"} {
		var perPoint, idle []float64
		for range r.Repeat(min(r.Rounds, 3)) {
			s, err := measure.Sweeps(ctx, program, scheme, strconv.Itoa(memoryN), 2, memorySweeps)
			if err != nil {
				return err
			}
			p, i, err := s.BytesPerPoint()
			if err != nil {
				return err
			}
			perPoint, idle = append(perPoint, p), append(idle, i/(1<<20))
		}
		r.Add(measure.Over(scheme+", 256³ on two peers", "bytes/point", perPoint).AtMost(memoryLimit),
			measure.Over(scheme+", an idle peer", "MiB", idle))
	}
	return nil
}

const (
	speedupN      = 128
	speedupSweeps = 400
)

// speedups are the grids on which two peers are compared with one, and the least rate of two peers that exchange halos,
// relative to two that do not. There are so many sweeps that the end of an asynchronous run, 60 ms at 128³, counts
// little.
var speedups = []struct {
	n, sweeps int
	target    float64
}{{speedupN, 4 * speedupSweeps, 0.97}, {speedupN / 2, 8 * speedupSweeps, 0.93}}

// speedup compares two peers of one thread each, over shared memory and over UDP, with one, and with two processes
// that each have half of the points and exchange nothing: the limit that the machine sets.
func speedup(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for _, c := range speedups {
		for _, scheme := range []string{"sync", "async"} {
			rates := map[string][]float64{}
			for round := range r.Repeat(r.Rounds + 1) { // the first one warms up
				for _, lane := range []struct {
					name  string
					peers int
					more  []string
				}{
					{"one", 1, nil},
					{"shm", 2, []string{"--network", "shm"}},
					{"ether", 2, []string{"--network", "ether"}},
				} {
					s, err := measure.Sweeps(ctx, program, scheme, strconv.Itoa(c.n), lane.peers, c.sweeps, lane.more...)
					if err != nil {
						return err
					}
					if round > 0 {
						rates[lane.name] = append(rates[lane.name], s.Sweeps/s.Seconds)
					}
				}
				s, err := separateHalves(ctx, program, scheme, c.n, c.sweeps)
				if err != nil {
					return err
				}
				if round > 0 {
					rates["separate"] = append(rates["separate"], s)
				}
			}
			two := func(network, lane string) measure.Result {
				name := fmt.Sprintf("%s, %d³, two peers over %s", scheme, c.n, network)
				return measure.Over(name, "sweeps/s", rates[lane]).
					Against("one peer", rates["one"]).Against("two halves without exchange", rates["separate"])
			}
			r.Add(measure.Over(fmt.Sprintf("%s, %d³, one peer", scheme, c.n), "sweeps/s", rates["one"]),
				two("shared memory", "shm").RatioAtLeast(c.target), two("UDP", "ether"))
		}
	}
	return nil
}

// separateHalves runs two solves of half the grid side by side and returns the sweeps per second of
// the slower one.
func separateHalves(ctx context.Context, program, scheme string, n, sweeps int) (float64, error) {
	half := fmt.Sprintf("%d,%d,%d", n, n, n/2)
	s, err := both(func(int) (measure.Solution, error) {
		return measure.Sweeps(ctx, program, scheme, half, 1, sweeps)
	})
	if err != nil {
		return 0, err
	}
	return min(s[0].Sweeps/s[0].Seconds, s[1].Sweeps/s[1].Seconds), nil
}

// oneAndTwo returns the sweeps per second of one peer and of two.
func oneAndTwo(ctx context.Context, program, scheme string) (one, two float64, err error) {
	a, err := measure.Sweeps(ctx, program, scheme, strconv.Itoa(speedupN), 1, speedupSweeps)
	if err != nil {
		return 0, 0, err
	}
	b, err := measure.Sweeps(ctx, program, scheme, strconv.Itoa(speedupN), 2, speedupSweeps)
	return a.Sweeps / a.Seconds, b.Sweeps / b.Seconds, err
}

// multigrid solves the membrane in one process of two threads.
func multigrid(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for _, n := range []int{127, 255} {
		var seconds, solving, cpu, bytes []float64
		for range r.Repeat(min(r.Rounds, 5)) {
			s, err := measure.Multigrid(ctx, program, n)
			if err != nil {
				return err
			}
			seconds, solving = append(seconds, s.Seconds), append(solving, s.SolveTime())
			cpu, bytes = append(cpu, s.CPU), append(bytes, s.Resident/1e6)
		}
		name := fmt.Sprintf("%d³ to 1e-6, two threads: ", n)
		time, peak := measure.Over(name+"time", "s", seconds), measure.Over(name+"peak memory", "MB", bytes)
		alone := measure.Over(name+"processor time of the solve", "s", solving)
		if n == 127 {
			time = time.BestAtMost(0.25)
		} else {
			time, alone, peak = time.BestAtMost(1.2), alone.BestAtMost(2), peak.AtMost(800)
		}
		r.Add(time, alone, measure.Over(name+"processor time of the process", "s", cpu), peak)
	}
	return nil
}

// both calls f(0) and f(1) at the same time.
func both[T any](f func(i int) (T, error)) ([]T, error) {
	out, errs := make([]T, 2), make([]error, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		out[1], errs[1] = f(1)
	}()
	out[0], errs[0] = f(0)
	<-done
	return out, errors.Join(errs...)
}
