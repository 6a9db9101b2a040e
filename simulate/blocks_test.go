package simulate

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Reading the blocks while a run goes on changes nothing of it: not one bit, time or event. The blocks cover the grid,
// and differ from one call to the next.
func TestBlocksMayBeRead(t *testing.T) {
	defer func(every int) { watchEvery = every }(watchEvery)
	watchEvery = 8
	for _, c := range []struct {
		scheme iterate.Scheme
		method string
		kill   bool
	}{
		{iterate.Synchronous(), "richardson", false}, {iterate.Asynchronous(), "richardson", true},
		{iterate.Synchronous(), "sor", true}, {iterate.Synchronous(), "multigrid", false}, {iterate.Asynchronous(), "schwarz", false},
	} {
		t.Run(c.scheme.Name()+" "+c.method, func(t *testing.T) {
			run, alone := undisturbed(t, c.scheme, c.method)
			run.Threads = 2
			events := []cluster.Event{{At: alone.Virtual / 2, Rank: 3, Killed: true}}
			if !c.kill {
				events = nil
			}
			plain := played(t, run, events...)
			p := run.Solver.Problem
			var read [][]float64
			run.Watch = func(at Progress) {
				u := slices.Repeat([]float64{math.NaN()}, p.Points())
				at.Blocks(func(box problem.Box, values func(dst []float64, part problem.Box)) {
					block := make([]float64, box.Points())
					values(block, box)
					virtual.Place(u, p.N, box, block)
				})
				require.False(t, slices.ContainsFunc(u, math.IsNaN))
				if len(read) == 0 || !slices.Equal(read[len(read)-1], u) {
					read = append(read, u)
				}
			}
			require.Equal(t, plain, played(t, run, events...))
			require.Greater(t, len(read), 5)
		})
	}
}
