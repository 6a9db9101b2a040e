package cli

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

func cube(t *testing.T, n int) *problem.Problem {
	t.Helper()
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	return p
}

func TestPartitionOf(t *testing.T) {
	p := cube(t, 64)
	for _, c := range []struct {
		flag    string
		peers   int
		weights []float64
		parts   [3]int
		why     string
	}{
		{"auto", 1, nil, [3]int{1, 1, 1}, "there is one part"},
		{"auto", 2, nil, [3]int{1, 1, 2}, "the least surface for 2 parts"},
		{"auto", 4, nil, [3]int{1, 1, 4}, "slabs, whose faces are contiguous in memory; those of boxes have 67 % of"},
		{"auto", 27, nil, [3]int{3, 3, 3}, "boxes, whose faces have 23 % of the bytes of those of slabs"},
		{"auto", 64 * 64, nil, [3]int{16, 16, 16}, "fewer planes than 4096 slabs need"},
		{"slabs", 8, nil, [3]int{1, 1, 8}, "--partition slabs"},
		{"boxes", 8, nil, [3]int{2, 2, 2}, "--partition boxes"},
		{"auto", 3, []float64{1, 2, 1}, [3]int{1, 1, 3}, "follows the weights"},
		{"4,1,2", 8, nil, [3]int{4, 1, 2}, "--partition 4,1,2"},
	} {
		got, why, err := partitionOf(c.flag, p, c.peers, c.weights)
		require.NoError(t, err, c)
		require.Equal(t, c.parts, got.Parts(), c)
		require.Contains(t, why, c.why, c)
	}
	for flag, why := range map[string]string{"squares": "want auto", "1,2": "2 numbers", "0,1,1": "0 parts", "1,1,65": "only 64 points"} {
		_, _, err := partitionOf(flag, p, 1, nil)
		require.ErrorContains(t, err, why)
	}
	_, _, err := partitionOf("boxes", p, 2, []float64{1, 1})
	require.ErrorContains(t, err, "--weights needs slabs")
}

func TestDefaultWorkers(t *testing.T) {
	for _, c := range []struct {
		method                       string
		together                     bool
		points, cpus, peers, threads int
	}{
		{"richardson", false, 10, 8, 1, 1}, {"richardson", false, 1<<18 - 1, 8, 1, 1}, {"richardson", false, 1 << 24, 1, 1, 1},
		{"richardson", false, 1 << 18, 2, 2, 1}, {"richardson", false, 1 << 24, 8, 8, 1},
		{"richardson", true, 1<<18 - 1, 8, 1, 1}, {"richardson", true, 1 << 18, 2, 1, 2}, {"richardson", true, 1 << 24, 1, 1, 1},
		{"sor", false, 1<<18 - 1, 8, 1, 1}, {"multigrid", false, 1 << 18, 8, 1, 8}, {"multigrid", false, 1 << 18, 1, 1, 1},
		{"schwarz", false, 10, 1, 2, 1}, {"schwarz", false, 1 << 24, 8, 8, 1},
	} {
		peers, threads, why := defaultWorkers(c.method, c.together, c.points, c.cpus)
		require.Equal(t, [2]int{c.peers, c.threads}, [2]int{peers, threads}, c)
		require.NotEmpty(t, why)
	}
}

func TestSlowdowns(t *testing.T) {
	got, err := slowdowns([]string{"0:3", "2:1.5"}, 3)
	require.NoError(t, err)
	require.Equal(t, map[int]float64{0: 3, 2: 1.5}, got)
	for flag, why := range map[string]string{"1": "R:F", "x:2": "R:F", "1:NaN": "R:F", "1:0.9": "R:F", "1:1e9": "R:F", "3:2": "0 to 2", "-1:2": "0 to 2"} {
		_, err := slowdowns([]string{flag}, 3)
		require.ErrorContains(t, err, why, flag)
	}
	_, err = slowdowns([]string{"1:2", "1:3"}, 3)
	require.ErrorContains(t, err, "given twice")
}

