package simulate

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// membrane returns a membrane over an obstacle, with n points along each axis.
func membrane(n int) *problem.Problem {
	return &problem.Problem{
		Name: "membrane", Dimension: 3, N: [3]int{n, n, n}, Hi: problem.Point{1, 1, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Obstacle: func(p problem.Point) float64 {
			v := 0.5
			for _, x := range p {
				v -= 4 * (x - 0.5) * (x - 0.5)
			}
			return v
		},
		Boundary: func(problem.Point) float64 { return 0 },
	}
}

// gigabit returns a cluster of equal machines on one switch.
func gigabit(machines int) *cluster.Model {
	m := &cluster.Model{
		Name: "test", Sites: []string{"here"},
		Networks: []cluster.Network{{
			Name: "eth", Kind: cluster.Ether, Rate: 125e6, Latency: 20 * time.Microsecond, Queue: 512 << 10, MTU: 1500,
			Frame: 38,
		}},
	}
	for range machines {
		m.Hosts = append(m.Hosts, cluster.Host{Class: cluster.Class{Name: "plain", Cores: 2, Relaxation: 1e8}})
	}
	return m
}

func runOf(t testing.TB, m *cluster.Model, p *problem.Problem, s iterate.Scheme, peers int) Config {
	t.Helper()
	part, err := problem.Boxes(p.N, peers)
	require.NoError(t, err)
	return Config{
		Model: m, Seed: 1, Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Solver: problem.Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-6},
	}
}

// A synchronous run gives the bits of the sequential method, on every kind of network.
func TestSynchronousBits(t *testing.T) {
	n := 15
	if testing.Short() {
		n = 13
	}
	p := membrane(n)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	end, err := verify.Evaluate(p, want.U, nil)
	require.NoError(t, err)
	for name, change := range map[string]func(m *cluster.Model){
		"ether": func(*cluster.Model) {},
		"ib": func(m *cluster.Model) {
			m.Networks[0].Kind = cluster.IB
			m.Networks[0].Rate = 2.5e9
			m.Networks[0].MTU = 8128
		},
		"lossy":   func(m *cluster.Model) { m.Networks[0].Loss, m.Networks[0].MTU = 0.02, 400 },
		"narrow":  func(m *cluster.Model) { m.Networks[0].Queue, m.Networks[0].MTU = 800, 400 },
		"jitter":  func(m *cluster.Model) { m.Networks[0].Jitter = 200 * time.Microsecond },
		"costly":  func(m *cluster.Model) { costly(m, 2, false) },
		"one":     func(m *cluster.Model) { costly(m, 1, false) },
		"copying": func(m *cluster.Model) { costly(m, 4, true) },
		"slow":    func(m *cluster.Model) { m.Events = []cluster.Event{{At: time.Millisecond, Rank: 3, Slow: 50}} },
	} {
		t.Run(name, func(t *testing.T) {
			m := gigabit(8)
			change(m)
			r, err := Run(context.Background(), runOf(t, m, p, iterate.Synchronous(), 8))
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, r.Reason)
			require.Equal(t, want.U, r.U)
			require.Equal(t, end.RelativeResidual, r.Residual)
			for _, k := range r.Ranks {
				require.GreaterOrEqual(t, k.Sweeps, float64(want.Sweeps))
				require.InDelta(t, float64(r.Virtual), float64(k.Relaxing+k.Protocol+k.Idle), 1)
				require.Equal(t, name == "one" || name == "copying", k.Protocol > 0)
			}
			lost := uint64(0)
			for _, k := range r.Ranks {
				lost += k.Lost
			}
			require.Equal(t, name == "lossy" || name == "narrow", lost > 0, "%d frames lost", lost)
			ages := uint64(0)
			for _, n := range r.Staleness[1:] {
				ages += n
			}
			require.Zero(t, ages, "a synchronous sweep reads the newest faces")
		})
	}
}

// costly sets costs of the protocol, jitter and pauses.
func costly(m *cluster.Model, cores int, copies bool) {
	for i := range m.Hosts {
		c := &m.Hosts[i].Class
		c.Cores = cores
		c.Copies = copies
		c.Jitter = 0.1
		c.Send = cluster.Cost{Message: 2 * time.Microsecond, Segment: time.Microsecond, Byte: 0.5}
		c.Receive = cluster.Cost{Message: 3 * time.Microsecond, Segment: 2 * time.Microsecond, Byte: 0.25}
		c.Straggle = cluster.Straggle{PerSecond: 50, For: time.Millisecond}
	}
}

