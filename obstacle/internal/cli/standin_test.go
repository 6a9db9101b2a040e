package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

var (
	long   = flag.Bool("long", false, "also compare stand-ins with whole runs on twelve clusters")
	update = flag.Bool("update", false, "with -long: write testdata/standins.md")
)

// standInCluster is a cluster on which stand-ins are compared with the full grid.
type standInCluster struct {
	name     string
	machines int
	rate     string // of a fast machine
	slow     bool   // the first machine is five times slower
	apart    string // latency between two sites; empty: one site
	loss     string
	pauses   string
}

func standInClusters() []standInCluster {
	return []standInCluster{
		{name: "8 equal machines", machines: 8},
		{name: "16 equal machines", machines: 16},
		{name: "one of 4 machines 5 times slower", machines: 4, slow: true},
		{name: "one of 8 machines 5 times slower", machines: 8, slow: true},
		{name: "one of 16 machines 5 times slower", machines: 16, slow: true},
		{name: "8 machines, two sites, 2 ms", machines: 8, apart: "0.96 ms"},
		{name: "8 machines, two sites, 10 ms", machines: 8, apart: "4.96 ms"},
		{name: "8 machines, two sites, 20 ms", machines: 8, apart: "9.96 ms"},
		{name: "16 machines, two sites, 10 ms", machines: 16, apart: "4.96 ms"},
		{name: "8 fast machines, two sites, 10 ms", machines: 8, apart: "4.96 ms", rate: "0.335 Gpoint/s"},
		{name: "8 machines, 1 % of the frames lost", machines: 8, loss: ", loss: 1 %"},
		{name: "8 machines, pauses of 20 ms", machines: 8, pauses: ", straggle: {rate: 2 /s, for: 20 ms}"},
	}
}

