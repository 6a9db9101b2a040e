package solver

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// vortex returns a problem on n points an axis whose matrix is no M-matrix: central differences beyond the cell Péclet
// number 2.
func vortex(n int) *problem.Problem {
	p := solvertest.Membrane([3]int{n, n, n}, 3)
	p.Diffusion.Value, p.Source.Value = 0.001, 1
	p.Velocity[0].Of = func(q problem.Point) float64 { return 20 * (q[1] - 0.5) }
	p.Velocity[1].Of = func(q problem.Point) float64 { return -20 * (q[0] - 0.5) }
	p.Velocity[2].Value = 3
	return p
}

// A run that diverges returns a finite answer, no worse than the start, and says what to change, for every method and
// number of peers.
func TestDivergedRunsReturnTheStart(t *testing.T) {
	p := vortex(7)
	for _, m := range []problem.MethodConfig{
		{}, {Name: problem.SOR, Omega: 1.9}, {Name: problem.Multigrid}, {Name: problem.Schwarz, Coarse: -1, InnerCycles: 1},
		{Name: problem.Schwarz, Local: problem.Richardson, InnerCycles: 1},
	} {
		for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			for _, peers := range []int{1, 2} {
				if s.Asynchronous() && (m.Name == problem.SOR || m.Name == problem.Multigrid) {
					continue
				}
				o := Options{Method: m, Scheme: s, Peers: peers, Threads: 1, MaxSweeps: 1e5}
				got, err := Solve(t.Context(), p, o)
				require.ErrorIs(t, err, ErrNotConverged, "%v %s", m, s.Name())
				require.Equal(t, iterate.Diverged, got.Reason, "%v %s", m, s.Name())
				require.ErrorContains(t, err, "upwind: true in the problem file")
				require.LessOrEqual(t, got.Evaluation.RelativeResidual, 1.)
				e, err := verify.Measure(p, got.U, nil)
				require.NoError(t, err)
				require.Equal(t, e.RelativeResidual, got.Evaluation.RelativeResidual)
			}
		}
	}
}

// A run that diverges ends with that reason, for every method, scheme and number of peers, on fast and slow networks. No peer
// refuses the values of another.
func TestDivergenceBlamesNoPeer(t *testing.T) {
	p := vortex(7)
	schwarz := func(local string, cycles int) problem.MethodConfig {
		return problem.MethodConfig{Name: problem.Schwarz, Local: local, Coarse: -1, InnerCycles: cycles}
	}
	async, delayed := iterate.Asynchronous(), iterate.BoundedDelay(2)
	everywhere, lockstep := []iterate.Scheme{iterate.Synchronous(), delayed, async}, []iterate.Scheme{iterate.Synchronous()}
	for _, c := range []struct {
		method  problem.MethodConfig
		schemes []iterate.Scheme
	}{
		{problem.MethodConfig{}, everywhere},
		{problem.MethodConfig{Name: problem.SOR, Omega: 1.9}, lockstep},
		{problem.MethodConfig{Name: problem.Multigrid}, lockstep},
		{schwarz(problem.Multigrid, 0), everywhere},
		{schwarz(problem.SOR, 0), everywhere},
		{schwarz(problem.Richardson, 0), everywhere},
		{schwarz(problem.Richardson, 300), everywhere},
		{problem.MethodConfig{Name: problem.Schwarz, Flexible: true, Local: problem.Richardson}, []iterate.Scheme{async}},
	} {
		for _, s := range c.schemes {
			for peers := 1; peers <= 3; peers++ {
				for seed := range uint64(6) {
					n := runOf(t, seed, problem.Config{
						Problem: p, Partition: solvertest.SlabsOf(t, p, peers), Scheme: s, Tolerance: 1e-6, MaxSweeps: 1e6,
						Method: c.method,
					})
					if n.Jitter /= 8; seed%2 == 1 {
						n.AgreeDelay = 20 * time.Millisecond // hundreds of sweeps
					}
					if seed >= 4 {
						n.RelaxTime[peers-1] *= 50
					}
					what := fmt.Sprintf("%+v %s, %d peers, seed %d", c.method, s.Name(), peers, seed)
					require.NoError(t, n.Run(), what)
					for _, w := range n.Peers {
						require.Equal(t, iterate.Diverged, w.Outcome().Reason, what)
					}
				}
			}
		}
	}
}

// A residual that has grown far beyond its start and stands still there shows divergence, too: obstacles bound the values.
func TestDivergenceThatObstaclesBound(t *testing.T) {
	p := solvertest.String1D(63)
	p.Obstacle = func(problem.Point) float64 { return -1 }
	p.Source.Value, p.Diffusion.Value = 1, 1e-4
	p.Velocity[0].Of = func(q problem.Point) float64 { return 20 * math.Sin(30*q[0]) }
	for _, m := range []string{problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz} {
		got, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: m}, Threads: 1})
		require.ErrorIs(t, err, ErrNotConverged, m)
		require.Equal(t, iterate.Diverged, got.Reason, m)
		require.ErrorContains(t, err, "upwind: true in the problem file", m)
	}
}

