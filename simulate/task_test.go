package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Deferred relaxations do not change a result: with parts of a sweep, with methods that have all
// their work in parts, on machines that share cores, and when a run is cut short.
func TestDeferredRelaxations(t *testing.T) {
	counts := []int{4, 2}
	if testing.Short() {
		counts = counts[:1]
	}
	for name, c := range map[string]struct {
		scheme iterate.Scheme
		change func(m *cluster.Model, r *Config)
	}{
		"sync":  {iterate.Synchronous(), func(*cluster.Model, *Config) {}},
		"async": {iterate.Asynchronous(), func(*cluster.Model, *Config) {}},
		"together": {iterate.Asynchronous(), func(m *cluster.Model, _ *Config) {
			for i := range m.Hosts {
				m.Hosts[i].Machine, m.Hosts[i].Cores = 1, 2
			}
		}},
		"multigrid": {iterate.Synchronous(), func(_ *cluster.Model, r *Config) { r.Solver.Method.Name = problem.Multigrid }},
		"schwarz":   {iterate.Asynchronous(), func(_ *cluster.Model, r *Config) { r.Solver.Method.Name = problem.Schwarz }},
		"cut short": {iterate.Asynchronous(), func(_ *cluster.Model, r *Config) {
			r.Sweeps, r.Until = 0,
				3*time.Millisecond
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(threads int) *Result {
				m := gigabit(4)
				r := runOf(t, m, membrane(50), c.scheme, 4)
				r.Solver.Tolerance = 1e-14
				r.Sweeps = 8
				r.Threads = threads
				c.change(m, &r)
				done, err := Run(context.Background(), r)
				require.NoError(t, err)
				return done
			}
			alone := play(1)
			require.Less(t, alone.Residual, 1.0)
			for _, threads := range counts {
				require.Equal(t, alone, play(threads))
			}
		})
	}
}

// A call of any other method does a waiting relaxation first, and a task is done once.
func TestTaskIsDoneOnce(t *testing.T) {
	pool := newWorkerPool(1, 1) // without helpers
	defer pool.close()
	p := &counted{}
	d := deferRelaxations(pool, p, 0)
	op := iterate.Op{Kind: iterate.OpRelax, Points: taskPoints}
	d.relax(op, true)
	require.Zero(t, p.relaxed)
	d.Outcome()
	require.Equal(t, 1, p.relaxed)
	require.True(t, len(pool.tasks) == 1 && !pool.steal(), "a later caller finds it done")
	d.relax(op, false)
	d.relax(op, false)
	require.Equal(t, 2, p.relaxed, "one at a time")
	op.Points--
	d.relax(op, false)
	require.Equal(t, 4, p.relaxed, "what is soon done is done at once")
}

// counted is a peer that counts its relaxations.
type counted struct {
	Peer
	relaxed int
}

func (c *counted) Links() []iterate.Link    { return nil }
func (c *counted) Relax(iterate.Op)         { c.relaxed++ }
func (c *counted) Outcome() iterate.Outcome { return iterate.Outcome{} }

// ownPeer makes a peer for Config.New.
func ownPeer(iterate.Rank) (p Peer, points int, err error) { return &counted{}, 1, nil }
