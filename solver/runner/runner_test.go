package runner_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

func names(peers int) []string {
	var out []string
	for i := range peers {
		out = append(out, fmt.Sprintf("peer%d", i))
	}
	return out
}

// plan describes a run.
type plan struct {
	problem *problem.Problem
	peers   int
	boxes   bool // instead of slabs
	scheme  iterate.Scheme
	change  func(rank int, c *runner.Config)
	node    func(rank int) runner.Node
}

func (p *plan) config(t testing.TB, rank int) runner.Config {
	t.Helper()
	part, err := problem.Slabs(p.problem.N, p.peers, nil)
	if p.boxes {
		part, err = problem.Boxes(p.problem.N, p.peers)
	}
	require.NoError(t, err)
	c := runner.Config{
		New: solver.New,
		Solver: problem.Config{
			Problem: p.problem, Partition: part, Rank: iterate.Rank(rank), Scheme: p.scheme, Tolerance: 1e-5,
		},
		Names: names(p.peers),
	}
	if p.peers > 1 {
		c.Node = p.node(rank)
	}
	if p.change != nil {
		p.change(rank, &c)
	}
	return c
}

// outcome is the outcome of a peer's run.
type outcome struct {
	result runner.Result
	err    error
	box    problem.Box
	block  []float64
}

// run runs all peers, each on its own goroutine.
func (p *plan) run(t testing.TB) []outcome {
	t.Helper()
	ctx := await.Context(t)
	out := make([]outcome, p.peers)
	var wg sync.WaitGroup
	for rank := range p.peers {
		c := p.config(t, rank)
		wg.Add(1)
		go func() {
			defer wg.Done()
			o := &out[rank]
			r, err := runner.New(ctx, c)
			if err != nil {
				o.err = err
				return
			}
			defer r.Close()
			o.result, o.err = r.Run(ctx)
			o.box = r.Box()
			o.block = make([]float64, o.box.Points())
			r.Solution(o.block)
		}()
	}
	wg.Wait()
	return out
}

// assemble returns the assembled blocks.
func assemble(p *problem.Problem, peers []outcome) []float64 {
	u := make([]float64, p.Points())
	for _, o := range peers {
		i := 0
		for z := o.box.Lo[2]; z < o.box.Hi[2]; z++ {
			for y := o.box.Lo[1]; y < o.box.Hi[1]; y++ {
				for x := o.box.Lo[0]; x < o.box.Hi[0]; x++ {
					u[x+p.N[0]*(y+p.N[1]*z)] = o.block[i]
					i++
				}
			}
		}
	}
	return u
}

func membrane(t testing.TB, n int) *problem.Problem {
	t.Helper()
	b, err := problems.Lookup("membrane")
	require.NoError(t, err)
	p, err := b.Make([3]int{n, n, n})
	require.NoError(t, err)
	return p
}

func sameBits(t testing.TB, want, got []float64) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			require.Failf(t, "not bitwise", "point %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestLockstepIsSequential(t *testing.T) {
	p := membrane(t, 17)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-5, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, seq.Reason)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)} {
		for _, peers := range []int{1, 2, 4, 8} {
			for _, threads := range []int{1, 3} {
				if threads > 1 && peers == 8 {
					continue
				}
				if testing.Short() && (threads > 1 && peers != 2 || peers == 8 && scheme.Name() != "sync") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d peers/%d threads", scheme.Name(), peers, threads), func(t *testing.T) {
					m := newMesh(uint64(peers))
					m.loss, m.grant = 0.2, 2
					pl := plan{problem: p, peers: peers, boxes: peers > 2, scheme: scheme,
						node: func(rank int) runner.Node { return m.node(names(peers)[rank]) },
						change: func(_ int, c *runner.Config) {
							c.Threads, c.Solver.Repeat = threads, time.Millisecond
						}}
					out := pl.run(t)
					for rank, o := range out {
						require.NoError(t, o.err, "rank %d", rank)
						require.Equal(t, iterate.Converged, o.result.Reason)
						require.Equal(t, seq.Sweeps, o.result.Iterate)
						require.Equal(t, uint64(o.result.Sweeps)*uint64(o.box.Points()), o.result.Points)
						require.Equal(t, seq.Residual, o.result.Residual)
						require.Positive(t, o.result.Elapsed)
					}
					sameBits(t, seq.U, assemble(p, out))
				})
			}
		}
	}
}

