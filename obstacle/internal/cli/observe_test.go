package cli

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
	"github.com/p2pdc/p2pdc/obstacle/internal/monitor"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// scrape returns the lines of the run's metrics.
func scrape(t *testing.T, s *launch.State) []string {
	t.Helper()
	m := monitor.NewShared()
	id := m.Begin(monitor.Info{
		Problem: "membrane", Scheme: "async", Method: "richardson", Version: "v1", Peers: 2, Points: 512, Tolerance: 1e-6,
	})
	m.Add(id, eventsOf(s, 2)...)
	w := httptest.NewRecorder()
	metrics.Handler(m).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "\ngo_goroutines ")
	lines := strings.Split(w.Body.String(), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return !regexp.MustCompile(`^obstacle_`).MatchString(l) })
}

// Metrics show the last reports, and nothing that is unknown.
func TestMetricsShowTheStatus(t *testing.T) {
	s := &launch.State{Progress: launch.Progress{Residual: math.NaN()}}
	lines := scrape(t, s)
	require.Contains(t, lines, `obstacle_run_info{method="richardson",problem="membrane",scheme="async",version="v1"} 1`)
	for _, want := range []string{"obstacle_peers 2", "obstacle_grid_points 512", "obstacle_tolerance_ratio 1e-06",
		"obstacle_lost_peers 0",
		`obstacle_phase{phase="joining"} 1`, `obstacle_phase{phase="solving"} 0`, "obstacle_halo_messages_sent_total 0"} {
		require.Contains(t, lines, want)
	}
	require.NotContains(t, strings.Join(lines, "\n"), "obstacle_relative_residual_ratio")

	s.Phase = launch.Solving
	s.Progress = launch.Progress{Elapsed: 1500 * time.Millisecond, Step: 3, Sweep: 40, Residual: math.NaN()}
	require.NotContains(t, strings.Join(scrape(t, s), "\n"), "obstacle_relative_residual_ratio", "not measured yet")
	s.Progress.Residual = 0.25
	s.Sweeps, s.Lost = map[int]uint64{0: 40, 1: 17}, map[int]bool{1: true}
	s.Sessions, s.Epoch = map[int][]rendezvous.Session{}, 3
	s.Accounts = map[int]launch.Account{1: {Account: rendezvous.Account{
		Seconds: 4, Relaxing: 2, Waiting: 1.5,
		Reads: []rendezvous.Reads{{Rank: 0, Faces: 4, Sum: 6, Ages: []uint64{1, 1, 1, 1}}},
	}}}
	for rank := range 2 {
		c := rendezvous.Channel{
			Name: "halo/0-1", Mode: "sync", Locality: "same host", Network: "ether", Column: "sync intra ether", Epoch: 2,
			MessagesSent: 10, MessagesReceived: 8 + uint64(rank), BytesSent: 1000, SegmentsSent: 20, Retransmitted: 3,
			PathLoss: 0.125,
		}
		agreement := rendezvous.Channel{Name: "agree/0-1", MessagesSent: 99}
		s.Sessions[rank] = []rendezvous.Session{{Peer: 1 - rank, Channel: c, Overwritten: 1, RTTSeconds: 0.5},
			{Channel: agreement}}
	}
	lines = scrape(t, s)
	for _, want := range []string{
		`obstacle_phase{phase="joining"} 0`, `obstacle_phase{phase="solving"} 1`, "obstacle_elapsed_seconds 1.5",
		"obstacle_time_step 3",
		"obstacle_relative_residual_ratio 0.25", `obstacle_sweeps_total{rank="0"} 40`, `obstacle_sweeps_total{rank="1"} 17`,
		"obstacle_lost_peers 1",
		"obstacle_halo_messages_sent_total 20", "obstacle_halo_sent_bytes_total 2000", "obstacle_halo_messages_lost 3",
		"obstacle_halo_segments_sent_total 40", "obstacle_halo_segments_retransmitted_total 6",
		"obstacle_halo_messages_replaced_total 2",
		`obstacle_session_info{column="sync intra ether",locality="same host",mode="sync",network="ether",peer="1",rank="0",session="halo/0-1"} 1`,
		`obstacle_session_epoch{rank="1",session="halo/0-1"} 2`, "obstacle_epoch 3",
		`obstacle_session_rtt_seconds{rank="0",session="halo/0-1"} 0.5`,
		`obstacle_session_loss_ratio{rank="1",session="halo/0-1"} 0.125`,
		`obstacle_time_seconds_total{rank="1",what="relaxing"} 2`, `obstacle_time_seconds_total{rank="1",what="waiting"} 1.5`,
		`obstacle_time_seconds_total{rank="1",what="protocol"} 0.5`, "obstacle_staleness_sweeps_sum 6",
		"obstacle_staleness_sweeps_count 4",
	} {
		require.Contains(t, lines, want)
	}
}

// A loss becomes a mark when it is noticed, and gets its end later; moves follow in the order in which they end.
func TestMarksOfLosses(t *testing.T) {
	o := &observed{losses: map[int]int{}}
	s := &launch.State{Losses: []launch.Loss{{Rank: 2, Detected: 1, Recovered: nullable.NaN(), Why: "it ended"}}}
	marks := o.marked(s)
	require.Len(t, marks, 1)
	require.False(t, marks[0].Took.Known())
	s.Moves = []launch.Moved{{Rank: 1, From: "a", To: "b", At: 0.5, Seconds: 0.25}}
	s.Losses[0].Recovered, s.Losses[0].By, s.Losses[0].Method = 1.5, "pid 7", "multigrid"
	s.Losses = append(s.Losses, launch.Loss{Rank: 0, Detected: 3, Recovered: nullable.NaN()})
	marks = o.marked(s)
	require.Equal(t, monitor.Mark{
		Kind: monitor.MarkLoss, Rank: 2, At: 1, Took: 0.5, Text: "it ended; its part went to pid 7, repaired by multigrid",
	}, marks[0])
	require.Equal(t, []string{"loss", "loss", "move"}, []string{marks[0].Kind, marks[1].Kind, marks[2].Kind})
	require.Len(t, o.marked(s), 3, "nothing twice")
}

// Places name the processes and boxes of the peers.
func TestPlaces(t *testing.T) {
	s := &launch.State{
		Members: []rendezvous.Member{{Rank: 0, Host: "h", Pid: 7, Cluster: "c"}}, Boxes: []problem.Box{{Hi: [3]int{1, 2, 3}}},
	}
	require.Equal(t, monitor.Places{{Process: "pid 7", Host: "h", Cluster: "c", Hi: [3]int{1, 2, 3}}}, places(s))
}
