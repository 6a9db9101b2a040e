package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// drawModel draws machines and networks of every kind, slow but not so slow that runs take long to
// simulate.
func drawModel(t *rapid.T, machines int) *cluster.Model {
	us := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Microsecond
	}
	m := gigabit(machines)
	k := &m.Networks[0]
	k.Kind = rapid.SampledFrom([]string{cluster.Ether, cluster.IB}).Draw(t, "kind")
	k.Rate = rapid.SampledFrom([]float64{12.5e6, 125e6, 2.5e9}).Draw(t, "rate")
	k.Latency, k.Jitter = us("latency", 300), us("jitter", 200)
	k.MTU = rapid.SampledFrom([]int{300, 1500, 8128}).Draw(t, "mtu")
	// Without a bound what fast senders send would fill the memory.
	k.Queue = rapid.SampledFrom([]int{4 * k.MTU, 64 * k.MTU, 1 << 20}).Draw(t, "queue")
	k.Backplane = rapid.SampledFrom([]float64{0, 2 * k.Rate}).Draw(t, "backplane")
	if k.Kind == cluster.Ether {
		k.Loss = rapid.SampledFrom([]float64{0, 0, 0.01, 0.1}).Draw(t, "loss")
		if rapid.IntRange(0, 3).Draw(t, "shaped") == 0 {
			k.Shaper = cluster.Shaper{Rate: 12.5e6, Burst: 6000, Queue: 1 << 18}
		}
	}
	class := cluster.Class{
		Name: "drawn", Cores: rapid.IntRange(1, 2).Draw(t, "cores"), Copies: rapid.Bool().Draw(t, "copies"),
		Relaxation: rapid.SampledFrom([]float64{1e4, 1e5, 2e5, 1e6, 1e7}).Draw(t, "rate of relaxation"),
		Jitter:     rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "jitter of relaxation"),
		Send:       cluster.Cost{Message: us("message", 20), Segment: us("segment", 10), Byte: 1},
		Receive:    cluster.Cost{Message: us("message in", 20), Segment: us("segment in", 10), Byte: 1},
	}
	together := rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "together")
	for i := range m.Hosts {
		m.Hosts[i].Class, m.Hosts[i].Machine = class, together
		m.Hosts[i].Slow = rapid.SampledFrom([]float64{0, 1, 4}).Draw(t, "slow")
	}
	if k.Kind == cluster.Ether && rapid.Bool().Draw(t, "two sites") {
		slow := make([]float64, machines)
		for i := range slow {
			slow[i] = m.Hosts[i].Slow
		}
		split(t, m, cluster.WANLink{Rate: 12.5e6, Latency: us("apart", 5000), Queue: 1 << 18, Loss: k.Loss})
		for i := range slow {
			m.Hosts[i].Slow = slow[i]
		}
	}
	return m
}

// A run on any model meets the tolerance, and in lockstep it has the bits of the sequential method.
func TestDrawnModels(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	p := membrane(5)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-3, 0, 0, 0)
	require.NoError(t, err)
	rapid.Check(t, func(r *rapid.T) {
		peers := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(r, "peers")
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(),
			iterate.BoundedDelay(1)}).Draw(r,
			"scheme")
		run := runOf(t, drawModel(r, peers), p, s, peers)
		run.Solver.Tolerance, run.Seed = 1e-3, rapid.Uint64().Draw(r, "seed")
		run.NoOverlap = rapid.Bool().Draw(r, "late")
		run.Scale = rapid.IntRange(0, 2).Draw(r, "standing")
		run.Parts = rapid.IntRange(0, 3).Draw(r, "parts")
		if run.Balance = rapid.Bool().Draw(r, "balance"); run.Balance {
			// An epoch of moves keeps the bits only if it resumes from kept iterates.
			run.Recover = &Recovery{Exact: s.Lockstep()}
		}
		if s.Asynchronous() {
			// Fast senders fill the queues of slow receivers, and agreement messages are lost as
			// well: seconds of retransmissions, millions of events (see TestNoReceiveLivelock).
			for i := range run.Model.Hosts {
				run.Model.Hosts[i].Relaxation = min(run.Model.Hosts[i].Relaxation, 5e5)
			}
		}
		// Between sites that lose a tenth of the frames, time-outs back off up to a minute each.
		run.Until = time.Hour
		out, err := Run(t.Context(), run)
		require.NoError(r, err)
		require.Equal(r, iterate.Converged, out.Reason)
		require.LessOrEqual(r, out.Residual, 1e-3)
		if s.Lockstep() {
			require.Equal(r, want.U, out.U)
		}
		for _, k := range out.Ranks {
			require.LessOrEqual(r, k.Relaxing+k.Protocol+k.Idle, out.Virtual+time.Millisecond)
		}
	})
}

