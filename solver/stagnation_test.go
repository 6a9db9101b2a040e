package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A tolerance below what rounding allows ends a run of any method on any partition, in 1
// to 3 dimensions and in time steps, at the same place as on one peer.
func TestRunsStagnate(t *testing.T) {
	stagnated := 0
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		if rapid.IntRange(0, 3).Draw(t, "steps") == 0 {
			p = evolve(t, p)
		}
		c := Config{Problem: p, Partition: anyPartition(t, p), Scheme: Synchronous(), Method: anyMethod(t), Tolerance: impossible}
		if c.Partition.Peers() > mostPeers {
			c.Partition, _ = Slabs(p.N, 1, nil)
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.run())
		o := n.peers[0].Outcome()
		require.Contains(t, []Reason{Converged, Stagnated}, o.Reason)
		for _, q := range n.peers {
			require.Equal(t, o.Reason, q.Outcome().Reason, "one verdict")
			require.Equal(t, o.Iterate, q.Outcome().Iterate)
		}
		if o.Reason == Converged {
			require.LessOrEqual(t, o.Residual, impossible)
			return
		}
		stagnated++
		require.Less(t, o.Residual, 1e-11, "it ends where rounding does")
		if c.Method.Name == "" {
			want, err := SolveSequential(p, Jacobi, impossible, 0, 0, 0)
			require.NoError(t, err)
			require.Equal(t, want.Reason, o.Reason)
			require.Equal(t, want.Sweeps, o.Sweeps)
			requireSameBits(t, want.U, n.assemble(p, c.Partition))
		}
	})
	require.Positive(t, stagnated)
}

// Asynchronous runs do, as far as snapshots tell.
func TestAsynchronousRunsStagnate(t *testing.T) {
	stagnated := 0
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		p.Reaction.Value += 20 // few sweeps
		c := Config{
			Problem: p, Partition: anyPartition(t, p), Tolerance: impossible,
			Scheme: rapid.SampledFrom([]Scheme{Asynchronous(), BoundedDelay(2)}).Draw(t, "scheme"),
		}
		if rapid.Bool().Draw(t, "schwarz") {
			c.Method = anySchwarz(t)
		}
		if c.Partition.Peers() > mostPeers {
			c.Partition, _ = Slabs(p.N, 1, nil)
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.run())
		o := n.peers[0].Outcome()
		require.Contains(t, []Reason{Converged, Stagnated}, o.Reason)
		for _, q := range n.peers {
			require.Equal(t, o.Reason, q.Outcome().Reason, "one verdict")
		}
		if o.Reason == Converged {
			return
		}
		stagnated++
		require.Less(t, o.Residual, 1e-11, "it ends where rounding does")
		e, err := Evaluate(p, n.assemble(p, c.Partition), nil)
		require.NoError(t, err)
		require.Equal(t, o.Residual, e.RelativeResidual)
	})
	require.Positive(t, stagnated)
}

// The residual that one point makes round the grid's: large grids stagnate far above ε.
func TestLargeGridsStagnateEarly(t *testing.T) {
	p := string1D(1<<14 - 1)
	c := Config{Problem: p, Partition: slabsOf(t, p, 1), Scheme: Synchronous(), Tolerance: 1e-12, Method: MethodConfig{Name: Multigrid}}
	n := runOf(t, 1, c)
	require.NoError(t, n.run())
	o := n.peers[0].Outcome()
	require.Equal(t, Stagnated, o.Reason)
	require.Less(t, o.Residual, 1e-8)
	require.Less(t, o.Sweeps, Iteration(40))
}

// A run that still converges, however slowly, is left alone: at the same tolerance it
// meets it.
func TestSlowRunsAreNotStopped(t *testing.T) {
	slow := string1D(255)
	for name, c := range map[string]struct {
		p   *Problem
		m   MethodConfig
		tol float64
	}{
		"richardson":        {string1D(63), MethodConfig{}, 1e-12},
		"short steps":       {string1D(31), MethodConfig{Step: 0.05}, 1e-12},
		"slow sor":          {slow, MethodConfig{Name: SOR, Omega: 1}, 1e-10},
		"over-relaxed":      {slow, MethodConfig{Name: SOR, Omega: 1.999}, 1e-9},
		"stiff coefficient": {stiff(31), MethodConfig{}, 1e-11},
	} {
		run := Config{Problem: c.p, Partition: slabsOf(t, c.p, 1), Scheme: Synchronous(), Tolerance: c.tol, Method: c.m}
		n := runOf(t, 1, run)
		require.NoError(t, n.run(), name)
		require.Equal(t, Converged, n.peers[0].Outcome().Reason, name)
	}
}

// stiff has a diffusion that jumps by a factor of 100.
func stiff(n int) *Problem {
	p := string1D(n)
	p.Diffusion.Of = func(q Point) float64 {
		if q[0] < 0.4 {
			return 0.01
		}
		return 1
	}
	return p
}

// Richardson on 1023 points takes millions of sweeps: none of its first checks is taken for
// stagnation, though the residual falls by a millionth a sweep.
func TestVerySlowRunsAreNotStopped(t *testing.T) {
	one, err := SolveSequential(string1D(1023), Jacobi, 1e-9, 0, 0, 20000)
	require.NoError(t, err)
	require.Equal(t, ReachedSweeps, one.Reason)
}

// Where the residual does not fall although rounding would allow it, a run goes on.
func TestStandstillAboveRoundingIsNotStagnation(t *testing.T) {
	var s stagnation
	asked := false
	for k := Iteration(0); k < 10000; k++ {
		why, ask := s.judge(k, 0.5, impossible, stagnantChecks, asked, 1e14)
		require.Equal(t, Running, why)
		asked = ask
	}
	require.Equal(t, Running, func() Reason {
		s = stagnation{}
		why := Running
		for k := Iteration(0); k < 10000 && why == Running; k++ {
			why, asked = s.judge(k, math.Pow(1-1e-7, float64(k)), impossible, stagnantChecks, asked, 1e20)
		}
		return why
	}(), "a residual that falls, by ever so little, is no stagnation")
}

// Without a tolerance a run goes on until it is stopped, also when it has reached rounding.
func TestRunsWithoutAToleranceDoNotStagnate(t *testing.T) {
	for _, m := range []MethodConfig{{}, {Name: SOR}, {Name: Schwarz, Local: SOR, Omega: 1.1, Coarse: -1}} {
		p := membrane([3]int{7, 6, 1}, 2)
		p.Source.Of = func(q Point) float64 { return 1 + math.Sin(7*q[0]+5*q[1]) }
		c := Config{Problem: p, Partition: slabsOf(t, p, 2), Scheme: Synchronous(), Method: m, MaxSweeps: 6000}
		n, err := newNetwork(1, configsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.run())
		require.Equal(t, ReachedSweeps, n.peers[0].Outcome().Reason, m.Name)
	}
}

// A residual that rises and falls on its way down is no stagnation either, though a new
// minimum is many checks away.
func TestSwingingResidualsAreNoStagnation(t *testing.T) {
	var s stagnation
	asked := false
	for k := Iteration(0); k < 20000; k++ {
		r := math.Exp(-1e-4 * float64(k))
		if k > 200 && k%20 != 0 {
			r *= 1.5
		}
		why, ask := s.judge(k, r, impossible, stagnantChecks, asked, 1e20)
		require.Equal(t, Running, why, "check %d", k)
		asked = ask
	}
}
