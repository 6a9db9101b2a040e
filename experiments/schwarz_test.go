package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A measured number of cycles costs little more than the best fixed one, whether that is small or
// large.
func TestMeasuredCyclesAreNearTheBest(t *testing.T) {
	for name, c := range map[string]struct {
		local   string
		latency time.Duration
		s       iterate.Scheme
		best    int
	}{
		"new values at every relaxation": {problem.Multigrid, 5 * time.Microsecond, iterate.Asynchronous(), 1},
		"expensive relaxations":          {problem.SOR, 5 * time.Microsecond, iterate.Asynchronous(), 8},
		"a long latency":                 {problem.SOR, time.Millisecond, iterate.Synchronous(), 16},
	} {
		if testing.Short() && c.best == 8 { // neither small nor large
			continue
		}
		t.Run(name, func(t *testing.T) {
			e := cyclesOf(c.local, c.latency, c.s)
			measured, err := meanSeconds(context.Background(), e, 1)
			require.NoError(t, err)
			e.method.InnerCycles = c.best
			fixed, err := meanSeconds(context.Background(), e, 1)
			require.NoError(t, err)
			t.Logf("measured work %.3g s, work %d %.3g s", measured, c.best, fixed)
			require.Less(t, measured, 1.15*fixed)
		})
	}
}
