package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

func example(t *testing.T, mode string) *Solution {
	t.Helper()
	cut, err := problem.Slabs([3]int{4, 4, 4}, 2, []float64{1, 3})
	require.NoError(t, err)
	s := &Solution{Problem: "membrane", N: []int{4, 4, 4}, Points: 64, Tolerance: 1e-6, Peers: 2, Threads: 1}
	s.Add(&launch.Outcome{
		Reason: launch.Converged,
		Peers: []rendezvous.Result{
			{Points: 16, Sweeps: 10, Relaxed: 160, Seconds: 1, Sessions: []rendezvous.Session{{Peer: 1, Channel: rendezvous.Channel{Name: "agree/0-1", Mode: "sync", Locality: "same host", MessagesSent: 99, BytesSent: 99, Composition: []string{"B"}}},
				{Peer: 1, RTTSeconds: 1e-4, Channel: rendezvous.Channel{Name: "halo/0-1", Mode: mode, Locality: "same host", Why: "two processes of one host", Network: "ether", MessagesSent: 10, MessagesReceived: 7, SegmentsSent: 20, SegmentsReceived: 19, BytesSent: 80, Composition: []string{"A"}}}}},
			{Points: 48, Sweeps: 30, Relaxed: 1440, Taken: 1, Seconds: 2, Sessions: []rendezvous.Session{{Channel: rendezvous.Channel{Name: "halo/0-1", Mode: mode, Locality: "same host", Why: "two processes of one host", Network: "ether", Composition: []string{"A"}, MessagesSent: 30, MessagesReceived: 10, SegmentsSent: 40, SegmentsReceived: 17, BytesSent: 240, Retransmitted: 3}}}},
		},
		Hosts: []rendezvous.Member{{Host: "h", Pid: 1}, {Host: "h", Pid: 2}},
	}, cut, verify.Evaluation{RelativeResidual: 1e-7, ResidualInf: 1e-3, ErrorBound: math.NaN(), MaxError: math.NaN(), ContactPoints: 3, Sum: 0.5})
	return s
}

// The unit of sweeps, in JSON and in the text, depends on the method.
func TestIterates(t *testing.T) {
	for method, want := range map[string]string{"richardson": "sweeps", "sor": "sweeps", "multigrid": "cycles", "schwarz": "exchanges",
		"fas": "cycles"} {
		require.Equal(t, want, iterates(method))
	}
	require.Equal(t, "projected richardson, sync, jacobi", (&Solution{Method: "richardson", Scheme: "sync", Order: "jacobi"}).method())
	require.Equal(t, "projected multigrid, sync", (&Solution{Method: "multigrid", Scheme: "sync", Order: "jacobi"}).method())
}

func TestAdd(t *testing.T) {
	s := example(t, "sync")
	require.True(t, s.Converged)
	require.Equal(t, []nullable.Count{10, 30}, s.Sweeps)
	require.Equal(t, (10*16+30*48)/64.0, s.SequentialEquivalentSweeps)
	require.EqualValues(t, 2.0, s.Seconds, "of the slowest peer")
	require.EqualValues(t, 40, s.Messages)
	require.EqualValues(t, 320, s.Bytes)
	require.EqualValues(t, 23, s.MessagesLost)
	require.EqualValues(t, 24, s.SegmentsLost)
	require.EqualValues(t, 3, s.Retransmitted)
	require.Equal(t, [3][2]int{{0, 4}, {0, 4}, {1, 4}}, s.PerPeer[1].Box)
	require.EqualValues(t, 24, example(t, "async").MessagesLost, "replaced ones are not lost")
}

// The answer is solved by the residual of the assembled solution, not by those of the peers.
func TestConvergedIsJudgedByTheResidual(t *testing.T) {
	s := example(t, "sync")
	cut, err := problem.Slabs([3]int{4, 4, 4}, 1, nil)
	require.NoError(t, err)
	s.Add(&launch.Outcome{Reason: launch.Converged, Peers: make([]rendezvous.Result, 1), Hosts: make([]rendezvous.Member, 1)}, cut, verify.Evaluation{RelativeResidual: 2e-6})
	require.False(t, s.Converged)
	var out bytes.Buffer
	s.Text(&out)
	require.Contains(t, out.String(), "above the tolerance")
}

func TestJSONHasNullForWhatIsNotKnown(t *testing.T) {
	b, err := json.Marshal(example(t, "sync"))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	require.Nil(t, m["max_error"])
	require.Nil(t, m["error_bound"])
	require.Equal(t, 1e-7, m["relative_residual"])
	for _, promised := range []string{"problem", "n", "points", "scheme", "method", "network", "peers", "threads", "converged", "relative_residual",
		"residual_inf", "error_bound", "max_error", "contact_points", "sum", "sweeps", "seconds", "sequential_equivalent_sweeps",
		"messages", "bytes", "messages_lost", "composition", "sessions", "probes", "seed", "version", "setup_seconds", "output_seconds", "kernel"} {
		require.Contains(t, m, promised)
	}
}

func TestSessions(t *testing.T) {
	s := example(t, "async")
	require.Equal(t, []string{"A"}, s.Composition, "of a halo session")
	require.Len(t, s.Sessions, 3)
	h := s.Sessions[1]
	require.Equal(t, "0 1 halo/0-1 same host 0.0001", fmt.Sprintln(h.From, h.To, h.Name, h.Locality, float64(h.RTT))[:29])
	require.Equal(t, 1, s.Sessions[2].From)
	require.False(t, s.Sessions[2].RTT.Known(), "not measured at that end")
	var out bytes.Buffer
	s.Text(&out)
	require.Regexp(t, `channels +1 halo, async, same host, ether: A\n +two processes of one host\n +1 agree, sync, same host, : B\n`, out.String())
}

