package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
)

// silentLimit bounds the time from the last frame of a host until the run goes on without it, in seconds.
const silentLimit = 1.5

// silentHost cuts the wire to one of two hosts, and measures the time until the run goes on without it. A spare peer
// waits on the other host.
func silentHost(ctx context.Context, r *measure.Run, program string) error {
	for _, scheme := range []string{"sync", "async"} {
		name := map[string]string{"sync": "synchronous", "async": "asynchronous"}[scheme] +
			", a host is silent: from the cut to relaxation"
		var seconds []float64
		for range r.Repeat(min(r.Rounds, 2)) {
			err := measure.InLab(func(tb netlab.Reporter) error {
				lab := netlab.New(tb)
				near, far := lab.Join(lab.Host("near"), lab.Host("far"), netlab.Wire{})
				s, err := cutWire(ctx, r, program, scheme, near, far)
				seconds = append(seconds, s)
				return err
			})
			if errors.Is(err, measure.ErrUnavailable) {
				r.Skip(name, err)
				break
			}
			if err != nil {
				return err
			}
		}
		if len(seconds) > 0 {
			r.Add(measure.Over(name, "s", seconds).AtMost(silentLimit))
		}
	}
	return nil
}

// cutWire runs two peers on two hosts, cuts the wire between them and returns the seconds until all peers relax again.
func cutWire(
	ctx context.Context, r *measure.Run, program, scheme string, near, far netlab.End,
) (seconds float64, err error) {
	secret := filepath.Join(r.Temp, "secret")
	if err := os.WriteFile(secret, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return 0, err
	}
	t, err := startTrial(ctx, near.Host.Do, program, "64,64,128", "--peers", "2", "--scheme", scheme, "--tol", unmet,
		"--max-time", "1m", "--rendezvous", net.JoinHostPort(near.IPv4.String(), "0"), "--secret-file", secret)
	if err != nil {
		return 0, err
	}
	defer t.stop()
	address, err := next(ctx, t, t.listens, "waited for peers")
	if err != nil {
		return 0, err
	}
	for i, end := range []netlab.End{near, far, near} {
		args := []string{"peer", "--rendezvous", address, "--listen", end.IPv4.String(), "--secret-file", secret}
		if i < 2 {
			args = append(args, "--seat", []string{"0", "1"}[i])
		} else if _, err := next(ctx, t, t.started, "started"); err != nil {
			return 0, err
		}
		peer := exec.CommandContext(ctx, program, args...)
		if err := end.Host.Do(peer.Start); err != nil {
			return 0, err
		}
		defer func() {
			_ = peer.Process.Kill()
			_ = peer.Wait()
		}()
	}
	if err := pause(ctx, time.Second); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := far.Cut(); err != nil {
		return 0, err
	}
	end, err := next(ctx, t, t.recovered, "recovered")
	return end.Sub(begin).Seconds(), err
}
