package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

const (
	killsPerRound  = 4 // of each kind of recovery
	recoveryMedian = 0.15
	recoveryP99    = 0.4
)

// recoveries measures the time from the detection of a loss until all peers relax again, on 64³ points a peer.
func recoveries(ctx context.Context, r *measure.Run, program string) error {
	kills := killsPerRound * min(r.Rounds, 4)
	for _, scheme := range []string{"sync", "async"} {
		for _, spare := range []bool{false, true} {
			s, err := killInTurn(ctx, program, kills, scheme, spare)
			if err != nil {
				return err
			}
			var total, repair []float64
			for _, l := range s.Losses {
				if l.Recovered != nil {
					total, repair = append(total, *l.Recovered-l.Detected), append(repair, l.Repair)
				}
			}
			if len(total) < kills {
				return fmt.Errorf("%d of %d losses have a time of recovery", len(total), kills)
			}
			name := map[string]string{"sync": "synchronous", "async": "asynchronous"}[scheme]
			name += ", 64³ a peer, " + map[bool]string{false: "a new process", true: "a spare one"}[spare]
			r.Add(measure.Over(name+": from a loss to relaxation", "s", total).AtMost(recoveryMedian),
				measure.One(fmt.Sprintf("%s: 99th percentile of %d", name, len(total)), "s", percentile(total, 99)).AtMost(recoveryP99),
				measure.Over(name+": of which the local solve", "s", repair))
		}
	}
	return nil
}

// percentile returns the least of the values that p % of them do not exceed. There is at least one.
func percentile(values []float64, p int) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[max(1, (p*len(s)+99)/100)-1]
}

// killInTurn kills the peers of one run in turn.
func killInTurn(ctx context.Context, program string, kills int, scheme string, spare bool) (survived, error) {
	args := []string{"--peers", fmt.Sprint(survivePeers), "--scheme", scheme, "--tol", unmet, "--max-time", "5m"}
	if spare {
		args = append(args, "--spares", fmt.Sprint(kills))
	}
	t, err := startTrial(ctx, direct, program, "128,128,64", args...)
	if err != nil {
		return survived{}, err
	}
	defer t.stop()
	if _, err = next(ctx, t, t.started, "started"); err != nil {
		return survived{}, err
	}
	for i := range kills {
		if err = pause(ctx, 300*time.Millisecond); err == nil {
			err = t.lose(ctx, i%survivePeers)
		}
		if err != nil {
			return survived{}, err
		}
	}
	t.stop()
	return t.answer()
}

// unmet is a tolerance that a run of a minute does not meet.
const unmet = "1e-13"

const (
	lossCount   = 200
	lossBatch   = 20 // losses over which the figures of processes are averaged
	lossTime    = 60 * time.Second
	betweenLoss = 200 * time.Millisecond
)

// footprint is what a process occupies.
type footprint struct{ descriptors, threads, resident float64 }

// manyLosses kills peers of one run again and again, and compares what the launcher and a survivor occupy after the
// first losses with what they occupy after the last.
func manyLosses(ctx context.Context, r *measure.Run, program string) error {
	const name = "many losses in one run"
	if _, err := footprintOf(os.Getpid()); err != nil {
		r.Skip(name, err)
		return nil
	}
	// The slow peer, which survives, is far from the solution at the end.
	t, err := startTrial(ctx, direct, program, "24", "--peers", fmt.Sprint(survivePeers), "--scheme", "async",
		"--tol", unmet, "--slowdown", "0:10000", "--max-time", "5m")
	if err != nil {
		return err
	}
	defer t.stop()
	if _, err = next(ctx, t, t.started, "started"); err != nil {
		return err
	}
	processes := map[string]int{"launcher": t.cmd.Process.Pid, "a survivor": t.pid(0)}
	seen := map[string][]footprint{}
	begin, losses := time.Now(), 0
	for ; losses < lossCount && time.Since(begin) < lossTime; losses++ {
		if err = pause(ctx, betweenLoss); err == nil {
			err = t.lose(ctx, 1+losses%(survivePeers-1))
		}
		for who, pid := range processes {
			f, missing := footprintOf(pid)
			if err == nil {
				err = missing
			}
			seen[who] = append(seen[who], f)
		}
		if err != nil {
			return fmt.Errorf("after %d losses: %w", losses, err)
		}
	}
	for _, who := range []string{"launcher", "a survivor"} {
		// The first losses fill caches and pools.
		first, last := seen[who][losses/10:][:min(lossBatch, losses/10+1)], seen[who][losses-min(lossBatch, losses):]
		for _, f := range []struct {
			name, unit string
			of         func(footprint) float64
			most       float64
		}{
			{"descriptors", "descriptors", func(f footprint) float64 { return f.descriptors }, 1},
			{"threads", "threads", func(f footprint) float64 { return f.threads }, 1.2},
			{"resident memory", "MB", func(f footprint) float64 { return f.resident / 1e6 }, 1.1},
		} {
			var a, b []float64
			for _, x := range first {
				a = append(a, f.of(x))
			}
			for _, x := range last {
				b = append(b, f.of(x))
			}
			one := fmt.Sprintf("%d losses in one run, %s: %s after the last", losses, who, f.name)
			r.Add(measure.Over(one, f.unit, b).Against("after the first", []float64{measure.Median(a)}).RatioAtMost(f.most))
		}
	}
	return nil
}

// footprintOf returns what a process occupies, where the system has a folder /proc.
func footprintOf(pid int) (f footprint, err error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		return f, fmt.Errorf("%w: %w", measure.ErrUnavailable, err)
	}
	f.descriptors = float64(len(open))
	text, err := os.ReadFile(dir + "status")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "Threads":
			f.threads = n
		case "VmRSS":
			f.resident = 1024 * n
		}
	}
	return f, err
}