func TestAsynchronousMeetsTheTolerance(t *testing.T) {
	p := membrane(t, 17)
	for _, scheme := range []iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(2)} {
		for _, peers := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s/%d peers", scheme.Name(), peers), func(t *testing.T) {
				m := newMesh(uint64(peers))
				m.loss = 0.3
				pl := plan{problem: p, peers: peers, boxes: true, scheme: scheme,
					node: func(rank int) runner.Node { return m.node(names(peers)[rank]) }}
				out := pl.run(t)
				for rank, o := range out {
					require.NoError(t, o.err, "rank %d", rank)
					require.Equal(t, iterate.Converged, o.result.Reason)
				}
				e, err := verify.Evaluate(p, assemble(p, out), problem.Sequential{})
				require.NoError(t, err)
				require.LessOrEqual(t, e.RelativeResidual, 1e-5)
			})
		}
	}
}

// In lockstep the others wait for a slow peer.
func TestSlowPeer(t *testing.T) {
	t.Parallel() // it mostly waits
	m := newMesh(3)
	pl := plan{problem: membrane(t, 15), peers: 2, scheme: iterate.Synchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			if rank == 1 {
				c.Slow = 300
			}
		}}
	out := pl.run(t)
	require.NoError(t, out[0].err)
	require.NoError(t, out[1].err)
	require.Equal(t, out[0].result.Sweeps, out[1].result.Sweeps)
}

// An asynchronous peer continues while its neighbour is stopped.
func TestRunContinuesWhileANeighbourIsStopped(t *testing.T) {
	const ahead = 100
	m := newMesh(3)
	still, done := make(chan struct{}), make(chan struct{})
	var far, stands sync.Once
	var stood, from iterate.Iteration // sweeps when peer 1 stops: its own, and those of peer 0
	pl := plan{problem: membrane(t, 15), peers: 2, scheme: iterate.Asynchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			c.ProgressEvery = time.Nanosecond
			c.Progress = func(p runner.Progress) {
				switch {
				case rank == 1 && p.Sweep >= 10:
					stands.Do(func() {
						stood = p.Sweep
						close(still)
						<-done
					})
				case rank == 0 && from == 0:
					select {
					case <-still:
						from = p.Sweep
					default:
					}
				case rank == 0 && p.Sweep >= from+ahead:
					far.Do(func() { close(done) })
				}
			}
		}}
	out := pl.run(t)
	require.NoError(t, out[0].err)
	require.NoError(t, out[1].err)
	require.Positive(t, stood)
}

// A peer that does not relax for a while repeats its newest faces, since they may have been lost.
func TestSlowPeerRepeats(t *testing.T) {
	t.Parallel() // it mostly waits
	p := membrane(t, 15)
	m := newMesh(4)
	stop := make(chan struct{})
	var once sync.Once
	var sent int
	pl := plan{problem: p, peers: 2, scheme: iterate.Asynchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			c.Solver.Tolerance, c.Solver.Repeat = 0, 100*time.Microsecond
			if rank == 1 {
				c.Slow = 2000
				c.Stop = stop
				c.ProgressEvery = time.Nanosecond
				c.Progress = func(p runner.Progress) {
					if p.Sweep >= 10 {
						once.Do(func() { sent = m.sent("peer1", "halo/0-1"); close(stop) })
					}
				}
			}
		}}
	out := pl.run(t)
	require.NoError(t, out[1].err)
	require.Greater(t, sent, 30, "in 10 sweeps")
}

func TestEarlyEnd(t *testing.T) {
	p := membrane(t, 31) // takes far more sweeps than the shortest time allows
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(1)} {
		for _, why := range []iterate.Reason{iterate.Interrupted, iterate.ReachedTime, iterate.ReachedSweeps} {
			t.Run(fmt.Sprintf("%s/%v", scheme.Name(), why), func(t *testing.T) {
				// A busy machine may give the peers no processor for so long; then the test allows
				// more time.
				for limit := 5 * time.Millisecond; !endsEarly(t, p, scheme, why, limit); limit *= 2 {
				}
			})
		}
	}
}

// endsEarly checks a run with an early end. It returns false if a peer had made fewer than ten
// sweeps by then.
func endsEarly(t *testing.T, p *problem.Problem, scheme iterate.Scheme, why iterate.Reason, limit time.Duration) bool {
	m := newMesh(5)
	stop := make(chan struct{})
	if why == iterate.Interrupted {
		m.sends, m.fuse = 200, func() { close(stop) }
	}
	pl := plan{problem: p, peers: 2, scheme: scheme,
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			c.Solver.Tolerance = 0
			switch why {
			case iterate.Interrupted:
				if rank == 1 { // not the root, so that the request has to travel
					c.Stop = stop
				}
			case iterate.ReachedTime:
				c.MaxTime = limit
			case iterate.ReachedSweeps:
				c.Solver.MaxSweeps = 100
			}
		}}
	out := pl.run(t)
	for rank, o := range out {
		require.NoError(t, o.err, "rank %d", rank)
		require.Equal(t, why, o.result.Reason)
		if o.result.Sweeps < 10 && why == iterate.ReachedTime {
			return false
		}
	}
	e, err := verify.Evaluate(p, assemble(p, out), problem.Sequential{})
	require.NoError(t, err)
	require.Less(t, e.RelativeResidual, 1.0, "the best iterate is no better than the first")
	return true
}

