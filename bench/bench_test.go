package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

func TestMediansAndTargets(t *testing.T) {
	m := over("p", "n", "GLUP/s", []float64{3, 1, 2}).atLeast(2)
	require.Equal(t, []float64{2, 1, 3}, []float64{m.Value, m.Low, m.High})
	require.True(t, *m.Met)
	m = over("p", "n", "ns", []float64{4, 1, 2, 3}).atMost(2.4)
	require.Equal(t, 2.5, m.Value)
	require.False(t, *m.Met)
	require.NotEmpty(t, over("p", "n", "ns", nil).Note)
}

func TestReportIsRecorded(t *testing.T) {
	var r report
	r.begin(context.Background(), ".", 3)
	r.add(over("sweep", "go / C", "ratio", []float64{0.5}).atLeast(0.9).because("a reason"),
		measurement{Part: "sweep", Name: "C loop", Note: "skipped: there is no gcc here"})
	r.end()
	r.Commit = "0123abc"
	dir := t.TempDir()
	require.NoError(t, r.write(dir))
	base := filepath.Join(dir, r.Date.Format("2006-01-02")+"-0123abc")
	data, err := os.ReadFile(base + ".json")
	require.NoError(t, err)
	var back report
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, r, back)
	text, err := os.ReadFile(base + ".md")
	require.NoError(t, err)
	require.Contains(t, string(text), "| sweep | go / C [1] | 0.5 | 0.5 to 0.5 | ratio | ≥ 0.9 | NO |")
	require.Contains(t, string(text), "2. skipped: there is no gcc here")
}

// The worker's own check: five sweeps of the best variant are those of the
// reference variant.
func TestWorkerRelaxesAsTheReference(t *testing.T) {
	const n = 9
	file := filepath.Join(t.TempDir(), "u")
	var out bytes.Buffer
	require.NoError(t, work(n, strings.NewReader("check "+file+"\n"+kernel.Best().Name()+" 2\n"), &out))
	require.Len(t, strings.Fields(out.String()), 2)
	c, u, v, err := reference(n)
	require.NoError(t, err)
	c.Kernel, err = kernel.ByName("reference")
	require.NoError(t, err)
	s, err := kernel.New(c)
	require.NoError(t, err)
	for range 5 {
		s.Relax(v, u, u, c.Layout.Interior())
		u, v = v, u
	}
	want := filepath.Join(t.TempDir(), "want")
	require.NoError(t, dump(want, c.Layout, u))
	worst, same, err := largestDifference(want, file)
	require.NoError(t, err)
	require.True(t, same, "%v apart", worst)

	u[c.Layout.Index(3, 3, 3)] = math.Nextafter(u[c.Layout.Index(3, 3, 3)], 2)
	require.NoError(t, dump(want, c.Layout, u))
	worst, same, err = largestDifference(want, file)
	require.NoError(t, err)
	require.False(t, same)
	require.Positive(t, worst)
	require.Error(t, work(n, strings.NewReader("go fast"), &out))
}

func TestBenchmarkLinesAreUnderstood(t *testing.T) {
	m := regexp.MustCompile(benchLine).FindStringSubmatch("goos: linux\nBenchmarkDispatchFive-2   \t 7539854\t        31.85 ns/op\t       0 B/op\t       0 allocs/op\nPASS\n")
	require.Equal(t, []string{"31.85", "0"}, m[1:])
	m = regexp.MustCompile(segmentLine).FindStringSubmatch("BenchmarkSegment/inter/train/8B-2   \t 2000\t  3456 ns/op\t  54.0 ns/segment\t  64.00 segments/train\t  0 B/op\t  0 allocs/op\n")
	require.Equal(t, []string{"train", "54.0", "64.00", "0"}, m[1:])
}

func TestUnknownPartsAreRefused(t *testing.T) {
	require.ErrorContains(t, measure(context.Background(), "sweep,sleep", 1, true), "-only sleep")
}

func TestPeersOfTheAllocationCountRun(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		n, err := countAllocations(context.Background(), s, 50)
		require.NoError(t, err)
		require.Positive(t, n)
	}
}
