package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// Targets of parts.
const (
	partsCost  = 1.10 // time of eight parts of 64³ points against one of 128³
	movePause  = 0.2  // seconds
	partsSlow  = 5    // factor by which one of two peers is slower
	partsSweep = 300  // sweeps of a run whose time per sweep counts
)

// partsOfPeers measures what several parts of a peer cost, what a move costs, and what balancing gains.
func partsOfPeers(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for _, row := range []func(context.Context, *measure.Run, string) error{costOfParts, pauses, balancedParts} {
		if err := row(ctx, r, program); err != nil {
			return err
		}
	}
	return nil
}

// costOfParts compares peers with eight parts with peers of one, at the same number of sweeps. Two peers of 128³ points
// have a processor each.
func costOfParts(ctx context.Context, r *measure.Run, program string) error {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"boxes", []string{"--parts", "8", "--partition", "2,2,4"}},
		{"slabs", []string{"--parts", "8", "--partition", "slabs"}},
	} {
		var times [2][]float64
		for range r.Repeat(min(r.Rounds, 7)) {
			for k, args := range [][]string{nil, c.args} {
				args = append([]string{
					"--peers", "2", "--scheme", "sync", "--tol", "1e-12", "--max-sweeps", fmt.Sprint(partsSweep),
				}, args...)
				s, err := killAt(ctx, program, "128,128,256", 0, 0, args...)
				if err != nil {
					return err
				}
				times[k] = append(times[k], s.Seconds)
			}
		}
		r.Add(measure.Over("8 parts of 64³ points a peer, "+c.name, "s", times[1]).Against("one of 128³", times[0]).
			RatioAtMost(partsCost))
	}
	return nil
}

// pauses measures how long a run pauses when a process leaves: from the beginning of the epoch until all relax again.
func pauses(ctx context.Context, r *measure.Run, program string) error {
	for _, scheme := range []string{"sync", "async"} {
		var took []float64
		for range r.Repeat(min(r.Rounds, 7)) {
			s, err := leaveAt(ctx, program, "--peers", "2", "--parts", "4", "--partition", "boxes", "--scheme", scheme)
			if err != nil {
				return err
			}
			for _, m := range s.Moves {
				took = append(took, m.Seconds)
				break // they move together
			}
		}
		r.Add(measure.Over("four parts of 64³ points move at once, "+scheme+": pause", "s", took).AtMost(movePause))
	}
	return nil
}

// leaveAt runs a solve on 128³ points, and asks the process of rank 0 to leave a second after the first relaxation.
func leaveAt(ctx context.Context, program string, args ...string) (survived, error) {
	t, err := startTrial(ctx, direct, program, "128", append(args, "--max-sweeps", "3000")...)
	if err != nil {
		return survived{}, err
	}
	defer t.stop()
	_, err = next(ctx, t, t.started, "started")
	if err == nil {
		err = pause(ctx, time.Second)
	}
	if err == nil {
		var p *os.Process
		if p, err = os.FindProcess(t.pid(0)); err == nil {
			err = p.Signal(syscall.SIGTERM)
		}
	}
	if err != nil {
		return survived{}, err
	}
	return t.answer()
}

// balancedParts compares runs with a slow peer whose parts move with runs in which they stay.
func balancedParts(ctx context.Context, r *measure.Run, program string) error {
	for _, c := range []struct {
		name, n string
		args    []string
	}{
		{"synchronous, 96³", "96", []string{"--scheme", "sync"}},
		{"asynchronous, 96³", "96", []string{"--scheme", "async"}},
		{"SOR, 128³", "128", []string{"--method", "sor", "--tol", "1e-9"}},
	} {
		var times [2][]float64
		for range r.Repeat(min(r.Rounds, 3)) {
			for k, balance := range []string{"off", "on"} {
				args := append([]string{"--peers", "2", "--parts", "4", "--partition", "slabs", "--balance", balance,
					"--slowdown", fmt.Sprintf("0:%d", partsSlow)}, c.args...)
				s, err := killAt(ctx, program, c.n, 0, 0, args...)
				if err != nil {
					return err
				}
				times[k] = append(times[k], s.Seconds)
			}
		}
		r.Add(measure.Over(fmt.Sprintf("one of two peers %d × slower, %s: parts that move", partsSlow, c.name), "s", times[1]).
			Against("parts that stay", times[0]))
	}
	return nil
}
