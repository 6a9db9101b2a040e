package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// two machines, the first of which owns three of four planes.
func twoMachines(t *testing.T) (*simulate.Result, *simulate.Config) {
	t.Helper()
	part, err := problem.Slabs([3]int{4, 4, 4}, 2, []float64{3, 1})
	require.NoError(t, err)
	run := &simulate.Config{Solver: problem.Config{
		Problem: &problem.Problem{Dimension: 3, N: [3]int{4, 4, 4}}, Partition: part, Scheme: iterate.Asynchronous(), Tolerance: 1e-6,
	}}
	r := &simulate.Result{Reason: iterate.Converged, Virtual: 10 * time.Second, Met: simulate.Met{After: 8 * time.Second, Sweeps: 120}, Residual: 5e-7, Ranks: []simulate.RankResult{
		{Sweeps: 100, Relaxing: 8 * time.Second, Protocol: time.Second, Idle: time.Second, Messages: 3, Segments: 5, Bytes: 7000, Lost: 1},
		{Sweeps: 300, Relaxing: 10 * time.Second, Messages: 1, Segments: 2, Bytes: 3000},
	}}
	r.Staleness[0], r.Staleness[2] = 30, 10
	r.Ranks[1].Reads = []simulate.Reads{{Rank: 0, Faces: 40, Sum: 20}}
	return r, run
}

func TestFigures(t *testing.T) {
	r, run := twoMachines(t)
	s := Figures(r, run, nil)
	require.Equal(t, []int{1, 1, 2}, s.Partition)
	require.InDelta(t, 0.75*100+0.25*300, s.Equivalent, 1e-12)
	require.Equal(t, [2]float64{100, 300}, [2]float64{s.Fewest, s.Most})
	require.InDeltaSlice(t, []float64{0.9, 0.05, 0.05}, []float64{s.Relaxing, s.Protocol, s.Idle}, 1e-12)
	require.Equal(t, []uint64{4, 7, 10000, 1}, []uint64{s.Messages, s.Segments, s.Bytes, s.Lost})
	require.Equal(t, []uint64{30, 0, 10}, s.Staleness)
	require.InDelta(t, 0.5, float64(s.MeanAge), 1e-12)
	require.True(t, s.Converged)
	require.False(t, s.Efficiency.Known())
	one := Alone{Seconds: 12, Sweeps: 100}
	s.Against(one, 2)
	require.InDelta(t, 0.75, float64(s.Efficiency), 1e-12, "until the tolerance was met, not until the verdict")
	require.Equal(t, s.Met, s.Comparable)
	s.Against(one, 1.2)
	require.InDelta(t, 12/(1.2*8), float64(s.Efficiency), 1e-12, "of unequal machines")
	s.Efficiency = nullable.NaN()
	s.Against(Alone{}, 2)
	require.False(t, s.Efficiency.Known())

	r.Residual = 2e-6
	s = Figures(r, run, nil)
	s.Against(one, 2)
	require.False(t, s.Converged, "although the peers agreed on convergence")
	require.False(t, s.Efficiency.Known())
	r.Residual = 5e-7
	s = Figures(r, run, errors.New("peer 1 is lost"))
	require.False(t, s.Converged)
	require.Equal(t, "failed", s.Reason)
	require.Equal(t, "peer 1 is lost", s.Failure)
}

// Text, JSON and CSV of a comparison have every row; unknown values are empty.
// A nonstationary run lists its steps, of many some at equal distances. A stationary run has no such fields.
func TestFiguresOfTimeSteps(t *testing.T) {
	r, run := twoMachines(t)
	require.NotContains(t, asJSON(t, Figures(r, run, nil)), "steps")
	run.Solver.Problem.Evolution = &problem.Evolution{End: 5, Steps: 2500}
	for i := range 2400 {
		r.Steps = append(r.Steps, simulate.Step{
			Step: i + 1, Ended: time.Duration(i+1) * time.Millisecond, Sweeps: 32.5, Residual: 1e-7,
		})
	}
	s := Figures(r, run, nil)
	require.Equal(t, 2500, s.Steps)
	require.Equal(t, 2400, s.StepsDone)
	require.InDelta(t, 4.8, s.Time, 1e-12)
	require.Len(t, s.TimeSteps, 800)
	last := s.TimeSteps[799]
	require.Equal(t, SimulatedStep{Step: 2400, Time: last.Time, Seconds: 2.4, Sweeps: 32.5, Residual: 1e-7}, last)
	require.InDelta(t, 4.8, last.Time, 1e-12)
	m := asJSON(t, s)
	require.Equal(t, 2400.0, m["steps_done"])
	var out bytes.Buffer
	(&Simulation{Simulated: s}).Text(&out)
	require.Contains(t, out.String(), "2400 of 2500, to t = 4.8, Δt = 0.002")
	require.NotContains(t, out.String(), "the peers detected it", "the peers of every step do")
	r.Steps = nil
	require.Equal(t, []any{}, asJSON(t, Figures(r, run, nil))["time_steps"])
}