func TestText(t *testing.T) {
	s := example(t, "sync")
	s.MissingBlocks, s.Probes = []int{1}, []Probe{{At: []float64{0.5, 0.25}, U: 0.125}}
	var out bytes.Buffer
	s.Text(&out)
	for _, want := range []string{"4 × 4 × 4 points", "2 peers of 1 thread", "10 to 30", "u(0.5, 0.25)", "0.125", "blocks of peers [1] were lost"} {
		require.Contains(t, out.String(), want)
	}
}

func TestEfficiency(t *testing.T) {
	require.Equal(t, 0.75, float64(Efficiency(3, 2, 2)))
	require.False(t, Efficiency(3, 2, 0).Known())
}

// The names of a session's fields are stable: scripts rely on those of the answer, peers of other hosts on those sent
// to the launcher.
func TestFieldsOfASession(t *testing.T) {
	keys := func(v any) []string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
		return slices.Sorted(maps.Keys(m))
	}
	s := example(t, "sync").Sessions[1]
	s.Distance, s.NetworkWhy = "far", "up at both ends"
	s.PathDown, s.Device = "nothing is acknowledged", "mlx5_0 port 1"
	common := []string{"bytes_received", "bytes_sent", "changes", "column", "composition", "distance", "epoch", "last_pause_seconds", "locality", "lossy",
		"messages_received", "messages_sent", "mode", "moves", "name", "network", "network_why", "path_down", "device", "path_loss", "path_rtt_seconds", "protection", "retransmitted", "rtt_seconds",
		"segment_bytes", "frame_bytes", "segments_received", "segments_sent", "why"}
	require.ElementsMatch(t, append([]string{"from", "to", "segments_dropped", "values_replaced"}, common...), keys(s))
	require.ElementsMatch(t, append([]string{"peer", "dropped", "overwritten"}, common...), keys(rendezvous.Session{Channel: s.Channel}))
}

// A stagnated run reports the tolerance that can be met, in text and JSON; for a time step by the residual of the
// peers.
func TestStagnated(t *testing.T) {
	cut, err := problem.Slabs([3]int{4, 4, 4}, 1, nil)
	require.NoError(t, err)
	o := &launch.Outcome{Reason: launch.Stagnated, Peers: []rendezvous.Result{{Residual: 2e-8}}, Hosts: make([]rendezvous.Member, 1)}
	s := &Solution{N: []int{4, 4, 4}, Points: 64, Tolerance: 1e-8}
	s.Add(o, cut, verify.Evaluation{RelativeResidual: 2.4e-8})
	require.False(t, s.Converged)
	require.InDelta(t, 3e-8, float64(s.ReachableTolerance), 1e-12)
	var out bytes.Buffer
	s.Text(&out)
	require.Contains(t, out.String(), "stagnated: the residual has stopped falling, since A is nearly singular, or since the method is very slow here; --tol 3e-08 can be met")
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(b), `"reachable_tolerance":3e-08`)

	for _, residual := range []float64{1e-9, 2.4e-8, 6e-8} { // of several methods
		o.Rounding = 3.2e-7
		s = &Solution{N: []int{4, 4, 4}, Points: 64, Tolerance: 1e-10, Alternatives: Alternatives{Next: "multigrid"}}
		s.Add(o, cut, verify.Evaluation{RelativeResidual: residual})
		require.Equal(t, "stagnated by rounding: the tolerance is near or below what double precision gives here; --tol 1.2e-07 can be met",
			s.verdict())
		require.Empty(t, s.hint(), "no other method avoids it")
	}
	o.Rounding = 2e-8
	s.Add(o, cut, verify.Evaluation{RelativeResidual: 6e-8})
	require.InDelta(t, 7.5e-8, float64(s.ReachableTolerance), 1e-12)
	require.Contains(t, s.verdict(), "falling, since A is nearly singular")

	s = &Solution{N: []int{4, 4, 4}, Points: 64, Evolution: &Evolution{}}
	s.Add(o, cut, verify.Evaluation{RelativeResidual: 1e-3})
	require.InDelta(t, 2.5e-8, float64(s.ReachableTolerance), 1e-12)
	require.True(t, math.IsNaN(float64(example(t, "sync").ReachableTolerance)))

	for _, c := range []struct {
		peers, answer float64
		atStart       bool
	}{{12, 1, true}, {0.5, 0.5, true}, {12, 12, false}, {0.9, 0.9, false}} {
		s = &Solution{N: []int{4, 4, 4}, Points: 64, Tolerance: 1e-8}
		o.Peers[0].Residual, o.AtStart = nullable.Number(c.peers), c.atStart
		s.Add(o, cut, verify.Evaluation{RelativeResidual: c.answer})
		require.False(t, s.ReachableTolerance.Known(), "the start meets it, or no iterate of the answer does: %v", c)
		require.NotContains(t, s.verdict(), "can be met")
	}
}

// A diverged run says which iterate the answer is and what to change.
func TestDiverged(t *testing.T) {
	s := &Solution{Reason: launch.Diverged, Failure: "use upwind differences", AtStart: true}
	require.Equal(t, "diverged: starting iterate, whose residual is smaller than that of the last one; use upwind differences",
		s.verdict())
}