// Killed peers begin a time step again on any model. In lockstep the answer keeps the bits of the sequential method.
func TestDrawnLossesInTimeSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	p := drum(5, 3)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-3, 0, 0, 0)
	require.NoError(t, err)
	rapid.Check(t, func(r *rapid.T) {
		peers := rapid.SampledFrom([]int{1, 2, 4}).Draw(r, "peers")
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()}).Draw(r, "scheme")
		run := runOf(t, drawModel(r, peers), p, s, peers)
		run.Solver.Tolerance, run.Seed = 1e-3, rapid.Uint64().Draw(r, "seed")
		run.Solver.Reconfigure = rapid.Bool().Draw(r, "reconfigure")
		for i := range run.Model.Hosts {
			run.Model.Hosts[i].Relaxation = min(run.Model.Hosts[i].Relaxation, 5e5)
		}
		run.Until, run.Recover = time.Hour, &Recovery{Spares: rapid.IntRange(0, 2).Draw(r, "spares")}
		alone, err := Run(t.Context(), run)
		require.NoError(r, err)
		for range rapid.IntRange(1, 3).Draw(r, "losses") {
			run.Model.Events = append(run.Model.Events, cluster.Event{
				At:     time.Duration(rapid.Float64Range(0, 1.2).Draw(r, "at") * float64(alone.Virtual)),
				Rank:   rapid.IntRange(0, peers-1).Draw(r, "rank"),
				Killed: true,
			})
		}
		out, err := Run(t.Context(), run)
		require.NoError(r, err)
		require.Equal(r, iterate.Converged, out.Reason)
		require.LessOrEqual(r, out.Residual, 1e-3)
		require.Len(r, out.Steps, 3)
		if s.Lockstep() {
			require.Equal(r, want.U, out.U)
		}
		for _, l := range out.Losses {
			require.LessOrEqual(r, l.Noticed, out.Virtual)
		}
	})
}

// The time of frames that the protocol has received and not handled at the end of a run does not
// count.
func TestTimeOfARankIsWithinTheRun(t *testing.T) {
	const us = time.Microsecond
	m := gigabit(8)
	k := &m.Networks[0]
	k.Kind = cluster.IB
	k.Rate = 12.5e6
	k.Latency = 0
	k.MTU = 300
	for i, slow := range []float64{4, 1, 1, 0, 1, 0, 1, 1} {
		m.Hosts[i].Class = cluster.Class{
			Name: "one core", Cores: 1, Relaxation: 5e5,
			Send: cluster.Cost{Byte: 1}, Receive: cluster.Cost{Message: 17 * us, Segment: 8 * us, Byte: 1},
		}
		m.Hosts[i].Slow = slow
	}
	run := runOf(t, m, membrane(5), iterate.Asynchronous(), 8)
	run.Solver.Tolerance = 1e-3
	run.Seed = 0
	run.NoOverlap = true
	out, err := Run(t.Context(), run)
	require.NoError(t, err)
	for _, k := range out.Ranks {
		require.LessOrEqual(t, k.Relaxing+k.Protocol+k.Idle, out.Virtual+time.Millisecond)
	}
}
