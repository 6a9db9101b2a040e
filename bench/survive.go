package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// survivePeers is the number of peers of a run.
const survivePeers = 4

// disturbance is a run that loses a peer, with the largest ratio of its time to that of an undisturbed run.
type disturbance struct {
	name, n string
	args    []string
	target  float64
}

// disturbances have the grids on which a run takes some seconds.
var disturbances = []disturbance{
	{"asynchronous, 96³", "96", []string{"--scheme", "async"}, 1.10},
	{"synchronous, 72³", "72", []string{"--scheme", "sync"}, 1.15},
	{"delay:2, 72³", "72", []string{"--scheme", "delay:2"}, 1.15},
	{"hybrid with two clusters, 72³", "72", []string{"--scheme", "hybrid", "--clusters", "2"}, 1.15},
	{"SOR, 128³", "128", []string{"--method", "sor"}, 1.15},
	{"multigrid, 191³", "191", []string{"--method", "multigrid"}, 1.15},
	{"Schwarz, 128³", "128", []string{"--method", "schwarz"}, 1.15},
}

// sweepTarget bounds the sweeps of a run that loses a peer, relative to an undisturbed one.
const sweepTarget = 1.01

// survive measures what the loss of a peer costs, and what recovery costs while no peer is lost.
func survive(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for _, row := range []func(context.Context, *measure.Run, string) error{
		func(ctx context.Context, r *measure.Run, program string) error {
			return killsAtHalfTime(ctx, r, program, disturbances)
		}, lostLaunchers, recoveries, recoveryOff, checkpoints, silentHost, manyLosses,
	} {
		if err := row(ctx, r, program); err != nil {
			return err
		}
	}
	return nil
}

// killsAtHalfTime kills one of four peers after half of the time that the run takes undisturbed.
func killsAtHalfTime(ctx context.Context, r *measure.Run, program string, all []disturbance) error {
	runs, solved := 0, 0
	for i, v := range all {
		var times, sweeps [2][]float64
		for round := range r.Repeat(min(r.Rounds, 3)) {
			args := append([]string{"--peers", fmt.Sprint(survivePeers)}, v.args...)
			calm, err := killAt(ctx, program, v.n, 0, 0, args...)
			if err != nil {
				return err
			}
			lost, err := killAt(ctx, program, v.n, calm.Seconds/2, (i+round)%survivePeers, args...)
			if err != nil {
				return err
			}
			if len(lost.Losses) == 0 && lost.code == 0 {
				continue // this run was so much faster than the other that it ended before
			}
			if runs++; lost.code != 0 || !lost.Converged {
				continue
			}
			solved++
			for k, s := range []survived{calm, lost} {
				times[k], sweeps[k] = append(times[k], s.Seconds), append(sweeps[k], s.meanSweeps())
			}
		}
		r.Add(measure.Over(v.name+": time with a loss", "s", times[1]).Against("undisturbed", times[0]).RatioAtMost(v.target),
			measure.Over(v.name+": iterates with a loss, mean over the peers", "iterates", sweeps[1]).Against("undisturbed", sweeps[0]).
				RatioAtMost(sweepTarget))
	}
	r.Add(measure.One("of these runs solved, with exit code 0", fmt.Sprintf("of %d", runs), float64(solved)).
		AtLeast(float64(runs)))
	return nil
}

// killAt runs a solve, and kills a peer so many seconds after the first relaxation. 0: none is killed.
func killAt(ctx context.Context, program, n string, seconds float64, rank int, args ...string) (survived, error) {
	t, err := startTrial(ctx, direct, program, n, args...)
	if err != nil {
		return survived{}, err
	}
	defer t.stop()
	begin, err := next(ctx, t, t.started, "started")
	if err == nil && seconds > 0 {
		at := begin.Add(time.Duration(seconds * float64(time.Second)))
		if err = pause(ctx, time.Until(at)); err == nil {
			err = t.kill(rank)
		}
		if errors.Is(err, os.ErrProcessDone) {
			err = nil // the answer has no loss
		}
	}
	if err != nil {
		return survived{}, err
	}
	return t.answer()
}

// recoveryOff compares runs without a loss with runs that do not recover from one.
func recoveryOff(ctx context.Context, r *measure.Run, program string) error {
	var times, peaks [2][]float64
	for range r.Repeat(min(r.Rounds, 5)) {
		for k, recover := range []string{"off", "local"} {
			s, err := killAt(ctx, program, "64", 0, 0, "--scheme", "sync", "--peers", fmt.Sprint(survivePeers), "--recover", recover)
			if err != nil {
				return err
			}
			peak := 0.0
			for _, p := range s.PerPeer {
				peak = max(peak, float64(p.Peak)/1e6)
			}
			times[k], peaks[k] = append(times[k], s.Seconds), append(peaks[k], peak)
		}
	}
	r.Add(measure.Over("no loss, 64³: time with --recover local", "s", times[1]).Against("--recover off", times[0]).
		RatioAtMost(1.005))
	if peaks[0][0] > 0 {
		r.Add(measure.Over("no loss, 64³: peak memory of the largest peer", "MB", peaks[1]).
			Against("--recover off", peaks[0]))
	}
	return nil
}

// checkpoints compares runs that write checkpoints with runs that do not.
func checkpoints(ctx context.Context, r *measure.Run, program string) error {
	every := []string{"", "60s", "1s"}
	times := make([][]float64, len(every))
	for round := range r.Repeat(min(r.Rounds, 3)) {
		for k, interval := range every {
			args := []string{"--scheme", "sync", "--peers", fmt.Sprint(survivePeers)}
			if interval != "" {
				dir := filepath.Join(r.Temp, fmt.Sprintf("checkpoints-%d-%d", round, k))
				args = append(args, "--checkpoint", dir, "--checkpoint-every", interval)
			}
			s, err := killAt(ctx, program, "72", 0, 0, args...)
			if err != nil {
				return err
			}
			times[k] = append(times[k], s.Seconds)
		}
	}
	r.Add(measure.Over("checkpoints, 72³: every minute, the default", "s", times[1]).Against("none", times[0]).RatioAtMost(1.01),
		measure.Over("checkpoints, 72³: every second", "s", times[2]).Against("none", times[0]))
	return nil
}