func TestProbe(t *testing.T) {
	p := cube(t, 3) // h = 1/4
	u := make([]float64, 27)
	for i := range u {
		u[i] = float64(i)
	}
	for _, c := range []struct {
		at, near []float64
		u        float64
	}{
		{[]float64{0.25, 0.25, 0.25}, []float64{0.25, 0.25, 0.25}, 0},
		{[]float64{0.5, 0.25, 0.25}, []float64{0.5, 0.25, 0.25}, 1},
		{[]float64{0.25, 0.7, 0.25}, []float64{0.25, 0.75, 0.25}, 6},
		{[]float64{0.25, 0.25, 0.74}, []float64{0.25, 0.25, 0.75}, 18},
		{[]float64{0.01, 0.5, 0.5}, []float64{0, 0.5, 0.5}, 0}, // the boundary's data
	} {
		var q problem.Point
		copy(q[:], c.at)
		require.Equal(t, report.Probe{At: c.near, U: c.u}, probe(p, u, q))
	}
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.True(t, math.IsNaN(median(nil)))
}

func TestEfficiencyIsAgainstTheFirstRow(t *testing.T) {
	rows := []row{
		{Scheme: "sync", Peers: 1, Together: 1, seconds: []float64{8, 9, 7}, sweeps: []float64{1}},
		{Scheme: "sync", Peers: 4, Together: 4, seconds: []float64{4, 4, 2}, sweeps: []float64{1}},
		{Scheme: "async", Peers: 2, Together: 2, seconds: []float64{5}, sweeps: []float64{1}},
	}
	c := comparison{Rows: rows}
	c.summarize()
	require.Equal(t, 1.0, float64(rows[0].Efficiency))
	require.Equal(t, 0.5, float64(rows[1].Efficiency))
	require.Equal(t, 0.8, float64(rows[2].Efficiency))
	all := series(rows, false)
	require.Len(t, all, 2)
	require.Equal(t, 4, all[0].Points[1].Peers)
	require.Equal(t, 1.0, all[0].Points[1].High)
}

// Each of several methods has its own reference.
func TestSeriesOfMethods(t *testing.T) {
	rows := []row{
		{Method: "sor", Scheme: "sync", Peers: 1, Together: 1, Seconds: 8},
		{Method: "sor", Scheme: "sync", Peers: 2, Together: 2, Seconds: 4},
		{Method: "multigrid", Scheme: "sync", Peers: 1, Together: 1, Seconds: 1, reference: 2},
		{Method: "multigrid", Scheme: "sync", Peers: 2, Together: 2, Seconds: 1, reference: 2},
	}
	all := series(rows, true)
	require.Len(t, all, 2)
	require.Equal(t, "multigrid, sync", all[1].Name)
	require.Equal(t, 1.0, all[0].Points[1].Mid)
	require.Equal(t, 0.5, all[1].Points[1].Mid)
}

func TestCases(t *testing.T) {
	q := &request{
		Spec: rendezvous.Spec{
			Tolerance: 1e-3, Protect: "auto", Parts: 1, PeerTimeout: 10e9, Congestion: "newreno",
			Rails: rendezvous.Rails{Network: rail.Auto, Mode: rail.Segments, BlockBytes: 8128},
		},
		n: "8", clusters: 1, order: "jacobi", partition: "auto", threads: 1,
		method: methodFlags{
			MethodConfig: problem.MethodConfig{Name: "richardson", Step: 1, Local: "multigrid", Cycle: "auto"},
			innerCycles:  "auto", coarse: "auto",
		},
		slowdown: []string{"0:2"}, catalog: catalog.New(),
	}
	cases, err := q.cases("membrane", []string{"sync", "async"}, []int{1, 2})
	require.NoError(t, err)
	require.Len(t, cases, 5, "with a slowed peer the reference is not one of the rows")
	require.Empty(t, cases[0].work.slow)
	require.Equal(t, map[int]float64{0: 2}, cases[1].work.slow)
	q.slowdown = []string{"1:2"}
	cases, err = q.cases("membrane", []string{"sync"}, []int{1, 2})
	require.NoError(t, err)
	require.Len(t, cases, 2, "one peer is not slowed: it is the reference")
	q.slowdown = []string{"2:2"}
	_, err = q.cases("membrane", []string{"sync"}, []int{1, 2})
	require.ErrorContains(t, err, "0 to 1")
	q.slowdown = nil
	cases, err = q.cases("membrane", []string{"sync", "async"}, []int{1, 2})
	require.NoError(t, err)
	require.Len(t, cases, 4)
	_, err = q.cases("membrane", []string{"sync"}, []int{0})
	require.Error(t, err)
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{12: "12 B", 2048: "2.0 KiB", 3 << 20: "3.0 MiB", 5 << 40: "5120.0 GiB"} {
		require.Equal(t, want, bytesText(n))
	}
}
