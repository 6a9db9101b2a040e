package runner_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// nodes returns connected nodes over UDP on loopback. A timeout of days disables heartbeats.
func nodes(t testing.TB, peers int, timeout time.Duration) []*driver.Node {
	t.Helper()
	ctx := await.Context(t)
	heartbeat := time.Duration(0)
	if timeout > 24*time.Hour {
		heartbeat = 24 * time.Hour
	}
	var out []*driver.Node
	for _, name := range names(peers) {
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		n, err := driver.New(driver.Config{
			Name: name, Plain: true, Rails: []driver.Rail{{Link: link}}, Listen: "127.0.0.1:0", Catalog: ctp.Catalog(),
			Policy: p2psap.TablePolicy{},
			Run:    "test", Version: "1", PeerTimeout: timeout, Heartbeat: heartbeat, Seed: uint64(len(out) + 1),
		})
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		out = append(out, n)
	}
	var wg sync.WaitGroup
	errs := make([]error, peers*peers)
	for i, n := range out {
		for j, other := range out {
			if i == j {
				continue
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i*peers+j] = n.Connect(ctx, names(peers)[j], other.ControlAddr().String())
			}()
		}
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return out
}

func overNodes(ns []*driver.Node) func(int) runner.Node {
	return func(rank int) runner.Node { return runner.Over(ns[rank]) }
}

func TestOverSockets(t *testing.T) {
	n := 21
	if testing.Short() {
		n = 13
	}
	p := membrane(t, n)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-5, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range []iterate.Scheme{
		iterate.Synchronous(), iterate.BoundedDelay(0), iterate.BoundedDelay(2), iterate.Asynchronous(),
		iterate.Hybrid(nil), // replaced by one cluster of two peers, or two of four
	} {
		for _, peers := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s/%d peers", scheme.Name(), peers), func(t *testing.T) {
				if scheme.Name() == "hybrid" {
					scheme = iterate.Hybrid([]int{0, 0, 1, 1}[4-peers:])
				}
				pl := plan{problem: p, peers: peers, boxes: peers > 2, scheme: scheme, node: overNodes(nodes(t, peers,
					0)),
					change: func(_ int, c *runner.Config) { c.Crowded = peers > runtime.NumCPU() }}
				out := pl.run(t)
				for rank, o := range out {
					require.NoError(t, o.err, "rank %d", rank)
					require.Equal(t, iterate.Converged, o.result.Reason)
					messages, bytes := o.result.Messages()
					require.Positive(t, messages)
					require.Positive(t, bytes)
					for _, s := range o.result.Halos {
						async := scheme.Between(iterate.Rank(rank), s.Rank).Asynchronous()
						require.Equal(t, async, contains(s.Info.Composition, "Asynchronous"))
						require.Equal(t, !async, contains(s.Info.Composition, "Retransmit"))
					}
					for _, s := range o.result.Agreements {
						require.Contains(t, s.Info.Composition, "Synchronous")
					}
				}
				u := assemble(p, out)
				e, err := verify.Evaluate(p, u, problem.Sequential{})
				require.NoError(t, err)
				require.LessOrEqual(t, e.RelativeResidual, 1e-5)
				if scheme.Lockstep() {
					require.Equal(t, seq.Sweeps, out[0].result.Iterate)
					sameBits(t, seq.U, u)
				}
			})
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// A node that stops is reported lost within the peer timeout.
func TestLostOverSockets(t *testing.T) {
	t.Parallel() // it mostly waits
	p := membrane(t, 15)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			t.Parallel()
			ns := nodes(t, 2, 500*time.Millisecond)
			pl := plan{problem: p, peers: 2, scheme: scheme, node: overNodes(ns),
				change: func(rank int, c *runner.Config) {
					c.Solver.Tolerance, c.Grace = 0, 300*time.Millisecond
					c.ProgressEvery = time.Millisecond
					if rank == 1 {
						var once sync.Once
						c.Progress = func(p runner.Progress) {
							if p.Sweep > 50 {
								once.Do(func() { _ = ns[1].Close() }) // this peer relaxes no further meanwhile
							}
						}
					}
				}}
			out := pl.run(t)
			var e *runner.NeighbourError
			require.ErrorAs(t, out[0].err, &e)
			require.Equal(t, iterate.Rank(1), e.Rank)
			require.Error(t, out[1].err)
		})
	}
}

// The close of the own node ends a run although the neighbours have left before, for whose verdict it may wait longer.
func TestOwnNodeCloses(t *testing.T) {
	p := membrane(t, 15)
	ns := nodes(t, 2, 0)
	var sweeps atomic.Uint64
	relaxed := func(more uint64) {
		for until := sweeps.Load() + more; sweeps.Load() < until; {
			runtime.Gosched()
		}
	}
	pl := plan{problem: p, peers: 2, scheme: iterate.Asynchronous(), node: overNodes(ns),
		change: func(rank int, c *runner.Config) {
			c.Solver.Tolerance, c.Grace = 0, time.Hour
			if rank == 0 {
				c.Progress = func(p runner.Progress) { sweeps.Store(uint64(p.Sweep)) }
			}
		}}
	go func() {
		relaxed(50)
		_ = ns[1].Abort()
		relaxed(1000) // it reads that the neighbour has left
		_ = ns[0].Abort()
	}()
	require.ErrorIs(t, pl.run(t)[0].err, p2psap.ErrClosed)
}

// The exchange of halos allocates nothing per sweep: five times the sweeps take the same
// allocations, but for checks and timers. Heartbeats allocate by the second, so there are none.
func TestNoAllocationPerSweep(t *testing.T) {
	b, err := problems.Lookup("membrane")
	require.NoError(t, err)
	n := 24
	if testing.Short() {
		n = 12
	}
	p, err := b.Make([3]int{n, n, n})
	require.NoError(t, err)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			allocated := func(sweeps iterate.Iteration) float64 {
				pl := plan{problem: p, peers: 2, scheme: scheme, node: overNodes(nodes(t, 2, 100*time.Hour)),
					change: func(_ int, c *runner.Config) {
						c.Solver.Tolerance = 0
						c.Solver.MaxSweeps = sweeps
						c.Solver.CheckEvery = sweeps
					}}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				out := pl.run(t)
				runtime.ReadMemStats(&after)
				for _, o := range out {
					require.NoError(t, o.err)
					require.GreaterOrEqual(t, o.result.Sweeps, sweeps)
				}
				return float64(after.Mallocs - before.Mallocs)
			}
			const few, many = 1000, 5000
			perSweep := math.Inf(1) // of one peer
			for try := 0; try < 5 && perSweep >= 0.05; try++ {
				// On a busy machine more frames are in flight now and then, and the pools grow. What every sweep
				// allocates is in every attempt.
				base := allocated(few)
				more := allocated(many)
				perSweep = (more - base) / (2 * (many - few))
				t.Logf("%v allocations in %d sweeps, %v in %d: %.3f a sweep", base, few, more, many, perSweep)
				if racing {
					return
				}
			}
			require.Less(t, perSweep, 0.05)
		})
	}
}
