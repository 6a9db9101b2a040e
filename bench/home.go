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
	peers            int
	scheme           string
	predicted, meant []float64 // seconds, sweeps
	seconds, relaxed []float64 // of what was run
}

func (c *homeCase) String() string { return fmt.Sprintf("%s, %d peers", c.scheme, c.peers) }

// athome sets the simulator, calibrated here, beside real runs of processes over loopback. Each
// round calibrates, predicts and then runs, since the speed of a shared machine drifts.
func athome(ctx context.Context, b *bench) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	var cases []*homeCase
	for _, peers := range homePeers {
		for _, scheme := range []string{"sync", "async"} {
			cases = append(cases, &homeCase{peers: peers, scheme: scheme})
		}
	}
	for range min(b.rounds, homeRounds) {
		for _, c := range cases {
			peers, model := strconv.Itoa(c.peers), filepath.Join(b.tmp, "home.yaml")
			if _, err := b.command(ctx, nil, bin, "calibrate", "--n", strconv.Itoa(homeN), "--peers", peers, "--out", model); err != nil {
				return err
			}
			var p, r rehearsed
			if err := b.rehearse(ctx, &p, bin, "simulate", "--model", model, "--machines", peers, "--scheme", c.scheme); err != nil {
				return err
			}
			if err := b.rehearse(ctx, &r, bin, "solve", "--peers", peers, "--scheme", c.scheme, "--threads", "1", "--together", "1", "--network", "ether"); err != nil {
				return err
			}
			c.predicted, c.meant = append(c.predicted, p.Seconds), append(c.meant, p.Sweeps)
			c.seconds, c.relaxed = append(c.seconds, r.Seconds), append(c.relaxed, r.Sweeps)
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

// account holds the median of the predictions against the median of what was run.
func (c *homeCase) account(cores int) []measurement {
	predicted, real := over("home", c.String()+": predicted", "s", c.predicted), over("home", c.String()+": real", "s", c.seconds)
	meant, sweeps := over("home", c.String()+": predicted sweeps", "", c.meant), over("home", c.String()+": sweeps", "", c.relaxed)
	limit := float64(homeNear)
	if c.peers > cores {
		limit = homeMore
	}
	off := func(name string, predicted, median, limit float64) measurement {
		return over("home", c.String()+": "+name, "%", []float64{100 * (predicted/median - 1)}).between(-limit, limit)
	}
	out := []measurement{real, predicted, off("error of the time", predicted.Value, real.Value, limit)}
	if c.scheme == "async" {
		out = append(out, sweeps, meant, off("error of the sweeps", meant.Value, sweeps.Value, homeSweeps))
	}
	return out
}
