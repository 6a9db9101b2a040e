package cli

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/calibration"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// simulatedRequest returns a request for a run of the membrane.
func simulatedRequest() (*app, *request) {
	a := &app{catalog: catalog.New(), err: io.Discard, above: &above{w: io.Discard}, log: zerolog.Nop()}
	return a, &request{
		catalog: a.catalog, n: "16", order: "jacobi", partition: "auto",
		Spec: rendezvous.Spec{
			Tolerance: 1e-6, Seed: 1, Congestion: "newreno", PeerTimeout: defaultPeerTimeout, Protect: defaultProtect,
		},
		method: methodFlags{
			MethodConfig: problem.MethodConfig{Name: "richardson", Local: "multigrid", Step: 1, Cycle: "auto"},
			innerCycles:  "1", coarse: "none",
		},
	}
}

// prepared returns a run of the membrane on machines of one kind.
func prepared(t *testing.T, machine, scheme string, machines int, change func(q *request, s *simulation)) *virtualRun {
	t.Helper()
	f, err := clusterfile.Parse("test.yaml", []byte("machines:\n  pc: "+machine+`
networks:
  lan: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 256 KiB, mtu: 1500 B}
sites:
  here: {network: lan, machines: [{class: pc}]}
`))
	require.NoError(t, err)
	a, q := simulatedRequest()
	s := &simulation{model: "test.yaml", standIn: 1}
	if change != nil {
		change(q, s)
	}
	r, err := a.prepare(q, s, f, "membrane", scheme, machines)
	require.NoError(t, err)
	require.NoError(t, a.simulateAll(context.Background(), []*virtualRun{r}))
	require.NoError(t, r.err)
	return r
}

// t(1), computed from a run of several machines, equals the simulated time of one machine.
func TestReferenceIsTheRunOfOneMachine(t *testing.T) {
	for name, machine := range map[string]string{
		"plain":    "{relaxation: 4 Mpoint/s}",
		"slow":     "{relaxation: 4 Mpoint/s, slow: 3}",
		"jitter":   "{relaxation: 4 Mpoint/s, jitter: 20 %}",
		"straggle": "{relaxation: 4 Mpoint/s, straggle: {rate: 2000 /s, for: 100 us}}",
	} {
		t.Run(name, func(t *testing.T) {
			one, eight := prepared(t, machine, "sync", 1, nil), prepared(t, machine, "sync", 8, nil)
			require.True(t, eight.sequential())
			require.Equal(t, one.figures.Equivalent, eight.figures.Equivalent, "the sweeps of one machine")
			want, _ := reference(one, one)
			got, about := reference(nil, eight)
			require.Contains(t, about, "computed")
			require.InEpsilon(t, float64(want.Seconds), float64(got.Seconds), 0.02)
			require.InDelta(t, float64(want.Sweeps), float64(got.Sweeps), 1.5)
			eight.against(got, got)
			require.Less(t, float64(eight.figures.Efficiency), 1.0)
			require.Greater(t, float64(eight.figures.Efficiency), 0.2)
		})
	}
}

func TestSequentialRuns(t *testing.T) {
	pc := "{relaxation: 4 Mpoint/s}"
	require.True(t, prepared(t, pc, "delay:0", 2, nil).sequential())
	require.True(t, prepared(t, pc, "hybrid", 2, nil).sequential(), "one site")
	require.False(t, prepared(t, pc, "async", 2, nil).sequential())
	require.False(t, prepared(t, pc, "sync", 2, func(q *request, _ *simulation) { q.order = "in-turn" }).sequential())
	require.False(t, prepared(t, pc, "sync", 2, func(q *request, _ *simulation) { q.method.Name = "sor" }).sequential())
}

// A run with --stand-in 2 does the sweeps of the coarse grid and takes about the time of that many sweeps of the fine
// grid.
func TestStandIn(t *testing.T) {
	pc := "{relaxation: 4 Mpoint/s}"
	fine := prepared(t, pc, "sync", 2, func(q *request, _ *simulation) { q.n = "32" })
	coarse := prepared(t, pc, "sync", 2, func(q *request, s *simulation) { q.n, s.standIn = "32", 2 })
	require.Equal(t, fine.points(), coarse.points())
	require.Less(t, coarse.figures.Equivalent, fine.figures.Equivalent)
	require.InEpsilon(t, float64(fine.figures.Steady), float64(coarse.figures.Steady), 0.03)
	require.InEpsilon(t, fine.figures.Seconds/fine.figures.Equivalent, coarse.figures.Seconds/coarse.figures.Equivalent, 0.03)
}

