package report

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// asJSON returns v after a round trip through JSON.
func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	return m
}

// requireNull requires fields that are present and null.
func requireNull(t *testing.T, m map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Contains(t, m, name)
		require.Nil(t, m[name], name)
	}
}

// The values of an unknown enclosure are null, not 0 or [0, 0].
func TestNoEnclosureIsNull(t *testing.T) {
	m := asJSON(t, NoEnclosure("A is no M-matrix"))
	requireNull(t, m, "width", "sum", "contact_points", "upper_contact_points", "sweeps")
	require.Equal(t, "A is no M-matrix", m["why"])
	m = asJSON(t, NewEnclosure(&verify.Enclosure{Contact: [2]int{1, 2}}))
	require.Equal(t, []any{1.0, 2.0}, m["contact_points"])
	require.Equal(t, 0.0, m["width"])
	var out bytes.Buffer
	NoEnclosure("because").text(&out, false)
	require.Contains(t, out.String(), "unknown: because")
}

// Unknown values of a run whose peers were lost before the end of a step are null, not 0.
func TestWhatALostPeerDidIsNull(t *testing.T) {
	s := example(t, "sync")
	cut, err := problem.Slabs([3]int{4, 4, 4}, 1, nil)
	require.NoError(t, err)
	nan := math.NaN()
	s.Add(&launch.Outcome{Reason: launch.Failed, Missing: []int{0}, Peers: []rendezvous.Result{{Points: 64}}, Hosts: make([]rendezvous.Member, 1)}, cut,
		verify.Evaluation{RelativeResidual: nan, ResidualInf: nan, ErrorBound: nan, MaxError: nan, Sum: nan, ContactPoints: -1, UpperPoints: -1, Force: [2]float64{nan, nan}})
	s.Kernel, s.Seconds = nil, 0
	s.Add(&launch.Outcome{Reason: launch.Failed, Missing: []int{0}, Peers: []rendezvous.Result{{Points: 64}}, Hosts: make([]rendezvous.Member, 1)}, cut,
		verify.Evaluation{RelativeResidual: nan, ResidualInf: nan, ErrorBound: nan, MaxError: nan, Sum: nan, ContactPoints: -1, UpperPoints: -1, Force: [2]float64{nan, nan}})
	m := asJSON(t, s)
	requireNull(t, m, "relative_residual", "contact_points", "upper_contact_points", "contact_force", "upper_force", "sum", "seconds", "points_per_second", "kernel")
	require.Equal(t, []any{nil}, m["sweeps"])
	requireNull(t, m["per_peer"].([]any)[0].(map[string]any), "sweeps", "planes_given", "planes_taken", "seconds", "cpu_seconds", "peak_resident_bytes", "idle_resident_bytes", "agreed_residual")
	var out bytes.Buffer
	s.Text(&out)
	require.Contains(t, out.String(), "contact   unknown")
	require.Contains(t, out.String(), "none, as many")

	p := &problem.Problem{Evolution: &problem.Evolution{End: 1, Steps: 2}}
	e := asJSON(t, NewEvolution(p, &launch.Outcome{}, "step"))
	requireNull(t, e, "worst_residual", "worst_step", "max_error_steps", "max_error_step", "last_residual")
}

// The same holds for a simulated run that was too short or refused.
func TestSimulatedUnknownIsNull(t *testing.T) {
	p := &problem.Problem{Dimension: 1, N: [3]int{3, 1, 1}}
	run := &simulate.Config{Solver: problem.Config{Problem: p, Partition: problem.Partition{Cuts: [3][]int{{0, 3}, {0, 1}, {0, 1}}}, Scheme: iterate.Synchronous()}}
	m := asJSON(t, Figures(&simulate.Result{Residual: 1, Ranks: make([]simulate.RankResult, 1)}, run, nil))
	requireNull(t, m, "steady_sweep_seconds", "met_seconds", "met_sweeps", "efficiency", "comparable_seconds", "staleness_mean")
}

// Points on the upper obstacle are counted and printed.
func TestTextHasUpperContact(t *testing.T) {
	s := example(t, "sync")
	var out bytes.Buffer
	s.Text(&out)
	require.Contains(t, out.String(), "3 points (4.7 %)\n", "one obstacle")
	s.HasUpper, s.UpperContact, s.UpperForce = true, 16, -0.5
	out.Reset()
	s.Text(&out)
	require.Contains(t, out.String(), "3 points (4.7 %) on the obstacle, 16 (25.0 %) on the upper one")
	require.Contains(t, out.String(), "-0.5 on the upper one")
	require.Equal(t, 16.0, asJSON(t, s)["upper_contact_points"])
}