func TestAsynchronousConverges(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for _, kind := range []string{cluster.Ether, cluster.IB} {
		for seed := range seeds {
			m := gigabit(8)
			costly(m, 2, false)
			m.Networks[0].Kind, m.Networks[0].Rate = kind, 1.25e9
			if kind == cluster.IB {
				m.Networks[0].MTU = 8128
			} else {
				m.Networks[0].Loss = 0.01
			}
			run := runOf(t, m, membrane(15), iterate.Asynchronous(), 8)
			run.Seed = seed
			r, err := Run(context.Background(), run)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, r.Reason)
			require.LessOrEqual(t, r.Residual, 1e-6)
			old := uint64(0)
			for _, n := range r.Staleness[1:] {
				old += n
			}
			require.Positive(t, old, "an asynchronous sweep reads what has come")
		}
	}
}

// The same seed gives the same run, and another seed another one.
func TestDeterminism(t *testing.T) {
	play := func(seed uint64) *Result {
		m := gigabit(8)
		costly(m, 1, false)
		m.Networks[0].Loss, m.Networks[0].Jitter = 0.01, 30*time.Microsecond
		run := runOf(t, m, membrane(15), iterate.Asynchronous(), 8)
		run.Seed = seed
		run.Watch = func(Progress) {}
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		return r
	}
	first := play(1)
	require.Equal(t, first, play(1))
	require.NotEqual(t, first.Virtual, play(2).Virtual)
}

// The result does not depend on the number of threads, even if many events happen at one instant.
func TestThreads(t *testing.T) {
	threads := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(threads)
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		play := func(threads int) *Result {
			runtime.GOMAXPROCS(threads)
			return steadily(t, gigabit(32), membrane(16), s, 32, func(r *Config) { r.Sweeps = 8 })
		}
		alone := play(1)
		for range 2 {
			require.Equal(t, alone, play(8))
		}
	}
}

func TestErrors(t *testing.T) {
	good := runOf(t, gigabit(8), membrane(7), iterate.Synchronous(), 8)
	for _, c := range []struct {
		want   string
		change func(r *Config)
	}{
		{"needs a model", func(r *Config) { r.Model = nil }},
		{"needs a problem", func(r *Config) { r.Solver.Problem = nil }},
		{"0 peers; Config.New needs", func(r *Config) { r.New = ownPeer }},
		{"apply to Config.Solver", func(r *Config) { r.New, r.Peers, r.Evaluate = ownPeer, 1, true }},
		{"8 peers for the 4 machines", func(r *Config) { r.Model = gigabit(4) }},
		{"stands for -1 points", func(r *Config) { r.Scale = -1 }},
		{"-1 threads", func(r *Config) { r.Threads = -1 }},
		{"end after -1ns", func(r *Config) { r.Until = -1 }},
		{"relaxes 0 points", func(r *Config) { r.Model.Hosts[2].Relaxation = 0 }},
		{"relaxes NaN points", func(r *Config) { r.Model.Hosts[2].Relaxation = math.NaN() }},
		{"carries 0 bytes", func(r *Config) { r.Model.Networks[0].Rate = 0 }},
		{"in method richardson only", func(r *Config) { r.NoOverlap, r.Solver.Method.Name = true, problem.Multigrid }},
		{"rank 0: problem: the grid cannot be partitioned", func(r *Config) {
			r.Solver.Partition, _ = problem.Boxes([3]int{31, 31, 31},
				8)
		}},
	} {
		r := good
		r.Model = gigabit(8)
		c.change(&r)
		_, err := Run(context.Background(), r)
		require.ErrorContains(t, err, c.want)
	}
	_, err := problem.Slabs([3]int{7, 7, 7}, 8, nil)
	require.Error(t, err, "more peers than planes are refused before they come here")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Run(ctx, good)
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithCancel(context.Background())
	good.Watch = func(Progress) { cancel() }
	out, err := Run(ctx, good)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, out.Events, uint64(watchEvery), "it does not run until Watch is called again")
}
