package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// direct solves the equations of the rod by elimination.
func direct() []float64 {
	upper, x := make([]float64, points), make([]float64, points)
	for i := range x {
		pivot := 2.0 + loss
		if x[i] = source(i); i > 0 {
			pivot -= upper[i-1]
			x[i] += x[i-1]
		}
		upper[i], x[i] = 1/pivot, x[i]/pivot
	}
	for i := points - 2; i >= 0; i-- {
		x[i] += upper[i] * x[i+1]
	}
	return x
}

// solved runs an iteration, requires the right answer and the given losses, and returns the sweeps.
func solved(t *testing.T, s *supervisor, lost ...iterate.Rank) iterate.Iteration {
	t.Helper()
	s.blocks = parts(4)
	require.NoError(t, s.run(t.Context()))
	require.ElementsMatch(t, lost, s.lost)
	// The error is at most the residual times (2 + loss)/loss.
	require.InDeltaSlice(t, direct(), slices.Concat(s.x...), tolerance*(2+loss)/loss)
	return s.sweeps
}

// schemes returns the schemes of a test.
func schemes() []iterate.Scheme {
	all := []iterate.Scheme{iterate.Asynchronous(), iterate.Synchronous(), iterate.Hybrid([]int{0, 0, 1, 1})}
	if testing.Short() {
		return all[:1]
	}
	return all
}

// A run goes on when any peer is lost, two neighbours at once, or another one after that.
func TestRunSurvivesLosses(t *testing.T) {
	for name, kills := range map[string][]kill{
		"none":         nil,
		"first":        {{rank: 0, sweeps: 100}},
		"middle":       {{rank: 1, sweeps: 100}},
		"neighbours":   {{rank: 1, sweeps: 100}, {rank: 2, sweeps: 100}},
		"at the start": {{rank: 3, sweeps: 0}},
		"again":        {{rank: 1, sweeps: 100}, {epoch: 1, rank: 1, sweeps: 100}, {epoch: 2, rank: 0, sweeps: 100}},
	} {
		for _, scheme := range schemes() {
			t.Run(name+", "+scheme.Name(), func(t *testing.T) {
				var lost []iterate.Rank
				for _, k := range kills {
					lost = append(lost, k.rank)
				}
				if name != "neighbours" {
					solved(t, &supervisor{scheme: scheme, kills: kills}, lost...)
					return
				}
				// The second one may have stopped before its end.
				s := &supervisor{scheme: scheme, kills: kills, blocks: parts(4)}
				require.NoError(t, s.run(t.Context()))
				require.Subset(t, lost, s.lost)
				require.InDeltaSlice(t, direct(), slices.Concat(s.x...), tolerance*(2+loss)/loss)
			})
		}
	}
}

// In lockstep a repaired block costs next to no sweeps. A block that begins again costs half of those before the loss.
func TestRepairSavesSweeps(t *testing.T) {
	alone := solved(t, &supervisor{scheme: iterate.Synchronous()})
	kills := []kill{{rank: 1, sweeps: 800}}
	repaired := solved(t, &supervisor{scheme: iterate.Synchronous(), kills: kills}, 1)
	again := solved(t, &supervisor{scheme: iterate.Synchronous(), kills: kills, forget: true}, 1)
	require.InDelta(t, float64(alone), float64(repaired), 64, "the interval of checks, twice")
	require.Greater(t, float64(again), float64(repaired)+400)
}

// The starting values of a lost neighbour stand for its values until it is repaired, too.
func TestRepairOfNeighbours(t *testing.T) {
	s := &supervisor{blocks: parts(4)}
	want := direct()
	for r, b := range s.blocks {
		s.x = append(s.x, slices.Clone(want[points*r/4:points*r/4+b.Values()]))
	}
	require.NoError(t, s.repair([]iterate.Rank{2}))
	require.InDeltaSlice(t, want, slices.Concat(s.x...), 1e-5, "one lost block is repaired exactly")
	require.NoError(t, s.repair([]iterate.Rank{1, 2}))
	worst, starts := 0.0, 0.0
	for i, v := range slices.Concat(s.x...) {
		worst, starts = max(worst, math.Abs(v-want[i])), max(starts, want[i])
	}
	require.Less(t, worst, starts)
	require.Positive(t, worst)
}

func TestBlocks(t *testing.T) {
	require.NoError(t, iteratetest.Suite{Blocks: parts(4), Seeds: 2}.Check())
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	require.Error(t, show(t.Context(), &out, []string{"sync", "sync"}))
	require.Error(t, show(t.Context(), &out, []string{"never"}))
	if testing.Short() {
		t.Skip("three runs that other tests make, too")
	}
	require.NoError(t, show(t.Context(), &out, []string{"sync"}))
	require.Equal(t, 3, strings.Count(out.String(), "hottest point 23.5248"))
}
