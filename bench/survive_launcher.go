package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// launcherLimit bounds the time of a run that loses its launcher, relative to an undisturbed one. The peers do not stop.
const launcherLimit = 1.02

// lostLaunchers kills the launcher of a run after half of the time that the run takes undisturbed, and fetches the answer
// from the process that leads at the end.
func lostLaunchers(ctx context.Context, r *measure.Run, program string) error {
	for _, v := range disturbances[:2] {
		var times [2][]float64
		for range r.Repeat(min(r.Rounds, 3)) {
			calm, err := killLauncher(ctx, r, program, v.n, 0, v.args...)
			if err != nil {
				return err
			}
			lost, err := killLauncher(ctx, r, program, v.n, calm.Seconds/2, v.args...)
			if err != nil {
				return err
			}
			for k, s := range []survived{calm, lost} {
				if !s.Converged || s.code != 0 || len(s.Losses) > 0 {
					return fmt.Errorf("a run whose launcher is lost ended with exit code %d, %d losses", s.code, len(s.Losses))
				}
				times[k] = append(times[k], s.Seconds)
			}
		}
		r.Add(measure.Over(v.name+": time without the launcher", "s", times[1]).Against("undisturbed", times[0]).
			RatioAtMost(launcherLimit))
	}
	return nil
}

// killLauncher runs a solve with peers that are started by hand, and kills the launcher so many seconds after the first
// relaxation. 0: it is not killed. It returns the answer that an obstacle attach prints.
func killLauncher(
	ctx context.Context, r *measure.Run, program, n string, seconds float64, args ...string,
) (s survived, err error) {
	secret := filepath.Join(r.Temp, "secret")
	if err := os.WriteFile(secret, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return s, err
	}
	t, err := startTrial(ctx, direct, program, n, append(args, "--peers", fmt.Sprint(survivePeers),
		"--rendezvous", "127.0.0.1:0", "--secret-file", secret)...)
	if err != nil {
		return s, err
	}
	defer t.stop()
	address, err := next(ctx, t, t.listens, "waited for peers")
	if err != nil {
		return s, err
	}
	for range survivePeers {
		peer := exec.CommandContext(ctx, program, "peer", "--rendezvous", address, "--listen", "127.0.0.1", "--secret-file", secret)
		if err := peer.Start(); err != nil {
			return s, err
		}
		defer func() {
			_ = peer.Process.Kill()
			_ = peer.Wait()
		}()
	}
	begin, err := next(ctx, t, t.started, "started")
	if err != nil {
		return s, err
	}
	keepers, err := next(ctx, t, t.keepers, "agreed with keepers")
	if err != nil {
		return s, err
	}
	at := keepers[0]
	if seconds > 0 {
		at = keepers[1]
		if err := pause(ctx, time.Until(begin.Add(time.Duration(seconds*float64(time.Second))))); err != nil {
			return s, err
		}
		if err := t.cmd.Process.Kill(); err != nil {
			return s, fmt.Errorf("killing the launcher: %w", err)
		}
	}
	return attached(ctx, program, at, secret)
}

// attached returns the answer of a run that obstacle attach fetches.
func attached(ctx context.Context, program, address, secret string) (s survived, err error) {
	out, err := exec.CommandContext(ctx, program, "attach", address, "--secret-file", secret, "--format", "json").Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		s.code = exit.ExitCode()
	} else if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("obstacle attach, exit code %d: %w in %.200s", s.code, err, out)
	}
	return s, nil
}
