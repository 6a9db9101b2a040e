package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// A stand-in takes the time of what it stands for.
func TestStandInIsValid(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		sweep, err := compareSweeps(context.Background(), s, 64, 2)
		require.NoError(t, err)
		require.InDelta(t, 1, sweep, 0.03)
	}
}

// Stale values cost twice as many sweeps on a grid twice as coarse; with half of them it takes what the
// fine grid takes.
func TestStaleValuesOnAStandIn(t *testing.T) {
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

// On 64 machines overlap helps, boxes do, and an adapter that needs no processor does.
func TestRefinementsHelp(t *testing.T) {
	all := map[string]float64{}
	for _, r := range refinements() {
		if r.async || r.network == "eth" || r.cut == "slabs" {
			continue
		}
		r := r
		x := r.trial("ib")
		x.side, x.standing, x.sweeps = 32, 8, 8
		p, err := project(context.Background(), x)
		require.NoError(t, err)
		require.Equal(t, 1.0, p.more)
		all[r.name] = p.all
	}
	base := all[refinements()[0].name]
	require.Greater(t, base, publishedSeconds/64.)
	require.Less(t, all["overlap of communication and relaxation"], base)
	require.Less(t, all["boxes"], base)
	require.Less(t, all["one-sided halos, boxes, overlap"], all["boxes"])
	require.GreaterOrEqual(t, all["one-sided halos, boxes, overlap"], publishedSeconds/64.*0.999)
}

// Values that are older cost relaxations; fresh ones do not.
func TestStaleness(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	x := trial{cluster: "graphene-ib", machines: 8, side: 16, standing: 16, scheme: iterate.Synchronous()}
	more, err := staleness(context.Background(), x)
	require.NoError(t, err)
	require.InDelta(t, 1, more, 0.03)
	x.scheme = iterate.Asynchronous()
	old, err := staleness(context.Background(), x)
	require.NoError(t, err)
	require.InDelta(t, 1, old, 0.1)
	x.change = func(m *cluster.Model) { m.Networks[0].Latency = 50 * time.Millisecond } // four sweeps
	older, err := staleness(context.Background(), x)
	require.NoError(t, err)
	require.Greater(t, older, old+0.01)
	_, err = equivalent(8, 2)
	require.ErrorContains(t, err, "residual of 2")
}

func TestEachStopsAtAnError(t *testing.T) {
	wrong := errors.New("wrong")
	done := make([]bool, 1000)
	err := each(context.Background(), len(done), func(_ context.Context, i int) error {
		done[i] = true
		if i == 1 {
			return wrong
		}
		return nil
	})
	require.ErrorIs(t, err, wrong)
	require.False(t, done[999])
	require.NoError(t, each(context.Background(), 3, func(context.Context, int) error { return nil }))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, each(ctx, 3, func(context.Context, int) error { return nil }), context.Canceled)
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