// write writes the description of a cluster and returns its file.
func (c *standInCluster) write(t *testing.T) string {
	t.Helper()
	class := "{cores: 4, relaxation: " + c.rate + ", send: {message: 5 us, segment: 1 us, byte: 0.3 ns}, " +
		"receive: {message: 5 us, segment: 1 us, byte: 0.3 ns}, jitter: 1 %"
	if c.rate == "" {
		class = strings.Replace(class, "relaxation: ", "relaxation: 0.05 Gpoint/s", 1)
	}
	text := "machines:\n  fast: " + class + c.pauses + "}\n  slow: " + class + ", slow: 5}\n" +
		"networks:\n  lan: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 256 KiB, mtu: 1500 B, frame: 38 B, " +
		"jitter: 2 us" + c.loss + "}\nsites:\n"
	first := "{class: fast}"
	if c.slow {
		first = "{class: slow, count: 1}, {class: fast}"
	}
	text += "  east: {network: lan, machines: [" + first + "]}\n"
	if c.apart != "" {
		text += "  west: {network: lan, machines: [{class: fast}]}\n" +
			"wide:\n  - {between: [east, west], rate: 1 Gbit/s, latency: " + c.apart + ", queue: 2 MiB}\n"
	}
	name := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// compared is the ratio of the times of the synchronous and of the asynchronous run, with its bounds, and the verdict.
type compared struct {
	low, mid, high float64
	verdict        *report.Verdict
}

func (c *standInCluster) compare(t *testing.T, n, standIn int) compared {
	t.Helper()
	code, out, errs := call("compare", "membrane", "--n", strconv.Itoa(n), "--stand-in", strconv.Itoa(standIn),
		"--model", c.write(t), "--machines", strconv.Itoa(c.machines), "--scheme", "sync,async", "--format", "json")
	require.Zero(t, code, errs)
	var s report.SimulatedComparison
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	sync, async := &s.Rows[0], &s.Rows[1]
	return compared{
		float64(sync.ComparableLow / async.ComparableHigh), float64(sync.Comparable / async.Comparable),
		float64(sync.ComparableHigh / async.ComparableLow), s.Verdict,
	}
}

// decided reports whether the verdict names a winner.
func (c *compared) decided() bool { return !c.verdict.DependsOnStandIn && !c.verdict.WithinSpread }

// agrees checks a comparison on a stand-in with that on the full grid: the winner is never wrong, and the factor is
// within 15 % or the interval.
func (c *compared) agrees(t *testing.T, full compared, name string) {
	t.Helper()
	if c.decided() {
		require.Equal(t, full.verdict.Fastest, c.verdict.Fastest, name)
	}
	if c.verdict.DependsOnStandIn && math.IsNaN(c.low) {
		return // it gives no factor
	}
	if math.Abs(c.mid/full.mid-1) > 0.15 {
		require.Less(t, c.low, full.mid, name)
		require.Greater(t, c.high, full.mid, name)
	}
}

// The verdict of a stand-in is that of the full grid.
func TestStandInsAgreeWithTheFullGrid(t *testing.T) {
	all := standInClusters()
	for _, c := range []standInCluster{all[3], all[6]} {
		full := c.compare(t, 24, 1)
		for _, standIn := range []int{2, 4} {
			coarse := c.compare(t, 24, standIn)
			coarse.agrees(t, full, c.name)
		}
	}
}

// The same for twelve clusters on a larger grid, as the table in docs/simulation.md.
func TestStandInTable(t *testing.T) {
	if !*long {
		t.Skip("takes minutes; -long runs it")
	}
	const side = 64
	var table strings.Builder
	fmt.Fprintf(&table, "| %d³, synchronous / asynchronous time | stand-in 1 | 2 | 4 | 8 |\n|---|---|---|---|---|\n", side)
	for _, c := range standInClusters() {
		full := c.compare(t, side, 1)
		fmt.Fprintf(&table, "| %s | %.2f |", c.name, full.mid)
		for _, standIn := range []int{2, 4, 8} {
			coarse := c.compare(t, side, standIn)
			coarse.agrees(t, full, fmt.Sprintf("%s, stand-in %d", c.name, standIn))
			open := map[bool]string{true: "*"}[!coarse.decided()]
			if math.IsNaN(coarse.low) {
				table.WriteString(" –* |")
				continue
			}
			fmt.Fprintf(&table, " %.2f (%s)%s |", coarse.mid, interval(coarse.low, coarse.high), open)
		}
		table.WriteByte('\n')
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/standins.md", []byte(table.String()), 0o600))
	}
	want, err := os.ReadFile("testdata/standins.md")
	require.NoError(t, err)
	require.Equal(t, string(want), table.String(), "-long -update writes it")
}

// interval formats the bounds of a ratio. One has no upper bound if the bound of the time below it is 0.
func interval(low, high float64) string {
	if math.IsInf(high, 1) {
		return fmt.Sprintf("%.2f or more", low)
	}
	return fmt.Sprintf("%.2f to %.2f", low, high)
}

func TestInterval(t *testing.T) {
	require.Equal(t, "0.33 to 2.00", interval(1./3, 2))
	require.Equal(t, "0.33 or more", interval(1./3, math.Inf(1)))
	table, err := os.ReadFile("testdata/standins.md")
	require.NoError(t, err)
	require.NotContains(t, string(table), "Inf")
}

// A stand-in of too few points is refused, with one that has enough; so is one that lacks points for the machines.
func TestStandInsOfTooFewPoints(t *testing.T) {
	for _, c := range []struct {
		n, standIn, machines, want string
	}{
		{"64", "32", "4", "--n 64 with --stand-in 32 leaves 2 points along an axis, too few to stand in: give --stand-in 16"},
		{"64", "64", "4", "leaves 1 point along an axis, too few to stand in: give --stand-in 16"},
		{"64,12,64", "4", "4", ""},
		{"64,4,64", "4", "4", "leaves 1 point along an axis, too few to stand in: give --stand-in 1"},
		{"64", "16", "128", "fits into [4 4 4] points; use fewer peers, or a smaller one than --stand-in 16"},
	} {
		code, _, errs := call("compare", "membrane", "--n", c.n, "--stand-in", c.standIn, "--model", "graphene-eth", "--machines",
			c.machines, "--tol", "1e-2")
		require.Equal(t, map[bool]int{true: ExitSolved, false: ExitUsage}[c.want == ""], code, errs)
		require.Contains(t, errs, c.want)
	}
}

// docs/simulation.md has the table that TestStandInTable writes.
func TestStandInTableIsDocumented(t *testing.T) {
	table, err := os.ReadFile("testdata/standins.md")
	require.NoError(t, err)
	text, err := os.ReadFile("../../../docs/simulation.md")
	require.NoError(t, err)
	require.True(t, strings.Contains(string(text), string(table)), "docs/simulation.md lacks testdata/standins.md")
}
