package main

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Five sweeps by the worker, and five time-tiled ones, are those of the reference kernel.
func TestWorkerRelaxesAsTheReference(t *testing.T) {
	const n = 15
	c, u, v, err := reference(n)
	require.NoError(t, err)
	c.Kernel = kernel.All()[0]
	s, err := kernel.New(c)
	require.NoError(t, err)
	for range checkSweeps {
		s.Relax(v, u, u, c.Layout.Interior())
		u, v = v, u
	}
	dir := t.TempDir()
	want, got := filepath.Join(dir, "want"), filepath.Join(dir, "got")
	require.NoError(t, dump(want, c.Layout, u))
	for _, loop := range []string{"relax", "tiled", kernel.Best().Name()} {
		var out bytes.Buffer
		require.NoError(t, workKernels(n, strings.NewReader("check:"+loop+" "+got+"\n"), &out))
		worst, same, err := largestDifference(want, got)
		require.NoError(t, err)
		require.True(t, same, "%s: %v apart", loop, worst)
	}

	u[c.Layout.Index(3, 3, 3)] = math.Nextafter(u[c.Layout.Index(3, 3, 3)], 2)
	require.NoError(t, dump(want, c.Layout, u))
	worst, same, err := largestDifference(want, got)
	require.NoError(t, err)
	require.False(t, same)
	require.Positive(t, worst)
}

func TestEveryLoopRuns(t *testing.T) {
	var lines strings.Builder
	commands := 0
	for _, l := range kernelLoops() {
		lines.WriteString(l.word + " 3\n" + l.word + ":2 3\n")
		commands += 2
	}
	for _, k := range kernel.All() {
		lines.WriteString(k.Name() + " 2\n")
		commands++
	}
	const n = 15 // coarsens
	var out bytes.Buffer
	require.NoError(t, workKernels(n, strings.NewReader(lines.String()), &out))
	require.Len(t, strings.Fields(out.String()), commands)
	require.ErrorContains(t, workKernels(n, strings.NewReader("jump 1\n"), &out), "jump")
	require.Error(t, workKernels(n, strings.NewReader("relax fast\n"), &out))
}