// The error names a lost peer, and the blocks of the others stay readable.
func TestLostPeerIsNamed(t *testing.T) {
	t.Parallel() // it mostly waits
	p := membrane(t, 15)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			t.Parallel()
			m := newMesh(7)
			m.sends, m.fuse = 100, func() { m.node("peer1").lose() }
			pl := plan{problem: p, peers: 2, scheme: scheme,
				node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
				change: func(rank int, c *runner.Config) {
					c.Solver.Tolerance = 0
					c.Grace = 200 * time.Millisecond
				}}
			out := pl.run(t)
			var e *runner.NeighbourError
			require.ErrorAs(t, out[0].err, &e)
			require.Equal(t, iterate.Rank(1), e.Rank)
			require.ErrorContains(t, out[0].err, "lost rank 1")
			var lost *p2psap.PeerLostError
			require.ErrorAs(t, out[0].err, &lost)
			require.Equal(t, iterate.Running, out[0].result.Reason)
			moved := false
			for _, v := range out[0].block {
				require.False(t, math.IsNaN(v))
				moved = moved || v != 0
			}
			require.True(t, moved)
			// The lost peer itself finds that its neighbour has left.
			require.ErrorAs(t, out[1].err, &e)
			require.Equal(t, iterate.Rank(0), e.Rank)
			require.ErrorContains(t, out[1].err, "left too early by rank 0")
		})
	}
}

// A run ends in bounded time if the other peers do not receive the request for an early end.
func TestNoVerdict(t *testing.T) {
	t.Parallel() // it mostly waits
	p := membrane(t, 15)
	m := newMesh(9)
	stop := make(chan struct{})
	m.sends, m.fuse = 1, func() { close(stop) }
	silent := make(chan struct{})
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	pl := plan{problem: p, peers: 2, scheme: iterate.Asynchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			c.Solver.Tolerance, c.Grace = 0, 100*time.Millisecond
			if rank == 1 {
				c.Stop = stop
			}
		}}
	go func() { // the root opens its sessions and does nothing
		defer close(silent)
		r, err := runner.New(ctx, pl.config(t, 0))
		if err == nil {
			<-ctx.Done()
			r.Close()
		}
	}()
	r, err := runner.New(ctx, pl.config(t, 1))
	require.NoError(t, err)
	_, err = r.Run(ctx)
	require.ErrorIs(t, err, runner.ErrNoVerdict)
	r.Close()
	cancel()
	<-silent
}

func TestProgress(t *testing.T) {
	p := membrane(t, 15)
	m := newMesh(11)
	var seen []runner.Progress
	pl := plan{problem: p, peers: 2, scheme: iterate.Synchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			if rank == 0 {
				c.Progress = func(p runner.Progress) { seen = append(seen, p) }
				c.ProgressEvery = time.Nanosecond
			}
		}}
	for _, o := range pl.run(t) {
		require.NoError(t, o.err)
	}
	require.Greater(t, len(seen), 10)
	for i := 1; i < len(seen); i++ {
		require.LessOrEqual(t, seen[i-1].Sweep, seen[i].Sweep)
		require.LessOrEqual(t, seen[i-1].Elapsed, seen[i].Elapsed)
	}
}

func TestConfigErrors(t *testing.T) {
	p := membrane(t, 7)
	for want, change := range map[string]func(*runner.Config){
		"no problem":        func(c *runner.Config) { c.Solver.Problem = nil },
		"1 names for 2":     func(c *runner.Config) { c.Names = c.Names[:1] },
		"need a node":       func(c *runner.Config) { c.Node = nil },
		"--threads":         func(c *runner.Config) { c.Threads = -1 },
		"--slowdown":        func(c *runner.Config) { c.Slow = math.NaN() },
		"rank 5":            func(c *runner.Config) { c.Solver.Rank = 5 },
		"context canceled":  func(*runner.Config) {},
		"must not be negat": func(c *runner.Config) { c.Solver.Tolerance = -1 },
	} {
		m := newMesh(1)
		pl := plan{problem: p, peers: 2, scheme: iterate.Synchronous(),
			node: func(rank int) runner.Node { return m.node(names(2)[rank]) }}
		c := pl.config(t, 0)
		change(&c)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := runner.New(ctx, c)
		require.ErrorContains(t, err, want)
	}
}
