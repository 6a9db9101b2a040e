package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// exitStopped is the program's exit code when it stopped before the tolerance,
// as these runs do.
const exitStopped = 3

// solution is what these measurements read of the JSON of solve.
type solution struct {
	Seconds                    float64 `json:"seconds"`
	SequentialEquivalentSweeps float64 `json:"sequential_equivalent_sweeps"`
	Peers                      int     `json:"peers"`
	Threads                    int     `json:"threads"`
	Network                    string  `json:"network"`
	InProcess                  bool    `json:"in_process"`
	Kernel                     string  `json:"kernel"`
	PerPeer                    []struct {
		Points int   `json:"points"`
		Peak   int64 `json:"peak_resident_bytes"`
		Idle   int64 `json:"idle_resident_bytes"`
	} `json:"per_peer"`
}

// build compiles the program once.
func (b *bench) build(ctx context.Context) (string, error) {
	bin := filepath.Join(b.tmp, "obstacle")
	_, err := b.command(ctx, nil, "go", "build", "-o", bin, "./cmd/obstacle")
	return bin, err
}

// solve runs the reference case for a number of sweeps, with a tolerance that it
// does not reach.
func (b *bench) solve(ctx context.Context, bin, scheme, n string, peers, sweeps int) (s solution, err error) {
	out, err := b.command(ctx, nil, bin, "solve", "membrane", "--n", n, "--scheme", scheme,
		"--peers", strconv.Itoa(peers), "--threads", "1", "--together", "1", "--tol", "1e-13", "--max-sweeps", strconv.Itoa(sweeps),
		"--format", "json", "--log-level", "error")
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitStopped) {
		return s, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("obstacle solve: %w in %.200s", err, out)
	}
	if s.Peers != peers || s.Threads != 1 || s.InProcess || len(s.PerPeer) != peers || s.Seconds <= 0 {
		return s, fmt.Errorf("obstacle solve did not run as told: %+v", s)
	}
	return s, nil
}

const (
	memoryN      = 256
	memorySweeps = 20
	memoryLimit  = 44 // bytes per own point
)

// memory is the peak of a peer's resident memory, less what it had before it knew
// its block, per own point; the worst of two peers.
func memory(ctx context.Context, b *bench) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	for _, scheme := range []string{"sync", "async"} {
		var worst, idle []float64
		for range min(b.rounds, 3) {
			s, err := b.solve(ctx, bin, scheme, strconv.Itoa(memoryN), 2, memorySweeps)
			if err != nil {
				return err
			}
			most, least := 0.0, 0.0
			for _, p := range s.PerPeer {
				if p.Points == 0 || p.Peak <= 0 || p.Idle <= 0 {
					return fmt.Errorf("obstacle solve does not know its memory: %+v", p)
				}
				most = max(most, float64(p.Peak-p.Idle)/float64(p.Points))
				least = max(least, float64(p.Idle)/(1<<20))
			}
			worst, idle = append(worst, most), append(idle, least)
		}
		b.report.add(over("memory", scheme+", 256³ on two peers", "bytes/point", worst).atMost(memoryLimit),
			over("memory", scheme+", an idle peer", "MiB", idle))
	}
	return nil
}

const (
	speedupN      = 128
	speedupSweeps = 400
	speedupTarget = 1.8
)

// speedup compares two peers of one thread each with one, in turn; and, as the
// limit that the machine sets, two peers that each have half of the points and
// tell each other nothing.
func speedup(ctx context.Context, b *bench) error {
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	whole := strconv.Itoa(speedupN)
	half := fmt.Sprintf("%d,%d,%d", speedupN, speedupN, speedupN/2)
	for _, scheme := range []string{"sync", "async"} {
		var one, two, apart []float64
		for round := -1; round < b.rounds; round++ {
			a, err := b.solve(ctx, bin, scheme, whole, 1, speedupSweeps)
			if err != nil {
				return err
			}
			c, err := b.solve(ctx, bin, scheme, whole, 2, speedupSweeps)
			if err != nil {
				return err
			}
			slower, err := b.apart(ctx, bin, scheme, half)
			if err != nil {
				return err
			}
			if round >= 0 {
				one = append(one, a.SequentialEquivalentSweeps/a.Seconds)
				two = append(two, c.SequentialEquivalentSweeps/c.Seconds)
				apart = append(apart, slower)
			}
		}
		b.report.add(over("speedup", scheme+", one peer", "sweeps/s", one),
			over("speedup", scheme+", two peers", "sweeps/s", two),
			over("speedup", scheme+", two / one", "ratio", ratios(two, one)).atLeast(speedupTarget),
			over("speedup", scheme+", two halves that exchange nothing / one", "ratio", ratios(apart, one)).
				because("the limit that memory and caches shared by two cores set on this machine"),
			over("speedup", scheme+", two / two halves that exchange nothing", "ratio", ratios(two, apart)))
	}
	return nil
}

// apart runs two solves of one peer side by side and gives the sweeps per second
// of the slower.
func (b *bench) apart(ctx context.Context, bin, scheme, n string) (float64, error) {
	type result struct {
		s   solution
		err error
	}
	done := make(chan result, 2)
	for range 2 {
		go func() {
			s, err := b.solve(ctx, bin, scheme, n, 1, speedupSweeps)
			done <- result{s, err}
		}()
	}
	p, q := <-done, <-done
	if err := errors.Join(p.err, q.err); err != nil {
		return 0, err
	}
	return speedupSweeps / max(p.s.Seconds, q.s.Seconds), nil
}
