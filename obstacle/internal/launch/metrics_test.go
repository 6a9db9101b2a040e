package launch_test

import (
	"math"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/metrics"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// scrape returns the lines of the run's metrics.
func scrape(t *testing.T, s *launch.Status) []string {
	t.Helper()
	h := metrics.Handler(metrics.Run{Problem: "membrane", Scheme: "async", Method: "richardson", Version: "v1", Peers: 2, Points: 512, Tolerance: 1e-6}, s)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "\ngo_goroutines ")
	lines := strings.Split(w.Body.String(), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return !regexp.MustCompile(`^obstacle_`).MatchString(l) })
}

// Metrics show the last reports, and nothing that is unknown.
func TestMetricsShowTheStatus(t *testing.T) {
	s := &launch.Status{}
	lines := scrape(t, s)
	require.Contains(t, lines, `obstacle_run_info{method="richardson",problem="membrane",scheme="async",version="v1"} 1`)
	for _, want := range []string{"obstacle_peers 2", "obstacle_grid_points 512", "obstacle_tolerance_ratio 1e-06", "obstacle_lost_peers 0",
		`obstacle_phase{phase="joining"} 1`, `obstacle_phase{phase="solving"} 0`, "obstacle_halo_messages_sent_total 0"} {
		require.Contains(t, lines, want)
	}
	require.NotContains(t, strings.Join(lines, "\n"), "obstacle_relative_residual_ratio")
	require.NotContains(t, strings.Join(lines, "\n"), "obstacle_sweeps_total")

	s.Enter(launch.Solving)
	progress := launch.Progress{Elapsed: 1500 * time.Millisecond, Step: 3, Sweep: 40, Residual: math.NaN()}
	launch.Update(s, func(s *launch.State) { s.Progress = progress })
	require.NotContains(t, strings.Join(scrape(t, s), "\n"), "obstacle_relative_residual_ratio", "not measured yet")
	launch.Update(s, func(s *launch.State) {
		s.Progress.Residual = 0.25
		s.Sweeps[0], s.Sweeps[1] = 40, 17
		launch.Lose(s, 1)
		launch.Lose(s, 1)
		launch.Lose(s, -1)
	})
	for rank := range 2 {
		c := rendezvous.Channel{
			Name: "halo/0-1", Mode: "sync", Locality: "same host", Network: "ether", Column: "sync intra ether", Epoch: 2,
			MessagesSent: 10, MessagesReceived: 8 + uint64(rank), BytesSent: 1000, SegmentsSent: 20, Retransmitted: 3,
		}
		agreement := rendezvous.Channel{Name: "agree/0-1", MessagesSent: 99}
		launch.Update(s, func(s *launch.State) {
			s.Sessions[rank] = []rendezvous.Session{{Peer: 1 - rank, Channel: c, Overwritten: 1}, {Channel: agreement}}
		})
	}
	lines = scrape(t, s)
	for _, want := range []string{
		`obstacle_phase{phase="joining"} 0`, `obstacle_phase{phase="solving"} 1`, "obstacle_elapsed_seconds 1.5", "obstacle_time_step 3",
		"obstacle_relative_residual_ratio 0.25", `obstacle_sweeps_total{rank="0"} 40`, `obstacle_sweeps_total{rank="1"} 17`, "obstacle_lost_peers 1",
		"obstacle_halo_messages_sent_total 20", "obstacle_halo_sent_bytes_total 2000", "obstacle_halo_messages_lost 3",
		"obstacle_halo_segments_sent_total 40", "obstacle_halo_segments_retransmitted_total 6", "obstacle_halo_messages_replaced_total 2",
		`obstacle_session_info{column="sync intra ether",locality="same host",mode="sync",network="ether",peer="1",rank="0",session="halo/0-1"} 1`,
		`obstacle_session_epoch{rank="1",session="halo/0-1"} 2`,
	} {
		require.Contains(t, lines, want)
	}
}
