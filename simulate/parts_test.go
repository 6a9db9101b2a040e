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

// The parts of a process take turns: a sweep takes the sum of their work, on any number of cores, and as long as with
// one part. What they send to each other does not cross the network.
func TestPartsTakeTurns(t *testing.T) {
	want := float64(16 * 16 * 16 * 10 * time.Nanosecond)
	for _, cores := range []int{1, 2, 8} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			m := gigabit(1)
			m.Hosts[0].Cores, m.Networks[0].Latency = cores, time.Second
			r := steadily(t, m, membrane(16), s, 4, func(r *Config) { r.Parts, r.Sweeps = 4, 200 })
			require.InEpsilon(t, want, float64(r.Steady), 0.05, "%d cores, %v", cores, s)
		}
	}
}

// Relaxing on shared cores leaves the others free, and the processes of a machine relax at the same time.
func TestThreadsOfProcesses(t *testing.T) {
	work := float64(16 * 16 * 16 * 10 * time.Nanosecond)
	for cores, want := range map[int]float64{1: work, 2: work / 2, 4: work / 2} {
		m := desk(2, cores)
		r := steadily(t, m, membrane(16), iterate.Synchronous(), 8, func(r *Config) { r.Parts, r.Sweeps = 4, 50 })
		require.InEpsilon(t, want, float64(r.Steady), 0.15, "%d cores", cores)
	}
}

// The parts of a process share its line: their faces leave one after the other.
func TestPartsShareALine(t *testing.T) {
	sweep := func(machines, parts int) float64 {
		m := gigabit(machines)
		m.Networks[0].Rate, m.Networks[0].Queue = 1e6, 8<<20
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 1e12
		}
		r := steadily(t, m, membrane(16), iterate.Synchronous(), machines*parts, func(r *Config) {
			r.Parts, r.Sweeps = parts, 20
			var err error
			r.Solver.Partition, err = problem.GridOf([3]int{16, 16, 16}, [3]int{1, parts, machines})
			require.NoError(t, err)
		})
		return float64(r.Steady)
	}
	require.InEpsilon(t, sweep(2, 1), sweep(2, 4), 0.3)
}

// A synchronous run of parts gives the bits of the sequential method.
func TestBitsOfParts(t *testing.T) {
	p := membrane(9)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	m := gigabit(2)
	costly(m, 2, false)
	m.Networks[0].Loss = 0.01
	run := runOf(t, m, p, iterate.Synchronous(), 8)
	run.Parts = 4
	r := played(t, run)
	require.Equal(t, want.U, r.U)
}

// All parts of a process are lost at once, and one spare process takes their places.
func TestLossOfAProcessWithParts(t *testing.T) {
	for _, exact := range []bool{false, true} {
		m := gigabit(3)
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 1e5
		}
		run := runOf(t, m, membrane(9), iterate.Synchronous(), 12)
		run.Parts = 4
		plain := played(t, run)
		run.Recover = &Recovery{Suspect: 2 * time.Millisecond, Spares: 1, Exact: exact}
		if exact {
			run.Solver.KeepEvery = time.Nanosecond
		}
		for _, killed := range []bool{false, true} {
			r := played(t, run, lossAt(plain.Virtual/2, 1, killed))
			require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
			require.Len(t, r.Losses, 4)
			for i, l := range r.Losses {
				require.Equal(t, 4+i, l.Rank)
				require.Equal(t, killed, l.Killed)
				require.True(t, l.Spare)
				require.Greater(t, l.Resumed, l.Noticed)
				require.Equal(t, exact, l.From > 0)
			}
			if exact {
				require.Equal(t, plain.U, r.U)
			}
		}
	}
}

// Slow times and cuts of a machine are those of all its parts.
func TestEventsOfPartsAreThoseOfTheirMachine(t *testing.T) {
	m := gigabit(2)
	run := runOf(t, m, membrane(9), iterate.Asynchronous(), 4)
	run.Parts = 2
	r := played(t, run, cluster.Event{Rank: 1, Slow: 10})
	for _, rank := range []int{2, 3} {
		require.Greater(t, r.Ranks[rank-2].Sweeps, 3*r.Ranks[rank].Sweeps)
	}
	run.Recover = &Recovery{Suspect: time.Second}
	whole := played(t, run)
	half := whole.Virtual / 2
	cut := played(t, run, cluster.Event{At: half, Until: half + 50*time.Millisecond, Apart: []int{1}})
	require.Empty(t, cut.Losses)
	run.Recover.Suspect = 2 * time.Millisecond
	cut = played(t, run, cluster.Event{At: half, Apart: []int{1}})
	require.Len(t, cut.Losses, 2)
	for i, l := range cut.Losses {
		require.Equal(t, [2]int{2 + i, 1}, [2]int{l.Rank, l.Host})
	}
}

func TestPartsAreRefused(t *testing.T) {
	run := runOf(t, gigabit(2), membrane(7), iterate.Synchronous(), 8)
	for want, change := range map[string]func(r *Config){
		"-1 parts":                   func(r *Config) { r.Parts = -1 },
		"8 peers for the 2 machines": func(r *Config) { r.Parts = 3 },
		"\"test\", 1 for each":       func(*Config) {},
		"Leaves need Recover":        func(r *Config) { r.Parts, r.Balance = 4, true },
		"1 machines join the first 2": func(r *Config) {
			r.Parts, r.Joins, r.Recover = 4, []time.Duration{0}, &Recovery{}
		},
		"join at -1s": func(r *Config) { r.Parts, r.Joins, r.Recover = 8, []time.Duration{-time.Second}, &Recovery{} },
		"machine 2 cannot leave": func(r *Config) {
			r.Parts, r.Leaves, r.Recover = 4, []Leave{{Host: 2}}, &Recovery{}
		},
	} {
		r := run
		change(&r)
		_, err := Run(context.Background(), r)
		require.ErrorContains(t, err, want)
	}
}
