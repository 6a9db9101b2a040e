package main

import (
	"context"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// copiesN is the grid of copies, and copiesBytes the memory that copies may take, for each point of a peer.
const (
	copiesN     = 96
	copiesBytes = 24
)

// exactDisturbances are runs that lose a peer and go back to a kept iterate.
var exactDisturbances = []disturbance{
	{"synchronous, 96³", "96", []string{"--scheme", "sync", "--recover", "exact"}, 1.15},
	{"SOR, 160³", "160", []string{"--method", "sor", "--tol", "1e-10", "--recover", "exact"}, 1.15},
	{"multigrid, 255³", "255", []string{"--method", "multigrid", "--tol", "1e-10", "--recover", "exact"}, 1.15},
}

// copies measures runs whose peers keep copies (--recover exact), with a loss and without.
func copies(ctx context.Context, r *measure.Run) error {
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	if err := killsAtHalfTime(ctx, r, program, exactDisturbances); err != nil {
		return err
	}
	var times, peaks [2][]float64
	for range r.Repeat(min(r.Rounds, 5)) {
		for k, recover := range []string{"local", "exact"} {
			s, err := killAt(ctx, program, fmt.Sprint(copiesN), 0, 0, "--scheme", "sync", "--peers", fmt.Sprint(survivePeers),
				"--recover", recover)
			if err != nil {
				return err
			}
			peak := 0.0
			for _, p := range s.PerPeer {
				peak = max(peak, float64(p.Peak))
			}
			times[k], peaks[k] = append(times[k], s.Seconds), append(peaks[k], peak)
		}
	}
	r.Add(measure.Over("no loss, 96³: time with --recover exact", "s", times[1]).Against("--recover local", times[0]).
		RatioAtMost(1.02))
	if peaks[0][0] > 0 {
		const points = copiesN * copiesN * copiesN / survivePeers
		r.Add(measure.One("no loss, 96³: memory for copies, largest peer", "bytes a point",
			(measure.Median(peaks[1])-measure.Median(peaks[0]))/points).AtMost(copiesBytes))
	}
	return nil
}
