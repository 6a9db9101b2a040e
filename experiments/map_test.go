package main

import (
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A machine 4 times slower costs the synchronous scheme more than the asynchronous one, and much more
// than equal machines.
func TestMapOfSlowdown(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	m := &ratioMap{slowdowns: []float64{1, 4}, latencies: []time.Duration{200 * time.Microsecond}}
	require.NoError(t, m.explore(context.Background()))
	require.Greater(t, m.sync[0][1], 3*m.sync[0][0])
	require.Greater(t, m.ratio(0, 1), 1.2)
	require.Greater(t, m.ratio(0, 1), 1.2*m.ratio(0, 0))
	require.Less(t, m.ratio(0, 0), 1.5)
}

func TestMapIsDrawnAndWritten(t *testing.T) {
	m := &ratioMap{
		slowdowns: []float64{1, 2}, latencies: []time.Duration{time.Microsecond, time.Millisecond, time.Second},
		sync: [][]float64{{1, 2}, {3, 4}, {5, 6}}, async: [][]float64{{2, 2}, {2, 2}, {2, 1}},
	}
	base := filepath.Join(t.TempDir(), "map")
	require.NoError(t, m.draw(base+".png"))
	require.NoError(t, m.write(base+".csv"))
	text, err := os.ReadFile(base + ".csv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 7)
	require.Equal(t, "1e-06,1,1,2,0.5", lines[1])
	require.Equal(t, "1,2,6,1,6", lines[6])
	f, err := os.Open(base + ".png")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	colour := func(x, y float64) (red, blue uint32) { // of a point, by shares of the picture
		b := picture.Bounds()
		r, _, l, _ := picture.At(int(x*float64(b.Dx())), int(y*float64(b.Dy()))).RGBA()
		return r, l
	}
	red, blue := colour(0.9, 0.2) // 6
	require.Greater(t, red, blue)
	red, blue = colour(0.2, 0.8) // 0.5
	require.Greater(t, blue, red)
}

func TestLostMachineEndsTheRun(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		after, err := loseMachine(context.Background(), s)
		require.NoError(t, err)
		require.Less(t, after, 12.0)
	}
}

// The hybrid scheme is compared where there are two sites.
func TestFaultsHaveSchemes(t *testing.T) {
	for _, f := range faultList() {
		s, err := f.schemes()
		require.NoError(t, err)
		names := []string{}
		for _, k := range s {
			names = append(names, k.Name())
		}
		if f.cluster == "" {
			require.Equal(t, []string{"sync", "async"}, names)
		} else {
			require.Equal(t, []string{"sync", "async", "hybrid"}, names)
		}
	}
}
