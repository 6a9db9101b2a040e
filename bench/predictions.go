package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// predictedLoss is a run of this machine that loses a process at half-time, and its simulation.
type predictedLoss struct {
	name, n, scheme string
	peers           int
	launcher        bool    // is lost, not a peer
	time            float64 // largest relative error of the predicted time
	recovery        float64 // of the predicted time of recovery; 0: there is none
}

// predictedLosses have two peers, as many as the machines on which they are measured have processors. Of a run of four,
// the launcher is lost: no peer stops.
var predictedLosses = []predictedLoss{
	{name: "synchronous, 2 peers of 64³", n: "64", scheme: "sync", peers: 2, time: 0.15, recovery: 0.5},
	{name: "asynchronous, 2 peers of 64³", n: "64", scheme: "async", peers: 2, time: 0.15, recovery: 0.5},
	{name: "asynchronous, 4 peers of 64³, the launcher", n: "64", scheme: "async", peers: survivePeers, launcher: true, time: 0.25},
}

// predictions compares runs that lose a process at half-time with runs of the simulator, calibrated here, that do so.
func predictions(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	for i := range predictedLosses {
		if err := predictedLosses[i].compare(ctx, r, program); err != nil {
			return fmt.Errorf("%s: %w", predictedLosses[i].name, err)
		}
	}
	return nil
}

// compare calibrates, and does and simulates a run without a loss and one with a loss at half of its time, in every
// round.
func (p *predictedLoss) compare(ctx context.Context, r *measure.Run, program string) error {
	var total, recovery [2][]float64 // simulated, real
	early := 0
	for round := range r.Repeat(min(r.Rounds, 5)) {
		model := filepath.Join(r.Temp, fmt.Sprintf("predictions-%d.yaml", round))
		_, err := r.Command(ctx, nil, program, "calibrate", "--n", p.n, "--peers", fmt.Sprint(p.peers), "--scheme", p.scheme,
			"--out", model)
		if err != nil {
			return err
		}
		var pair [2]survived
		for k, run := range []func(after time.Duration, rank int) (survived, error){
			func(after time.Duration, rank int) (survived, error) {
				return p.simulate(ctx, program, model, after, rank)
			},
			func(after time.Duration, rank int) (survived, error) { return p.run(ctx, r, program, after, rank) },
		} {
			calm, err := run(0, 0)
			if err == nil {
				pair[k], err = run(time.Duration(calm.Seconds/2*float64(time.Second)), round%p.peers)
			}
			if err != nil {
				return err
			}
		}
		if !p.launcher && (len(pair[0].Losses) == 0 || len(pair[1].Losses) == 0) {
			early++ // the run was so much faster than the one before that it ended before the loss
			continue
		}
		for k, s := range pair {
			total[k] = append(total[k], s.Seconds)
			if len(s.Losses) > 0 && s.Losses[0].Recovered != nil {
				recovery[k] = append(recovery[k], *s.Losses[0].Recovered-s.Losses[0].Detected)
			}
		}
	}
	m := measure.Over(p.name+": predicted time with a loss", "s", total[0]).Against("real", total[1]).
		RatioAtLeast(1 - p.time).RatioAtMost(1 + p.time)
	if early > 0 {
		m = m.Because(fmt.Sprintf("%d runs ended before the loss.", early))
	}
	r.Add(m)
	if p.recovery > 0 {
		r.Add(measure.Over(p.name+": predicted time from the loss to relaxation", "s", recovery[0]).
			Against("real", recovery[1]).RatioAtLeast(1 - p.recovery).RatioAtMost(1 + p.recovery))
	}
	return nil
}

// run does a run over loopback that loses a process after so long; 0: none.
func (p *predictedLoss) run(ctx context.Context, r *measure.Run, program string, after time.Duration, rank int) (
	s survived, err error,
) {
	args := []string{"--scheme", p.scheme, "--sweeps-per-pass", "1", "--network", "ether"}
	if p.launcher {
		s, err = killLauncher(ctx, r, program, p.n, after.Seconds(), args...)
	} else {
		s, err = killAt(ctx, program, p.n, after.Seconds(), rank, append(args, "--peers", fmt.Sprint(p.peers))...)
	}
	if err == nil && !s.Converged {
		err = fmt.Errorf("the run did not converge, exit code %d", s.code)
	}
	return s, err
}

// simulate does the same run on a model of this machine.
func (p *predictedLoss) simulate(ctx context.Context, program, model string, after time.Duration, rank int) (
	s survived, err error,
) {
	lost, keepers := fmt.Sprint(rank), "1"
	if p.launcher {
		lost, keepers = "launcher", "3"
	}
	args := []string{"simulate", "membrane", "--n", p.n, "--model", model, "--machines", fmt.Sprint(p.peers), "--scheme",
		p.scheme, "--keepers", keepers, "--max-time", "1m", "--format", "json"}
	if after > 0 {
		args = append(args, "--kill", fmt.Sprintf("%s@%v", lost, after))
	}
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		s.code = exit.ExitCode()
	} else if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("obstacle simulate, exit code %d: %w in %.200s", s.code, err, out)
	}
	return s, nil
}
