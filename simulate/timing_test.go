package simulate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// steadily simulates so many sweeps without residuals.
func steadily(t testing.TB, m *cluster.Model, p *problem.Problem, s iterate.Scheme, peers int,
	change func(r *Config)) *Result {
	t.Helper()
	run := runOf(t, m, p, s, peers)
	run.Solver.Tolerance = 0
	run.Solver.CheckEvery = 1 << 20
	run.Sweeps = 40
	if change != nil {
		change(&run)
	}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedSweeps, r.Reason)
	return r
}

// frameHeader is the number of bytes before a synchronous segment's payload. An acknowledgement has
// no payload.
const frameHeader = 58

// Two machines exchange one face per sweep. It leaves when its layer has been relaxed, or after the
// acknowledgement of the face before. So a sweep takes that time, the message on two lines and the
// latency, or its relaxation if that is longer.
func TestSweepOfTwo(t *testing.T) {
	line := func(payload int) time.Duration { return time.Duration(payload+frameHeader+38) * 8 }
	for _, c := range []struct {
		n      int
		change func(m *cluster.Model)
		late   bool
		want   time.Duration
	}{
		{n: 8, want: line(0) + 2*line(512) + 20000},
		{n: 8, late: true, want: 5120 + 2*line(512) + 20000},
		{n: 16, want: 2560 + 2*line(1408) + line(640) + 20000}, // the second of two frames waits for the first on both lines
		{n: 8, want: 5120, change: func(m *cluster.Model) {
			m.Networks[0].Rate, m.Networks[0].Latency = 1e12,
				time.Microsecond
		}},
		{n: 8, want: 640 + 2*line(512) + 20000 + 2000 + 3000, change: func(m *cluster.Model) {
			for i := range m.Hosts {
				m.Hosts[i].Send, m.Hosts[i].Receive = cluster.Cost{Message: 2000}, cluster.Cost{Message: 3000}
			}
		}},
	} {
		t.Run(fmt.Sprint(c.n, c.late, c.want), func(t *testing.T) {
			m := gigabit(2)
			if c.change != nil {
				c.change(m)
			}
			p := membrane(c.n)
			p.N[2] *= 2
			if c.n == 16 {
				p.N[2] = 16
			}
			r := steadily(t, m, p, iterate.Synchronous(), 2, func(r *Config) { r.NoOverlap = c.late })
			require.InDelta(t, float64(c.want), float64(r.Steady), 0.001*float64(c.want))
		})
	}
}

// A sweep of a few points takes a microsecond: its fixed costs.
func TestLeastSweep(t *testing.T) {
	m := gigabit(2)
	p := membrane(2)
	p.N[2] = 4
	require.InDelta(t, 1000, float64(steadily(t, m, p, iterate.Asynchronous(), 2, nil).Steady), 1)
	p = membrane(8)
	p.N[2] = 16
	require.InDelta(t, 5120, float64(steadily(t, m, p, iterate.Asynchronous(), 2, nil).Steady), 1, "512 points of 10 ns")
}

// A scaled grid takes the time of the grid that it represents, and with scale 1 it is the grid
// itself.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of simulated clusters: without -short")
	}
	m := gigabit(64)
	real := steadily(t, m, membrane(64), iterate.Synchronous(), 64, func(r *Config) { r.Sweeps = 40 })
	stands := steadily(t, m, membrane(32), iterate.Synchronous(), 64, func(r *Config) { r.Scale, r.Sweeps = 2, 40 })
	require.InDelta(t, float64(real.Steady), float64(stands.Steady), 0.02*float64(real.Steady))
	require.Equal(t, real.Ranks[21].Sweeps, stands.Ranks[21].Sweeps)
	require.InDelta(t, float64(real.Ranks[21].Bytes), float64(stands.Ranks[21].Bytes), 0.02*float64(real.Ranks[21].Bytes))

	one := steadily(t, gigabit(8), membrane(16), iterate.Synchronous(), 8, nil)
	require.Equal(t, one, steadily(t, gigabit(8), membrane(16), iterate.Synchronous(), 8, func(r *Config) { r.Scale = 1 }))
	run := runOf(t, gigabit(8), membrane(7), iterate.Synchronous(), 8)
	thin, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Scale = 3
	thick, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, thin.U, thick.U, "the iteration is that of the coarse grid")
	require.Greater(t, thick.Virtual, 2*thin.Virtual)
}

