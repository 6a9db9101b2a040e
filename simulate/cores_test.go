package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// desk returns a machine of so many cores with all ranks on it, and a network that takes almost no
// time.
func desk(ranks, cores int) *cluster.Model {
	m := gigabit(ranks)
	m.Networks[0].Rate, m.Networks[0].Latency = 1e12, time.Nanosecond
	for i := range m.Hosts {
		m.Hosts[i].Machine, m.Hosts[i].Cores = 1, cores
	}
	return m
}

// On fewer cores than ranks a sweep takes the sum of the work. On enough cores it takes each rank's
// own.
func TestSharedCores(t *testing.T) {
	sum := float64(16 * 16 * 16 * 10 * time.Nanosecond)
	for _, c := range []struct {
		ranks, cores int
		crowding     float64
		want         float64
	}{{2, 1, 0, sum}, {2, 2, 0, sum / 2}, {4, 1, 0, sum}, {4, 2, 0, sum / 2}, {8, 2, 0, sum / 2}, {2, 2, 0.5,
		0.75 * sum}, {8, 2, 0.5, 0.75 * sum}, {2, 1, 0.5, sum}} {
		m := desk(c.ranks, c.cores)
		for i := range m.Hosts {
			m.Hosts[i].Crowding = c.crowding
		}
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			r := steadily(t, m, membrane(16), s, c.ranks, func(r *Config) { r.Sweeps = 200 })
			tolerance := 0.05
			if s.Asynchronous() {
				tolerance = 0.1 // ranks that are served first get ahead
			}
			if c.cores > 1 && c.ranks > c.cores {
				tolerance = 0.15 // parts do not divide evenly
			}
			require.InEpsilon(t, c.want, float64(r.Steady), tolerance, "%d ranks, %d cores, crowding %v, %v", c.ranks, c.cores,
				c.crowding, s)
		}
	}
}

// The protocol's time is taken from shared cores.
func TestFramesTakeSharedCores(t *testing.T) {
	m := desk(2, 1)
	free := steadily(t, m, membrane(16), iterate.Synchronous(), 2, nil)
	for i := range m.Hosts {
		m.Hosts[i].Send.Segment, m.Hosts[i].Receive.Segment = 3*time.Microsecond, 7*time.Microsecond
	}
	paid := steadily(t, m, membrane(16), iterate.Synchronous(), 2, nil)
	segments := float64(paid.Ranks[0].Segments+paid.Ranks[1].Segments) / paid.Ranks[0].Sweeps
	require.InEpsilon(t, 10000*segments, float64(paid.Steady-free.Steady), 0.05)
}

// Each part of a sweep has a cost, and a thread that has blocked wakes late.
func TestPartsAndWaking(t *testing.T) {
	m := desk(1, 1)
	m.Hosts[0].Part = 5 * time.Microsecond
	one := steadily(t, m, membrane(16), iterate.Synchronous(), 1, nil)
	require.Equal(t, 16*16*16*10*time.Nanosecond+5*time.Microsecond, one.Steady, "one part")

	m = gigabit(2)
	m.Networks[0].Latency = 100 * time.Microsecond
	prompt := steadily(t, m, membrane(8), iterate.Synchronous(), 2, nil)
	for _, c := range []struct{ after, late time.Duration }{{50 * time.Microsecond, 30 * time.Microsecond},
		{time.Millisecond, 0}} {
		for i := range m.Hosts {
			m.Hosts[i].Wake = cluster.Wake{After: c.after, Takes: 30 * time.Microsecond}
		}
		r := steadily(t, m, membrane(8), iterate.Synchronous(), 2, nil)
		require.InDelta(t, float64(c.late), float64(r.Steady-prompt.Steady), 0.2*float64(c.late), "looks for %v", c.after)
	}
}

// On shared cores a synchronous run keeps its bits, and an asynchronous run is determined by its
// seed.
func TestSharedCoresBits(t *testing.T) {
	p := membrane(9)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	m := desk(8, 2)
	for i := range m.Hosts {
		m.Hosts[i].Crowding = 0.3
		m.Hosts[i].Jitter = 0.1
		m.Hosts[i].Wake = cluster.Wake{After: time.Microsecond, Takes: time.Microsecond}
		m.Hosts[i].Send, m.Hosts[i].Receive = cluster.Cost{Message: 900, Segment: 300}, cluster.Cost{Message: 700, Byte: 0.3}
	}
	r, err := Run(context.Background(), runOf(t, m, p, iterate.Synchronous(), 8))
	require.NoError(t, err)
	require.Equal(t, want.U, r.U)
	run := runOf(t, m, p, iterate.Asynchronous(), 8)
	a, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.LessOrEqual(t, a.Residual, 1e-6)
	b, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// A receiver makes progress although others send, without waiting, faster than it can receive: the
// relaxing thread keeps its share of its core, and sends keep their turn on the protocol's.
func TestNoReceiveLivelock(t *testing.T) {
	for name, m := range map[string]*cluster.Model{"own core": gigabit(4), "one core": gigabit(4), "shared cores": desk(4,
		2)} {
		if testing.Short() && name != "one core" {
			continue
		}
		for i := range m.Hosts {
			h := &m.Hosts[i]
			h.Relaxation = 1e9
			h.Send, h.Receive = cluster.Cost{Segment: 6 * time.Microsecond}, cluster.Cost{Segment: 10500}
			if name == "one core" {
				h.Cores = 1
			}
		}
		run := runOf(t, m, membrane(12), iterate.Asynchronous(), 4)
		run.Until = time.Second
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, r.Reason, name)
		for rank, k := range r.Ranks {
			require.Greater(t, k.Sweeps, 20.0, "%s, rank %d", name, rank)
		}
	}
}
