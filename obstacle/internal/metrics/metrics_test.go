package metrics

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// The documentation has a row for each family with its name, labels and help, and no other.
func TestNamesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	written := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(obstacle_[a-z_]+)(?:\\{([a-z, ]+)\\})?` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		written[m[1]] = "[" + strings.ReplaceAll(m[2], ", ", " ") + "] " + m[3]
	}
	known := map[string]string{}
	for _, d := range families() {
		m := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]+)",.*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		known[m[1]] = "[" + strings.ReplaceAll(m[3], ",", " ") + "] " + strings.TrimSuffix(m[2], ".")
	}
	require.Equal(t, known, written)
}

// source is a monitor for tests.
type source struct{ run monitor.Run }

func (s *source) Newest(f func(*monitor.Run)) { f(&s.run) }

func run(peers int) *source {
	m := monitor.New()
	id := m.Begin(0, monitor.Info{Problem: "membrane", Peers: peers, Tolerance: 1e-6})
	m.Add(id, monitor.Progress{Elapsed: 2e9, Sweep: 7, Residual: 0.25})
	m.Add(id, monitor.Progress{Elapsed: 3e9, Sweep: 9, Residual: 0.125})
	var all monitor.Peers
	var sessions monitor.Sessions
	for rank := range peers {
		all = append(all, monitor.Peer{Sweep: float64(rank), Relaxing: 1, Waiting: 0.5, Protocol: 0.25})
		sessions.All = append(sessions.All, monitor.Session{From: rank, To: rank + 1, Name: "halo/a", RTT: 0.5, Loss: 0.25})
	}
	m.Add(id, all)
	m.Add(id, sessions)
	m.Add(id, monitor.Ages{Counts: iterate.AgeCounts{3, 2, 1, 0, 0, 0, 0, 0, 4}, Sum: 404})
	m.Add(id, monitor.Marks{
		{Kind: monitor.MarkLoss, Rank: 1, At: 1, Took: 0.5}, {Kind: monitor.MarkLoss, Rank: 1, At: 2, Took: nullable.NaN()},
		{Kind: monitor.MarkMove, Rank: 0, At: 2, Took: 0.25},
	})
	r, _ := m.Newest()
	return &source{*r}
}

// Names, units and types follow the conventions of Prometheus.
func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(&collector{run(2)})
	require.NoError(t, err)
	require.Empty(t, problems)
}

// promtool, where it is installed, finds no fault in an answer either.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	w := httptest.NewRecorder()
	Handler(run(3)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = w.Body
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}

// The numbers are those of the monitor.
func TestNumbers(t *testing.T) {
	require.NoError(t, testutil.CollectAndCompare(&collector{run(2)}, strings.NewReader(`
# HELP obstacle_staleness_sweeps Age of the halos that sweeps have read, in sweeps of the reader.
# TYPE obstacle_staleness_sweeps histogram
obstacle_staleness_sweeps_bucket{le="0"} 3
obstacle_staleness_sweeps_bucket{le="1"} 5
obstacle_staleness_sweeps_bucket{le="2"} 6
obstacle_staleness_sweeps_bucket{le="4"} 6
obstacle_staleness_sweeps_bucket{le="8"} 6
obstacle_staleness_sweeps_bucket{le="16"} 6
obstacle_staleness_sweeps_bucket{le="32"} 6
obstacle_staleness_sweeps_bucket{le="64"} 6
obstacle_staleness_sweeps_bucket{le="128"} 10
obstacle_staleness_sweeps_bucket{le="256"} 10
obstacle_staleness_sweeps_bucket{le="512"} 10
obstacle_staleness_sweeps_bucket{le="1024"} 10
obstacle_staleness_sweeps_bucket{le="2048"} 10
obstacle_staleness_sweeps_bucket{le="4096"} 10
obstacle_staleness_sweeps_bucket{le="8192"} 10
obstacle_staleness_sweeps_bucket{le="16384"} 10
obstacle_staleness_sweeps_bucket{le="32768"} 10
obstacle_staleness_sweeps_bucket{le="65536"} 10
obstacle_staleness_sweeps_bucket{le="131072"} 10
obstacle_staleness_sweeps_bucket{le="262144"} 10
obstacle_staleness_sweeps_bucket{le="524288"} 10
obstacle_staleness_sweeps_bucket{le="1.048576e+06"} 10
obstacle_staleness_sweeps_bucket{le="+Inf"} 10
obstacle_staleness_sweeps_sum 404
obstacle_staleness_sweeps_count 10
# HELP obstacle_recovery_seconds Time from the loss of a part until all peers relaxed again: count and sum.
# TYPE obstacle_recovery_seconds summary
obstacle_recovery_seconds_sum 0.5
obstacle_recovery_seconds_count 1
# HELP obstacle_lost_parts_total Parts of the grid that were lost with their peers.
# TYPE obstacle_lost_parts_total counter
obstacle_lost_parts_total 2
# HELP obstacle_time_seconds_total Time that a peer spent relaxing, waiting or on protocol; absent with more than 256 peers.
# TYPE obstacle_time_seconds_total counter
obstacle_time_seconds_total{rank="0",what="protocol"} 0.25
obstacle_time_seconds_total{rank="0",what="relaxing"} 1
obstacle_time_seconds_total{rank="0",what="waiting"} 0.5
obstacle_time_seconds_total{rank="1",what="protocol"} 0.25
obstacle_time_seconds_total{rank="1",what="relaxing"} 1
obstacle_time_seconds_total{rank="1",what="waiting"} 0.5
`), "obstacle_staleness_sweeps", "obstacle_recovery_seconds", "obstacle_lost_parts_total", "obstacle_time_seconds_total"))
}

// The number of series is bounded, however many peers a run has.
func TestBoundedLabels(t *testing.T) {
	few, many := testutil.CollectAndCount(&collector{run(MaxRanks)}), testutil.CollectAndCount(&collector{run(4096)})
	require.Greater(t, few, 4*MaxRanks)
	require.Less(t, few, 12*MaxRanks)
	require.Less(t, many, 100)
}

// The dashboard names metrics that exist.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "grafana", "obstacle.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	known := map[string]bool{}
	for _, d := range families() {
		known[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	named := regexp.MustCompile(`obstacle_[a-z_]+`).FindAllString(string(text), -1)
	require.Greater(t, len(named), 10)
	for _, name := range named {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); known[base] {
				name = base
			}
		}
		require.True(t, known[name], name)
	}
}
