package solver

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// Every method gives the solution in every scheme that it supports, by any number of peers. Richardson in
// lockstep gives the bits of the sequential solver.
func TestSolveByEveryMethodAndScheme(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 9, 15}, 3)
	exact, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-12, 200, nil)
	require.NoError(t, err)
	const tolerance = 1e-8
	sequential, err := richardson.SolveSequential(p, problem.Jacobi, tolerance, 0, 0, 0)
	require.NoError(t, err)
	for _, name := range Methods().Names() {
		if name == problem.FixedPoint {
			continue // of no obstacle problem
		}
		for _, scheme := range []iterate.Scheme{
			iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0), iterate.BoundedDelay(2), nil,
		} {
			for _, peers := range []int{1, 2, 4} {
				if testing.Short() && (peers == 4) != (peers > 1 && scheme == nil) {
					continue
				}
				s := scheme
				if s == nil {
					clusters := make([]int, peers)
					for r := range clusters {
						clusters[r] = 2 * r / peers
					}
					s = iterate.Hybrid(clusters)
				}
				o := Options{
					Method:    problem.MethodConfig{Name: name},
					Scheme:    s,
					Peers:     peers,
					Threads:   1,
					Tolerance: tolerance,
				}
				got, err := Solve(t.Context(), p, o)
				if (name == problem.SOR || name == problem.Multigrid) && s.Name() != "sync" && err != nil {
					require.ErrorIs(t, err, ErrOptions, "%s, %s, %d peers", name, s.Name(), peers)
					require.Nil(t, got)
					continue
				}
				require.NoError(t, err, "%s, %s, %d peers", name, s.Name(), peers)
				require.Equal(t, iterate.Converged, got.Reason)
				require.Len(t, got.Peers, peers)
				require.LessOrEqual(t, got.Evaluation.RelativeResidual, tolerance)
				require.Less(t, solvertest.Furthest(exact.U, got.U), 1e-6, "%s, %s, %d peers", name, s.Name(), peers)
				if name == problem.Richardson && s.Lockstep() {
					solvertest.RequireSameBits(t, sequential.U, got.U)
				}
			}
		}
	}
}

// basic is the method whose iterates richardson.SolveSequential returns, too.
var basic = problem.MethodConfig{Name: problem.Richardson}

// Step gets the end of every time step, in order, also by several peers.
func TestSolveInTimeSteps(t *testing.T) {
	p := solvertest.Heating(8, 4)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-8, 0, 0, 0)
	require.NoError(t, err)
	for _, peers := range []int{1, 3} {
		var steps []int
		var last []float64
		o := Options{Method: basic, Peers: peers, Tolerance: 1e-8, Step: func(s iterate.StepResult, u []float64) error {
			steps, last = append(steps, s.Step), append(last[:0], u...)
			return nil
		}}
		got, err := Solve(t.Context(), p, o)
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 4}, steps)
		solvertest.RequireSameBits(t, want.U, last)
		solvertest.RequireSameBits(t, want.U, got.U)

		full := errors.New("disk full")
		o.Step = func(s iterate.StepResult, _ []float64) error {
			if s.Step == 2 {
				return full
			}
			return nil
		}
		got, err = Solve(t.Context(), p, o)
		require.ErrorIs(t, err, full)
		require.Nil(t, got)
	}
}

// The end of the context is an early end: the best iterate is returned with the reason.
func TestSolveReturnsTheBestIterateOnCancel(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 40, 40}, 3)
	for _, peers := range []int{1, 3} {
		for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
			for _, before := range []bool{true, false} {
				ctx, cancel := context.WithCancel(t.Context())
				if before {
					cancel()
				} else {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				got, err := Solve(ctx, p, Options{Method: basic, Peers: peers, Scheme: scheme, Tolerance: solvertest.Impossible})
				cancel()
				require.ErrorIs(t, err, ErrNotConverged, "%d peers, %s", peers, scheme.Name())
				require.ErrorIs(t, err, context.Canceled)
				require.NotNil(t, got)
				require.Equal(t, iterate.Interrupted, got.Reason)
				require.LessOrEqual(t, got.Evaluation.RelativeResidual, 1.0)
				require.Len(t, got.U, p.Points())
			}
		}
	}
}

// Bounds end a run with the best iterate, too.
func TestSolveReturnsTheBestIterateAtABound(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 9, 9}, 3)
	got, err := Solve(t.Context(), p, Options{Method: basic, MaxSweeps: 1, Peers: 2})
	require.ErrorIs(t, err, ErrNotConverged)
	require.Equal(t, iterate.ReachedSweeps, got.Reason)
	want, err := richardson.SolveSequential(p, problem.Jacobi, DefaultTolerance, 0, 0, 1)
	require.NoError(t, err)
	solvertest.RequireSameBits(t, want.U, got.U)

	_, err = Solve(t.Context(), p, Options{MaxTime: time.Nanosecond, Tolerance: solvertest.Impossible})
	require.ErrorIs(t, err, ErrNotConverged)

	// A start from an earlier answer needs no sweep. Out of lockstep the peers may relax while the verdict on it travels.
	first, err := Solve(t.Context(), p, Options{Peers: 2})
	require.NoError(t, err)
	for _, s := range []iterate.Scheme{iterate.Asynchronous(), iterate.Synchronous()} {
		again, err := Solve(t.Context(), p, Options{Peers: 3, Scheme: s, Initial: first.U})
		require.NoError(t, err)
		solvertest.RequireSameBits(t, first.U, again.U)
		require.True(t, again.Peers[0].Sweeps == 0 || !s.Lockstep())
	}
}