// The same holds where the residual has hardly grown, if the matrix may be no M-matrix: for every method and scheme.
func TestDivergenceThatObstaclesBoundTightly(t *testing.T) {
	p := solvertest.String1D(31)
	p.Obstacle = func(problem.Point) float64 { return -1 }
	p.Upper = func(problem.Point) float64 { return 1 }
	p.Source.Value, p.Diffusion.Value = 1, 1e-4
	p.Velocity[0].Of = func(q problem.Point) float64 { return 20 * math.Sin(30*q[0]) }
	for _, c := range []struct {
		method string
		scheme iterate.Scheme
	}{
		{problem.Richardson, iterate.Synchronous()}, {problem.SOR, iterate.Synchronous()}, {problem.Multigrid, iterate.Synchronous()},
		{problem.Schwarz, iterate.Synchronous()}, {problem.Richardson, iterate.Asynchronous()},
		{problem.Schwarz, iterate.Asynchronous()}, {problem.Richardson, iterate.BoundedDelay(2)},
	} {
		n := runOf(t, 1, problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p, 2), Scheme: c.scheme, Tolerance: 1e-6, MaxSweeps: 1 << 18,
			Method: problem.MethodConfig{Name: c.method},
		})
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.NotEqual(t, iterate.Stagnated, o.Reason, "%s %s", c.method, c.scheme.Name())
		require.True(t, o.Reason == iterate.Diverged || c.method != problem.Richardson, c.scheme.Name())
		require.Less(t, o.Residual, 1e6)
	}
}

func TestAdviceAfterDivergence(t *testing.T) {
	p := vortex(7)
	require.Contains(t, p.DivergenceAdvice(&problem.MethodConfig{Omega: 1.9}), "upwind")
	p.Upwind = true
	require.Contains(t, p.DivergenceAdvice(&problem.MethodConfig{Omega: 1.9}), "1.9")
	require.Contains(t, p.DivergenceAdvice(&problem.MethodConfig{}), "M-matrix")
	require.Contains(t, solvertest.Heating(3, 2).DivergenceAdvice(&problem.MethodConfig{}), "M-matrix")
}

// A run with a given start that is better than max(φ, 0) returns that one.
func TestDivergedRunsReturnTheGivenStart(t *testing.T) {
	p := vortex(7)
	p.Upwind = true
	near, err := Solve(t.Context(), p, Options{Tolerance: 1e-3, Threads: 1})
	require.NoError(t, err)
	got, err := Solve(t.Context(), p, Options{
		Initial: near.U, Threads: 1, MaxSweeps: 1e5, Method: problem.MethodConfig{Name: problem.SOR, Omega: 1.95},
	})
	require.ErrorIs(t, err, ErrNotConverged)
	require.LessOrEqual(t, got.Evaluation.RelativeResidual, 1e-3)
}

// tripling is an iteration that diverges.
type tripling struct{ growing }

func (tripling) Start(x []float64)          { x[0] += 2 }
func (tripling) Relax(next, x, _ []float64) { next[0] = 1 - 3*x[0] }

func TestDivergedIterationsReturnTheStart(t *testing.T) {
	got, err := Iterate(t.Context(), Iteration{Blocks: []iterate.Block{tripling{}}})
	require.ErrorIs(t, err, ErrNotConverged)
	require.Equal(t, iterate.Diverged, got.Reason)
	require.Equal(t, [][]float64{{2}}, got.X)
}

// A time step that stagnates is kept. It is the last one.
func TestStepThatStagnatesIsKept(t *testing.T) {
	p := solvertest.Heating(5, 4)
	for _, m := range []problem.MethodConfig{
		{}, {Name: problem.SOR}, {Name: problem.Multigrid}, {Name: problem.Schwarz, InnerCycles: 1},
	} {
		for _, peers := range []int{1, 2} {
			var steps []iterate.StepResult
			got, err := Solve(t.Context(), p, Options{
				Method: m, Peers: peers, Threads: 1, Tolerance: solvertest.Impossible,
				Step: func(s iterate.StepResult, _ []float64) error {
					steps = append(steps, s)
					return nil
				},
			})
			require.ErrorIs(t, err, ErrNotConverged)
			require.Equal(t, iterate.Stagnated, got.Reason)
			last := got.Peers[0]
			require.Len(t, steps, last.Steps)
			require.Positive(t, last.Steps, m.Name)
			var swept iterate.Iteration
			for _, s := range steps {
				swept += s.Sweeps
			}
			require.Equal(t, swept, last.Sweeps)
			before, err := p.InitialValues(0, problem.Box{Hi: p.N}, nil)
			require.NoError(t, err)
			if last.Steps > 1 {
				continue
			}
			e, err := verify.EvaluateStep(p, 1, before, got.U, nil)
			require.NoError(t, err)
			require.Less(t, e.RelativeResidual, 1e-12)
			require.False(t, math.IsNaN(e.RelativeResidual))
		}
	}
}

