package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
)

// What the simulator predicts of this machine, and how near it should come: relative errors
// in per cent of times, with as many peers as cores and with more, and of asynchronous sweeps.
const (
	homeN      = 64
	homeRounds = 5
	homeNear   = 15
	homeMore   = 25
	homeSweeps = 10
)

var homePeers = []int{1, 2, 4, 8}

// rehearsed is what a run took, or takes by the model.
type rehearsed struct {
	Seconds   float64 `json:"seconds"`
	Sweeps    float64 `json:"sequential_equivalent_sweeps"`
	Converged bool    `json:"converged"`
}

// homeCase is a run that is both simulated and done.
type homeCase struct {
	peers           int
	scheme          string
	predicted       rehearsed
	seconds, sweeps []float64
}

func (c *homeCase) String() string { return fmt.Sprintf("%s, %d peers", c.scheme, c.peers) }

// athome sets the simulator, calibrated here, beside real runs of processes over loopback.
// Predictions are made before anything that they are of is run.
func athome(ctx context.Context, b *bench) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	var cases []*homeCase
	for _, peers := range homePeers {
		model := filepath.Join(b.tmp, fmt.Sprintf("home%d.yaml", peers))
		if _, err := b.command(ctx, nil, bin, "calibrate", "--n", strconv.Itoa(homeN), "--peers", strconv.Itoa(peers), "--out", model); err != nil {
			return err
		}
		for _, scheme := range []string{"sync", "async"} {
			c := &homeCase{peers: peers, scheme: scheme}
			err := b.rehearse(ctx, &c.predicted, bin, "simulate", "--model", model, "--machines", strconv.Itoa(peers), "--scheme", scheme)
			if err != nil {
				return err
			}
			cases = append(cases, c)
		}
	}
	for range min(b.rounds, homeRounds) {
		for _, c := range cases {
			var r rehearsed
			err := b.rehearse(ctx, &r, bin, "solve", "--peers", strconv.Itoa(c.peers), "--scheme", c.scheme, "--threads", "1", "--together", "1", "--network", "ether")
			if err != nil {
				return err
			}
			c.seconds, c.sweeps = append(c.seconds, r.Seconds), append(c.sweeps, r.Sweeps)
		}
	}
	for _, c := range cases {
		b.report.add(c.account(runtime.NumCPU())...)
	}
	return nil
}

// rehearse runs a command of the program on the reference case, to the tolerance.
func (b *bench) rehearse(ctx context.Context, r *rehearsed, bin, command string, args ...string) error {
	out, err := b.command(ctx, nil, bin, append([]string{command, "membrane", "--n", strconv.Itoa(homeN), "--tol", "1e-6", "--format", "json", "--log-level", "error"}, args...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, r); err != nil {
		return fmt.Errorf("obstacle %s: %w in %.200s", command, err, out)
	}
	if !r.Converged || r.Seconds <= 0 || r.Sweeps <= 0 {
		return fmt.Errorf("obstacle %s did not run as told: %+v", command, *r)
	}
	return nil
}

// account holds the prediction against the median of what was run.
func (c *homeCase) account(cores int) []measurement {
	real, sweeps := over("home", c.String()+": real", "s", c.seconds), over("home", c.String()+": sweeps", "", c.sweeps)
	limit := float64(homeNear)
	if c.peers > cores {
		limit = homeMore
	}
	off := func(name string, predicted, median, limit float64) measurement {
		return over("home", c.String()+": "+name, "%", []float64{100 * (predicted/median - 1)}).between(-limit, limit)
	}
	out := []measurement{
		real,
		over("home", c.String()+": predicted", "s", []float64{c.predicted.Seconds}),
		off("error of the time", c.predicted.Seconds, real.Value, limit),
	}
	if c.scheme == "async" {
		out = append(out, off("error of the sweeps", c.predicted.Sweeps, sweeps.Value, homeSweeps))
	}
	return out
}