// A sweep of a stand-in sends its faces before it relaxes the interior, as on the fine grid: its time does not depend on
// the stand-in where the network is faster than the interior.
func TestStandInSendsFacesFirst(t *testing.T) {
	steady := func(standIn int) float64 {
		r := prepared(t, "{relaxation: 4 Mpoint/s, cores: 2}", "sync", 8, func(q *request, s *simulation) {
			q.n, s.standIn = "32", standIn
		})
		return float64(r.figures.Steady)
	}
	require.InEpsilon(t, steady(1), steady(2), 0.01)
	require.InEpsilon(t, steady(1), steady(4), 0.02)
}

// An interrupted run is stopped, not failed.
func TestInterrupted(t *testing.T) {
	r := prepared(t, "{relaxation: 4 Mpoint/s}", "sync", 2, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	again := &virtualRun{Config: r.Config, work: r.work}
	a := &app{err: io.Discard, above: &above{w: io.Discard}, log: zerolog.Nop()}
	require.Equal(t, ExitStopped, exitCode(a.simulateAll(ctx, []*virtualRun{again})))
	require.Nil(t, again.result)
	require.Equal(t, "interrupted before it began", again.figures.Failure)
	require.Equal(t, ExitStopped, exitCode(again.verdict()))
}

// An interrupted comparison says why it names no winner, and further methods that did not end are no candidates.
func TestInterruptedComparison(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out strings.Builder
	c := report.SimulatedComparison{Interrupted: true}
	c.Text(&out)
	require.Contains(t, out.String(), "no verdict: the comparison was interrupted")
	r := prepared(t, "{relaxation: 4 Mpoint/s}", "sync", 2, nil)
	m := &methodComparison{rows: []*virtualRun{{Config: r.Config, work: r.work}}}
	a := &app{err: io.Discard, above: &above{w: io.Discard}, log: zerolog.Nop()}
	cancel()
	solved := report.Candidate{Seconds: 1}
	require.Empty(t, a.simulateBest(ctx, []*methodComparison{m}, []report.Candidate{solved}))
}

// Simultaneous simulations give the same results as single ones.
func TestRunsAreSimulatedInParallel(t *testing.T) {
	pc := "{relaxation: 4 Mpoint/s, jitter: 5 %}"
	var runs []*virtualRun
	for _, scheme := range []string{"async", "sync", "delay:2"} {
		runs = append(runs, prepared(t, pc, scheme, 4, nil))
	}
	again := make([]*virtualRun, len(runs))
	for i, r := range runs {
		again[i] = &virtualRun{Config: r.Config, work: r.work}
	}
	a := &app{err: io.Discard, above: &above{w: io.Discard}, log: zerolog.Nop()}
	require.NoError(t, a.simulateAll(context.Background(), again))
	for i := range runs {
		require.Equal(t, runs[i].figures.Seconds, again[i].figures.Seconds)
		require.Equal(t, runs[i].figures.Staleness, again[i].figures.Staleness)
		require.Equal(t, runs[i].figures.Bytes, again[i].figures.Bytes)
	}
}

// Runs that do not fit into memory are refused.
func TestCheckMemory(t *testing.T) {
	runs := []*virtualRun{prepared(t, "{relaxation: 4 Mpoint/s}", "sync", 2, nil)} // 16³ points
	runs = append(runs, runs[0], runs[0])
	require.NoError(t, checkMemory(runs, 2, 0), "unknown size")
	require.NoError(t, checkMemory(runs, 2, 2*4096*bytesPerPoint))
	err := checkMemory(runs, 2, 2*4096*bytesPerPoint-1)
	require.ErrorContains(t, err, "4096 points in 2 simultaneous runs")
	require.ErrorContains(t, err, "--stand-in")
	require.Equal(t, ExitUsage, exitCode(err))
	require.NoError(t, checkMemory(runs, 1, 2*4096*bytesPerPoint-1))
}

// this-machine is measured on the blocks of the run, or on default ones if the flags are invalid.
func TestBlockOf(t *testing.T) {
	for _, c := range []struct {
		n        string
		machines []int
		want     calibration.Workload
	}{
		{"64", []int{4}, calibration.Workload{N: 64, Peers: 4}},
		{"10,20,30", []int{4, 16, 8}, calibration.Workload{N: 30, Peers: 16}},
		{"8", []int{16}, calibration.Workload{}},
		{"1000", []int{2}, calibration.Workload{}},
		{"many", []int{2}, calibration.Workload{}},
		{"64", nil, calibration.Workload{}},
	} {
		require.Equal(t, c.want, (&request{n: c.n}).calibrationBlock(c.machines...), "%+v", c)
	}
}

// The simulation itself chooses how often iterates are kept, by the blocks of the full grid.
func TestKeptIteratesOfSimulatedRuns(t *testing.T) {
	r := prepared(t, "{relaxation: 4 Mpoint/s}", "sync", 2, func(q *request, _ *simulation) {
		q.Recover, q.Suspect = rendezvous.RecoverExact, defaultSuspect
	})
	require.True(t, r.Recover.Exact)
	require.Zero(t, r.Solver.KeepEvery)
}

// A simulated run moves parts from a slow machine to fast ones. Its figures count machines, not parts.
func TestPartsOfSimulatedRuns(t *testing.T) {
	f, err := clusterfile.Parse("test.yaml", []byte(`machines:
  slow: {relaxation: 0.02 Mpoint/s}
  fast: {relaxation: 0.1 Mpoint/s}
networks:
  lan: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 256 KiB, mtu: 1500 B}
sites:
  here: {network: lan, machines: [{class: slow, count: 1}, {class: fast}]}
`))
	require.NoError(t, err)
	s := &simulation{model: "test.yaml", standIn: 1}
	run := func(change func(q *request)) (*virtualRun, error) {
		a, q := simulatedRequest()
		q.Recover, q.Suspect = rendezvous.RecoverLocal, defaultSuspect
		change(q)
		r, err := a.prepare(q, s, f, "membrane", "sync", 3)
		if err != nil {
			return nil, err
		}
		return r, a.simulateAll(context.Background(), []*virtualRun{r})
	}
	plain, err := run(func(q *request) { q.Parts = 4 })
	require.NoError(t, err)
	require.Empty(t, plain.figures.Moves)
	r, err := run(func(q *request) { q.Parts, q.balance = 4, "on" })
	require.NoError(t, err)
	require.NotEmpty(t, r.figures.Moves)
	require.Equal(t, "machine 0", r.figures.Moves[0].From)
	require.Positive(t, r.figures.Moves[0].Seconds)
	require.Less(t, r.figures.Seconds, plain.figures.Seconds/2)
	require.Equal(t, [2]int{3, 4}, [2]int{r.figures.Machines, r.figures.Parts})
	require.InDelta(t, 1, r.figures.Relaxing+r.figures.Protocol+r.figures.Idle, 1e-9)
	per := report.Machines(r.result, &r.Config)
	require.Len(t, per, 12)
	at := map[int]int{}
	for _, m := range per {
		at[m.Machine]++
		require.Equal(t, m.Machine == 0, m.Class == "slow")
	}
	require.Less(t, at[0], 4)
	s.join, s.leave = []string{"1s"}, []string{"0@3s"}
	r, err = run(func(q *request) { q.Parts = 4 })
	require.NoError(t, err)
	require.Equal(t, 3, r.figures.Machines)
	at = map[int]int{}
	for _, m := range report.Machines(r.result, &r.Config) {
		at[m.Machine]++
	}
	require.Equal(t, map[int]int{1: 4, 2: 4, 3: 4}, at)
	_, err = run(func(q *request) { q.Parts, q.partition = 4, "1,1,3" })
	require.ErrorContains(t, err, "--partition 1,1,3 makes 3 parts for 3 machines with --parts 4")
}

func TestPartsOfSimulatedRunsAreRefused(t *testing.T) {
	for want, q := range map[string]request{
		"--balance on with --parts 1":                             {Spec: rendezvous.Spec{Parts: 1, Recover: rendezvous.RecoverLocal}, balance: "on"},
		"--parts 0: want 1 or more":                               {Spec: rendezvous.Spec{Recover: rendezvous.RecoverLocal}},
		"--balance on with --parts and --recover off: parts move": {Spec: rendezvous.Spec{Parts: 2, Recover: rendezvous.RecoverOff}, balance: "on"},
	} {
		require.ErrorContains(t, (&simulation{}).checkParts(&q), want)
	}
	for want, s := range map[string]simulation{
		"--join soon: want a time":                   {join: []string{"soon"}},
		"--join -1s: want a time":                    {join: []string{"-1s"}},
		"--leave 1: want MACHINE@TIME":               {leave: []string{"1"}},
		"--leave 4@1s: want MACHINE@TIME":            {join: []string{"1s"}, leave: []string{"3@1s", "4@1s"}},
		"--leave 1@late: want a time of 0s or more ": {leave: []string{"1@late"}},
	} {
		_, _, err := s.elastic(3)
		require.ErrorContains(t, err, want)
	}
	off := &request{Spec: rendezvous.Spec{Parts: 2, Recover: rendezvous.RecoverOff}}
	require.ErrorContains(t, (&simulation{leave: []string{"1@1s"}}).checkParts(off), "--join and --leave with --recover off")
}

// The reference of a cluster does not depend on the order of its machines: its fastest machine, and the sum of their
// speeds.
func TestEfficiencyOfUnequalMachines(t *testing.T) {
	var efficiencies, alone []float64
	for _, order := range []string{
		"{class: slow, count: 1}, {class: fast, count: 7}", "{class: fast, count: 7}, {class: slow, count: 1}",
	} {
		name := filepath.Join(t.TempDir(), "lab.yaml")
		require.NoError(t, os.WriteFile(name, []byte(`machines:
  slow: {relaxation: 4 Mpoint/s, slow: 5}
  fast: {relaxation: 4 Mpoint/s}
networks:
  lan: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 256 KiB, mtu: 1500 B}
sites:
  here: {network: lan, machines: [`+order+`]}
`), 0o600))
		for _, scheme := range []string{"sync", "async"} {
			code, out, errs := call("simulate", "membrane", "--n", "16", "--model", name, "--machines", "8", "--scheme", scheme,
				"--format", "json")
			require.Zero(t, code, errs)
			var s report.Simulation
			require.NoError(t, json.Unmarshal([]byte(out), &s))
			require.InDelta(t, 7.2, float64(s.Together), 1e-12)
			require.Contains(t, s.Reference, "(fast)")
			require.Less(t, float64(s.Efficiency), 1.0)
			efficiencies, alone = append(efficiencies, float64(s.Efficiency)), append(alone, float64(s.Alone))
		}
	}
	require.InEpsilon(t, efficiencies[0], efficiencies[2], 0.02, "synchronous")
	require.InEpsilon(t, efficiencies[1], efficiencies[3], 0.05, "asynchronous")
	require.InEpsilon(t, alone[0], alone[2], 0.01)
	require.InEpsilon(t, alone[1], alone[3], 1e-12)
}

// Hosts that share a machine have its cores together.
func TestSpeedOfASharedMachine(t *testing.T) {
	host := func(relaxation float64, machine int) cluster.Host {
		return cluster.Host{Class: cluster.Class{Relaxation: relaxation, Cores: 2}, Machine: machine}
	}
	r := &virtualRun{Config: simulate.Config{Model: &cluster.Model{Hosts: []cluster.Host{
		host(2, 1), host(2, 1), host(2, 1), host(2, 1), host(4, 0),
	}}}}
	require.InDelta(t, 2, r.together(), 1e-12)
}

// Runs on two stand-ins are compared if faces are replaced by newer ones after as many sweeps, however full the network is:
// what differs then is not their age. The slowest machine bounds what unequal speeds explain.
func TestRefreshedAndUnequalRuns(t *testing.T) {
	run := func(reads ...simulate.Reads) *virtualRun {
		return &virtualRun{result: &simulate.Result{Ranks: []simulate.RankResult{{Reads: reads}}}}
	}
	steady := run(simulate.Reads{Faces: 100, Fresh: 20}, simulate.Reads{Faces: 100, Fresh: 100})
	for _, c := range []struct {
		other *virtualRun
		alike bool
	}{
		{steady, true},
		{run(simulate.Reads{Faces: 500, Fresh: 120}, simulate.Reads{Faces: 500, Fresh: 400}), true},
		{run(simulate.Reads{Faces: 500, Fresh: 20}, simulate.Reads{Faces: 500, Fresh: 500}), false}, // a flow starves
		{run(simulate.Reads{Faces: 500}), false},
		{run(), false},
		{&virtualRun{}, false},
	} {
		require.Equal(t, c.alike, steady.refreshedAlike(c.other))
		require.Equal(t, c.alike, c.other.refreshedAlike(steady))
	}
	r := &virtualRun{Config: simulate.Config{Model: &cluster.Model{
		Hosts: []cluster.Host{
			{Class: cluster.Class{Relaxation: 5}}, {Class: cluster.Class{Relaxation: 5, Slow: 5}},
		},
	}}}
	require.InDelta(t, 2, r.unequal(), 1e-12, "the slow one takes three times as long as both together")
}

// The time of a run whose frames are lost by chance is known as well as the number of its delays on the coarser stand-in.
func TestChanceOfLosses(t *testing.T) {
	r := &virtualRun{Config: simulate.Config{Model: &cluster.Model{Hosts: make([]cluster.Host, 8)}}, coarser: &virtualRun{}}
	r.figures.Efficiency, r.coarser.figures.Lost = 0.5, 800
	require.Zero(t, r.losses())
	r.Model.WAN = []cluster.WANLink{{Loss: 0.01}}
	require.InDelta(t, math.Sqrt(0.02), r.losses(), 1e-12)
	r.coarser.figures.Lost = 0
	require.InDelta(t, math.Sqrt(2), r.losses(), 1e-12)
	r.figures.Efficiency = 1
	require.Zero(t, r.losses())
}
