package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A sweep on a proxy grid takes the time of one on the full grid.
func TestProxyGridIsValid(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		sweep, err := compareSweeps(context.Background(), s, 64, 2)
		require.NoError(t, err)
		require.InDelta(t, 1, sweep, 0.03)
	}
}

// Old values cost twice as many sweeps on a grid twice as coarse. With half of these sweeps the proxy
// grid takes the time of the full one.
func TestOldValuesOnAProxyGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	l, err := compareRuns(context.Background(), iterate.Asynchronous(), 32, 2, 8)
	require.NoError(t, err)
	require.Greater(t, l.met, 1.15)
	require.InDelta(t, 1, l.comparable, 0.08)
	l, err = compareRuns(context.Background(), iterate.Synchronous(), 32, 2, 8)
	require.NoError(t, err)
	require.InDelta(t, l.met, l.comparable, 0.01)
}

// On 64 machines overlap, boxes and an adapter that needs no processor each save time.
func TestRefinementsHelp(t *testing.T) {
	sweeps := iterate.Iteration(8)
	if testing.Short() {
		sweeps = 4
	}
	all := map[string]float64{}
	for _, r := range refinements() {
		if r.async || r.network == "eth" || r.cut == "slabs" {
			continue
		}
		x := r.sample("ib")
		x.Side, x.Scale = 32, 8
		x.Sweeps = sweeps
		p, err := project(context.Background(), x)
		require.NoError(t, err)
		require.Equal(t, 1.0, p.more)
		all[r.name] = p.all
	}
	base := all[refinements()[0].name]
	require.Greater(t, base, published.Sequential/64.)
	require.Less(t, all["overlap of communication and relaxation"], base)
	require.Less(t, all["boxes"], base)
	require.Less(t, all["one-sided halos, boxes, overlap"], all["boxes"])
	require.GreaterOrEqual(t, all["one-sided halos, boxes, overlap"], published.Sequential/64.*0.999)
}

// Old values cost relaxations; new ones do not.
func TestCostOfOldValues(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	x := measure.Sample{Cluster: "graphene-ib", Machines: 8, Side: 16, Scale: 16, Scheme: iterate.Synchronous()}
	more, err := costOfOldValues(context.Background(), x)
	require.NoError(t, err)
	require.InDelta(t, 1, more, 0.03)
	x.Scheme = iterate.Asynchronous()
	old, err := costOfOldValues(context.Background(), x)
	require.NoError(t, err)
	require.InDelta(t, 1, old, 0.1)
	x.Change = func(m *cluster.Model) { m.Networks[0].Latency = 50 * time.Millisecond } // four sweeps
	older, err := costOfOldValues(context.Background(), x)
	require.NoError(t, err)
	require.Greater(t, older, old+0.01)
	_, err = equivalent(8, 2)
	require.ErrorContains(t, err, "residual of 2")
}

func TestScalingFigure(t *testing.T) {
	var values [][]float64
	for _, c := range scalings() {
		values = append(values, make([]float64, len(c.machines)))
	}
	path := filepath.Join(t.TempDir(), "efficiency.png")
	require.NoError(t, drawScalings(path, scalings(), values))
	s, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, s.Size(), int64(10000))
	values[0][0] = math.NaN()
	require.ErrorContains(t, drawScalings(path, scalings(), values), "graphene-ib, 256³")
}