func TestSolveRefusesOptions(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 5, 5}, 3)
	for name, o := range map[string]Options{
		"negative peers":     {Peers: -1},
		"negative threads":   {Threads: -1},
		"too many threads":   {Threads: 1 << 20},
		"unknown method":     {Method: problem.MethodConfig{Name: "newton"}},
		"relaxation factor":  {Method: problem.MethodConfig{Name: problem.SOR, Omega: 3}},
		"starting values":    {Initial: make([]float64, 7)},
		"negative tolerance": {Tolerance: -1},
		"NaN tolerance":      {Tolerance: math.NaN()},
		"negative time":      {MaxTime: -1},
		"unknown order":      {Order: 9},
		"clusters":           {Scheme: iterate.Hybrid([]int{0, 1, 2}), Peers: 2},
		"scheme": {Method: problem.MethodConfig{Name: problem.SOR}, Scheme: iterate.Asynchronous(),
			Peers: 2},
		"rank":    {At: &Place{Rank: 2, Names: []string{"a", "b"}}},
		"no node": {At: &Place{Names: []string{"a", "b"}}},
		"names":   {At: &Place{Names: []string{"a"}}, Partition: solvertest.SlabsOf(t, p, 2)},
	} {
		got, err := Solve(t.Context(), p, o)
		require.ErrorIs(t, err, ErrOptions, name)
		require.Nil(t, got, name)
	}
	_, err := Solve(t.Context(), nil, Options{})
	require.ErrorIs(t, err, ErrOptions)
	_, err = Solve(t.Context(), p, Options{Peers: 1000})
	require.ErrorIs(t, err, problem.ErrPartition)
	_, err = Solve(
		t.Context(),
		p,
		Options{Partition: solvertest.SlabsOf(t, solvertest.Membrane([3]int{6, 6, 6}, 3), 2)},
	)
	require.ErrorIs(t, err, problem.ErrPartition)
}

func TestSolveRefusesProblems(t *testing.T) {
	for name, change := range map[string]func(p *problem.Problem){
		"dimension":    func(p *problem.Problem) { p.Dimension = 4 },
		"no diffusion": func(p *problem.Problem) { p.Diffusion.Value = 0 },
		"source":       func(p *problem.Problem) { p.Source.Of = func(problem.Point) float64 { return math.NaN() } },
		"diffusion": func(p *problem.Problem) {
			p.Diffusion.Of = func(problem.Point) float64 { return math.Inf(1) }
		},
		"obstacles cross": func(p *problem.Problem) { p.Upper = func(problem.Point) float64 { return -9 } },
		"boundary":        func(p *problem.Problem) { p.Boundary = func(problem.Point) float64 { return math.NaN() } },
	} {
		for _, peers := range []int{1, 2} {
			p := solvertest.Membrane([3]int{5, 5, 5}, 3)
			change(p)
			got, err := Solve(t.Context(), p, Options{Peers: peers})
			require.ErrorIs(t, err, problem.ErrProblem, "%s, %d peers", name, peers)
			require.Nil(t, got)
		}
	}
}

// Two calls of Solve with At share a run over their own nodes.
func TestSolveAtTwoNodes(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 9, 9}, 3)
	names := []string{"a", "b"}
	nodes, err := listen(names, nil)
	for _, n := range nodes {
		defer n.Close()
	}
	require.NoError(t, err)
	part := solvertest.SlabsOf(t, p, 2)
	var all sync.WaitGroup
	out, errs := make([]*Solution, 2), make([]error, 2)
	for r := range names {
		all.Go(func() {
			links := Links(&problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous()}, iterate.Rank(r))
			if errs[r] = connect(t.Context(), nodes[r], links, nodes, names); errs[r] != nil {
				return
			}
			at := &Place{Rank: iterate.Rank(r), Node: runner.Over(nodes[r]), Names: names}
			out[r], errs[r] = Solve(t.Context(), p, Options{Method: basic, Partition: part, At: at})
		})
	}
	all.Wait()
	want, err := richardson.SolveSequential(p, problem.Jacobi, DefaultTolerance, 0, 0, 0)
	require.NoError(t, err)
	u := make([]float64, p.Points())
	for r, s := range out {
		require.NoError(t, errs[r])
		require.Equal(t, part.Box(iterate.Rank(r)), s.Box)
		require.Len(t, s.Peers, 1)
		place(u, p.N, s.Box, s.U)
	}
	solvertest.RequireSameBits(t, want.U, u)
}

// growing is an iteration without a fixed point.
type growing struct{}

func (growing) Values() int                     { return 1 }
func (growing) Neighbours() []iterate.Neighbour { return nil }
func (growing) Start([]float64)                 {}
func (growing) Relax(next, x, _ []float64)      { next[0] = x[0] + 1 }

func TestIterateRefusesOptions(t *testing.T) {
	for name, i := range map[string]Iteration{
		"no blocks":          {},
		"nil block":          {Blocks: []iterate.Block{nil}},
		"negative tolerance": {Blocks: []iterate.Block{growing{}}, Tolerance: -1},
		"negative time":      {Blocks: []iterate.Block{growing{}}, MaxTime: -1},
		"clusters":           {Blocks: []iterate.Block{growing{}}, Scheme: iterate.Hybrid([]int{0, 1})},
	} {
		got, err := Iterate(t.Context(), i)
		require.ErrorIs(t, err, ErrOptions, name)
		require.Nil(t, got, name)
	}
	got, err := Iterate(t.Context(), Iteration{Blocks: []iterate.Block{growing{}}, MaxSweeps: 10})
	require.ErrorIs(t, err, ErrNotConverged)
	require.Equal(t, iterate.ReachedSweeps, got.Reason)
	require.Equal(t, 10.0, got.X[0][0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Iterate(ctx, Iteration{Blocks: []iterate.Block{growing{}}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrNotConverged)
}