// Jitter lengthens synchronous sweeps, since all wait for the slowest. One machine alone keeps its
// mean.
func TestJitterAndStraggle(t *testing.T) {
	m := gigabit(1)
	m.Hosts[0].Jitter = 0.3
	one := steadily(t, m, membrane(12), iterate.Synchronous(), 1, func(r *Config) { r.Sweeps = 4000 })
	mean := 12 * 12 * 12 * 10 * time.Nanosecond
	require.InDelta(t, float64(mean), float64(one.Ranks[0].Relaxing)/4000, 0.02*float64(mean))

	m.Hosts[0].Jitter, m.Hosts[0].Straggle = 0, cluster.Straggle{PerSecond: 1000, For: 5 * time.Millisecond}
	one = steadily(t, m, membrane(12), iterate.Synchronous(), 1, func(r *Config) { r.Sweeps = 40000 })
	mean *= 6 // five seconds of pauses for each second of relaxing
	require.InDelta(t, float64(mean), float64(one.Ranks[0].Relaxing)/40000, 0.15*float64(mean))

	calm := steadily(t, gigabit(8), membrane(24), iterate.Synchronous(), 8, nil)
	m = gigabit(8)
	for i := range m.Hosts {
		m.Hosts[i].Jitter = 0.3
	}
	require.Greater(t, steadily(t, m, membrane(24), iterate.Synchronous(), 8, nil).Steady, calm.Steady)
}

// A lost machine ends the run after the peer time-out of its neighbours, and the error names it.
func TestLostMachine(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		m := gigabit(8)
		m.Events = []cluster.Event{{At: 5 * time.Millisecond, Rank: 5, Lost: true}}
		run := runOf(t, m, membrane(7), s, 8)
		run.Solver.Tolerance = 1e-13
		if s.Asynchronous() {
			run.Solver.Problem = membrane(63) // ten seconds take long to simulate for the other seven
			run.Solver.Partition, _ = problem.Boxes(run.Solver.Problem.N, 8)
			m.Hosts[0].Relaxation = 1e4
			run.Model = slowed(m)
		}
		r, err := Run(context.Background(), run)
		var lost *p2psap.PeerLostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, "peer5", lost.Peer)
		require.NotNil(t, r)
		require.Greater(t, r.Virtual, 9*time.Second)
		require.Less(t, r.Virtual, 12*time.Second)
		require.Equal(t, iterate.Running, r.Reason)
	}
}

// slowed returns slow machines, so that ten seconds are few events.
func slowed(m *cluster.Model) *cluster.Model {
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 2e4
	}
	return m
}

// A cut that heals in time only costs time. A longer one ends the run.
func TestCut(t *testing.T) {
	for _, halves := range []bool{false, true} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			if testing.Short() && halves != s.Asynchronous() {
				continue
			}
			play := func(until time.Duration) (*Result, error) {
				m := slowed(gigabit(8))
				cut := cluster.Event{At: 100 * time.Millisecond, Until: until, Cut: [2]string{"here", ""}}
				if !halves {
					split(t, m, cluster.WANLink{Rate: 125e6, Latency: time.Millisecond, Queue: 1 << 20})
					cut.Cut[1] = "there"
				}
				if until >= 0 {
					m.Events = []cluster.Event{cut}
				}
				return Run(context.Background(), runOf(t, m, membrane(7), s, 8))
			}
			whole, err := play(-1)
			require.NoError(t, err)
			healed, err := play(3 * time.Second)
			require.NoError(t, err)
			require.LessOrEqual(t, healed.Residual, 1e-6)
			if !s.Asynchronous() {
				require.Equal(t, whole.U, healed.U)
				require.Greater(t, healed.Virtual, whole.Virtual+2500*time.Millisecond)
			}
			_, err = play(0)
			var lost *p2psap.PeerLostError
			require.ErrorAs(t, err, &lost)
		}
	}
}

// Until ends a run in virtual time with the newest iterate.
func TestUntil(t *testing.T) {
	run := runOf(t, gigabit(8), membrane(7), iterate.Synchronous(), 8)
	run.Until = 500 * time.Microsecond
	seen := 0
	run.Watch = func(p Progress) { seen++ }
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedTime, r.Reason)
	require.Equal(t, run.Until, r.Virtual)
	require.Greater(t, r.Residual, 1e-6)
	require.Positive(t, seen)
}