// swirl returns a problem on n² points whose matrix is an M-matrix with a vortex.
func swirl(n int) *problem.Problem {
	p := solvertest.Membrane([3]int{n, n, 1}, 2)
	p.Obstacle = func(q problem.Point) float64 {
		return 0.02 - (q[0]-0.5)*(q[0]-0.5) - (q[1]-0.5)*(q[1]-0.5)
	}
	p.Source.Value, p.Upwind = 1, true
	p.Velocity[0].Of = func(q problem.Point) float64 { return 60 * (q[1] - 0.5) }
	p.Velocity[1].Of = func(q problem.Point) float64 { return -60 * (q[0] - 0.5) }
	return p
}

// SOR with a given factor that is too large ends as diverged, whether its values grow or the obstacle bounds them, and
// returns an iterate whose residual is at most twice the smallest that was measured. All partitions end alike.
func TestGivenFactorThatIsTooLarge(t *testing.T) {
	p := swirl(15)
	for omega, most := range map[float64]float64{1.4: 0.2, 1.5: 1, 1.8: 1} {
		var want []float64
		for peers := 1; peers <= 2; peers++ {
			c := problem.Config{
				Problem: p, Partition: solvertest.SlabsOf(t, p, peers), Scheme: iterate.Synchronous(), Tolerance: 1e-6,
				MaxSweeps: 1e6, Method: problem.MethodConfig{Name: problem.SOR, Omega: omega},
			}
			n := runOf(t, 1, c)
			require.NoError(t, n.Run())
			o := n.Peers[0].Outcome()
			require.Equal(t, iterate.Diverged, o.Reason, omega)
			u := n.Assemble(p)
			e, err := verify.Measure(p, u, nil)
			require.NoError(t, err)
			require.Equal(t, o.Residual, e.RelativeResidual, "the residual is that of the answer")
			require.LessOrEqual(t, o.Residual, most, omega)
			if want == nil {
				want = u
			}
			solvertest.RequireSameBits(t, want, u)
		}
	}
}

// Methods in lockstep return their best iterate with its residual, on every partition, whether the run diverges or ends at
// a bound. Here the error where the diffusion is strong falls before that in the vortex grows.
func TestRunsThatDivergeReturnTheBestIterate(t *testing.T) {
	for _, c := range []struct {
		method problem.MethodConfig
		weak   float64 // diffusion in the vortex
	}{
		{problem.MethodConfig{}, 0.01},
		{problem.MethodConfig{Name: problem.SOR, Omega: 1.2}, 0.05},
		{problem.MethodConfig{Name: problem.Schwarz, Coarse: -1, InnerCycles: 1, Local: problem.Richardson}, 0.01},
	} {
		p := vortex(7)
		p.Obstacle, p.Source.Value = nil, 0
		p.Diffusion.Of = func(q problem.Point) float64 { return solvertest.Where(q[2] < 0.6, 1/c.weak) * c.weak }
		p.Velocity[2].Value = 0
		p.Initial = func(q problem.Point) float64 { return solvertest.Where(q[2] < 0.3, 1e6) }
		for peers := 1; peers <= 2; peers++ {
			n := runOf(t, 1, problem.Config{
				Problem: p, Partition: solvertest.SlabsOf(t, p, peers), Scheme: iterate.Synchronous(), Tolerance: 1e-6,
				MaxSweeps: 3000, Method: c.method, CheckEvery: 1,
			})
			require.NoError(t, n.Run())
			o := n.Peers[0].Outcome()
			require.NotEqual(t, iterate.Converged, o.Reason)
			require.Positive(t, o.Iterate, c.method.Name)
			require.Less(t, o.Iterate, o.Sweeps)
			for _, q := range n.Peers {
				require.Equal(t, o.Iterate, q.Outcome().Iterate)
			}
			e, err := verify.Measure(p, n.Assemble(p), nil)
			require.NoError(t, err)
			require.Equal(t, o.Residual, e.RelativeResidual, "%s: the residual is that of the answer", c.method.Name)
		}
	}
}

// A run that is stopped while it diverges returns an earlier iterate.
func TestStoppedWhileItDiverges(t *testing.T) {
	p := swirl(15)
	c := problem.Config{
		Problem: p, Partition: solvertest.SlabsOf(t, p, 1), Scheme: iterate.Synchronous(), Tolerance: 1e-6,
		MaxSweeps: 4000, Method: problem.MethodConfig{Name: problem.SOR, Omega: 1.4},
	}
	n := runOf(t, 1, c)
	require.NoError(t, n.Run())
	o := n.Peers[0].Outcome()
	require.Equal(t, iterate.ReachedSweeps, o.Reason)
	require.Less(t, o.Residual, 0.2)
	require.Less(t, o.Iterate, o.Sweeps)
	e, err := verify.Measure(p, n.Assemble(p), nil)
	require.NoError(t, err)
	require.Equal(t, o.Residual, e.RelativeResidual)
}