func TestSimulatedComparison(t *testing.T) {
	r, run := twoMachines(t)
	good, bad := Figures(r, run, nil), Figures(r, run, errors.New("peer 1 is lost, \"it\" said"))
	good.Against(Alone{Seconds: 12, Sweeps: 100}, 2)
	c := SimulatedComparison{Subject: Subject{Problem: "membrane", N: []int{8, 8, 8}, StandIn: 2, Model: "lab",
		Method: "richardson"}, Rows: []SimulatedRow{{"richardson", good, nil}, {"schwarz", bad, nil}}}
	var text, table bytes.Buffer
	c.Text(&text)
	require.Contains(t, text.String(), "75.0 %")
	require.Contains(t, text.String(), "async on 2 machines: peer 1 is lost")
	require.Contains(t, text.String(), "4 × 4 × 4 are relaxed")
	require.NoError(t, c.CSV(&table))
	rows, err := csv.NewReader(&table).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	require.Equal(t, "8x8x8", rows[1][at["n"]])
	require.Equal(t, "0.75", rows[1][at["efficiency"]])
	require.Equal(t, []string{"10", "8", "120", "8"}, rows[1][at["seconds"]:at["comparable_seconds"]+1])
	require.Equal(t, "30 0 10", rows[1][at["staleness"]])
	require.Empty(t, rows[2][at["efficiency"]])
	require.Equal(t, "peer 1 is lost, \"it\" said", rows[2][at["reason"]])
	b, err := json.Marshal(&c)
	require.NoError(t, err)
	require.Contains(t, string(b), `"efficiency":null`)
}

// The text and the JSON name the processes that have led a run, and those that were cut off from it.
func TestSuccession(t *testing.T) {
	r, run := twoMachines(t)
	empty := asJSON(t, Figures(r, run, nil))
	require.Equal(t, []any{}, empty["leaders"])
	require.Equal(t, []any{}, empty["cut_off"])
	r.Leaders = []simulate.Leader{{Rank: 0, Elected: time.Second, Led: 2 * time.Second, Missing: []int{1}}, {Rank: 1, Elected: 3 * time.Second}}
	r.CutOff = []simulate.CutOff{{Rank: simulate.Launcher, At: 11 * time.Second}, {Rank: 1, At: 12 * time.Second}}
	s := Figures(r, run, nil)
	var out bytes.Buffer
	(&Simulation{Simulated: s}).Text(&out)
	for _, line := range []string{
		"the process of peer 0, elected after 1 s; 1.000 s later all peers had returned but [1]",
		"the process of peer 1, elected after 3 s; the run ended before the peers returned to it",
		"launcher, which ended after 11 s", "peer 1, which ended after 12 s",
	} {
		require.Contains(t, out.String(), line)
	}
	m := asJSON(t, s)
	require.Equal(t, map[string]any{"rank": 1.0, "elected": 3.0, "led": nil, "missing": []any{}}, m["leaders"].([]any)[1])
	require.Equal(t, map[string]any{"process": "launcher", "seconds": 11.0}, m["cut_off"].([]any)[0])
	require.Equal(t, "cut off", Figures(r, run, simulate.ErrCutOff).Reason)
}

// Figures and text name the parts that have moved, but not those whose epoch did not begin.
func TestMovesOfASimulatedRun(t *testing.T) {
	r, run := twoMachines(t)
	require.Equal(t, []any{}, asJSON(t, Figures(r, run, nil))["moves"])
	run.Parts = 2
	r.Moves = []simulate.Move{
		{Rank: 1, From: 0, To: 3, At: 2 * time.Second, Resumed: 2500 * time.Millisecond},
		{Rank: 1, From: 3, To: 0, At: 9 * time.Second},
	}
	s := Figures(r, run, nil)
	require.Equal(t, []any{map[string]any{
		"rank": 1.0, "from": "machine 0", "to": "machine 3", "at": 2.0, "seconds": 0.5,
	}}, asJSON(t, s)["moves"])
	require.Equal(t, [2]int{1, 2}, [2]int{s.Machines, s.Parts})
	require.InDelta(t, 1, s.Relaxing+s.Protocol+s.Idle, 1e-12)
	run.Joins, run.Leaves = []time.Duration{r.Virtual / 5}, []simulate.Leave{{At: r.Virtual / 2}}
	r.Ranks[1].Relaxing = 2 * time.Second
	s = Figures(r, run, nil)
	require.InDelta(t, 2./13, s.Idle, 1e-12, "13 s of machines, of which parts and the protocol took 11")
	var out bytes.Buffer
	(&Simulation{Simulated: s}).Text(&out)
	require.Contains(t, out.String(), "1 machine, parts 1 × 1 × 2, 2 each at the start")
	require.Contains(t, out.String(), "part 1 from machine 0 to machine 3 after 2 s, in 0.500 s")
}

// Hosts of lost and moved parts, and why rows have no result, are shown in one line.
func TestLinesOfHosts(t *testing.T) {
	var out bytes.Buffer
	losses(&out, []*launch.Loss{{Why: "pid 1 on a\nb", By: "pid 2 on a\nb"}})
	moves(&out, []launch.Moved{{From: "pid 1 on a\nb", To: "pid 2 on a\nb"}})
	c := SimulatedComparison{Rows: []SimulatedRow{{"richardson", Simulated{Failure: "a\nb"}, nil}}, References: []Reference{{}}}
	c.Text(&out)
	require.NotContains(t, out.String(), "a\nb")
	require.Equal(t, 5, strings.Count(out.String(), `a\u000ab`))
}
