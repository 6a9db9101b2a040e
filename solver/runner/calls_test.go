package runner_test

import (
	"sync/atomic"
	"testing"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/stretchr/testify/require"
)

// A peer goes on without a lost neighbour until Abandon: an asynchronous one relaxes, a synchronous one waits.
func TestSurvivor(t *testing.T) {
	t.Parallel() // it mostly waits
	p := membrane(t, 15)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			t.Parallel()
			m := newMesh(7)
			var lost atomic.Bool
			m.sends, m.fuse = 100, func() { m.node("peer1").lose(); lost.Store(true) }
			var reported []iterate.Rank
			ctx := await.Context(t)
			pl := plan{problem: p, peers: 2, scheme: scheme,
				node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
				change: func(rank int, c *runner.Config) {
					c.Solver.Tolerance, c.Survive = 0, true
					if rank == 0 {
						c.Lost = func(q iterate.Rank, _ error) { reported = append(reported, q) }
					}
				}}
			ended := make(chan error, 1)
			opened := make(chan *runner.Runner, 1)
			go func() {
				r, err := runner.New(ctx, pl.config(t, 1))
				opened <- r
				if err == nil {
					_, err = r.Run(ctx)
				}
				ended <- err
			}()
			r, err := runner.New(ctx, pl.config(t, 0))
			require.NoError(t, err)
			calls, first, last, after := 0, iterate.Iteration(0), iterate.Iteration(0), false
			var look func() error
			look = func() error {
				if at := r.Progress().Sweep; lost.Load() {
					if calls++; calls == 1 {
						first = at
					}
					if calls > 100 && len(reported) > 0 && (at > first+10 || scheme.Lockstep()) {
						last = at
						r.Abandon()
						r.Do(func() error { after = true; return nil })
						return nil
					}
				}
				r.Do(look)
				return nil
			}
			require.True(t, r.Do(look))
			_, err = r.Run(ctx)
			require.ErrorIs(t, err, runner.ErrAbandoned)
			if scheme.Lockstep() {
				require.LessOrEqual(t, last, first+10, "it used the few values that had come already, and waits")
			}
			require.True(t, after, "a call that waits when Run ends is made")
			require.Equal(t, []iterate.Rank{1}, reported)
			require.False(t, r.Do(func() error { return nil }), "the run has ended")
			r.Close()
			other := <-opened
			other.Abandon()
			require.ErrorIs(t, <-ended, runner.ErrAbandoned)
			other.Close()
		})
	}
}
