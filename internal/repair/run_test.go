package repair_test

import (
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// loss is the loss of peers before an event of an epoch, counted from 0.
type loss struct {
	event int
	ranks []iterate.Rank
	// noticed is the number of events after which the survivors notice it. Until then they go on if they can.
	noticed int
}

// run is a run in virtual time that loses peers.
type run struct {
	config problem.Config
	exact  []float64 // solution
	local  float64   // tolerance of repairs
	seed   uint64

	// Results.
	epochs int
	events int                 // of the last epoch
	sweeps []iterate.Iteration // by rank, of all epochs; those of lost peers count
	u      []float64           // assembled answer
	reason iterate.Reason
	// transit counts survivors that received planes whose values were on their way.
	transit int
}

// play plays the run to its end. A loss after the end of its epoch does not happen.
func (r *run) play(t require.TestingT, losses ...loss) {
	p := r.config.Problem
	configs := solvertest.ConfigsFor(r.config)
	r.sweeps = make([]iterate.Iteration, len(configs))
	for epoch := 0; ; epoch++ {
		n, err := solvertest.NewNetwork(r.seed+uint64(epoch), solver.New, configs)
		require.NoError(t, err)
		n.Segment, n.Loss, n.Duplicate = 256, 0.05, 0.05
		for i := range n.RelaxTime {
			n.RelaxTime[i] = time.Duration(50+30*i) * time.Microsecond
			if r.config.Balance {
				n.RelaxTime[i] = time.Duration(50+200*i) * time.Microsecond
			}
		}
		r.events, r.epochs = 0, epoch+1
		occurs := false
		n.Until = func() bool {
			r.events++
			if epoch == len(losses) {
				return false
			}
			l := &losses[epoch]
			if r.events == l.event+1 {
				occurs = true
				for _, rank := range l.ranks {
					n.Lose(rank)
				}
			}
			return r.events > l.event+l.noticed
		}
		require.NoError(t, n.Run())
		require.NoError(t, n.Failed)
		newest := iterate.Progress{}
		for i, q := range n.Peers {
			at := q.Progress()
			r.sweeps[i] += at.Sweep
			if survives := !occurs || !slices.Contains(losses[epoch].ranks, iterate.Rank(i)); survives && at.Sweep >= newest.Sweep {
				newest = at
			}
		}
		if !occurs {
			r.u, r.reason = n.Assemble(p), n.Peers[0].Outcome().Reason
			return
		}
		configs = r.next(t, n, configs, losses[epoch].ranks, newest)
	}
}

// next repairs the blocks of lost peers and returns the configurations of the next epoch.
func (r *run) next(t require.TestingT, n *solvertest.Network, configs []problem.Config, lost []iterate.Rank,
	newest iterate.Progress) []problem.Config {
	p, held := r.config.Problem, make([]problem.Box, len(configs))
	for i, q := range n.Peers {
		if !slices.Contains(lost, iterate.Rank(i)) {
			held[i] = q.Box()
		}
	}
	part, missing := repair.Recut(configs[0].Partition, held)
	require.NoError(t, part.Validate(p.N))
	holes := slices.DeleteFunc(slices.Clone(missing), problem.Box.Empty)
	f, own := repair.NewFaces(p, holes), make([][]float64, len(configs))
	for i, q := range n.Peers {
		if !held[i].Empty() {
			own[i] = make([]float64, held[i].Points())
			q.Solution(own[i])
			require.NoError(t, f.Add(held[i], repair.Pack(p, holes, held[i], own[i])))
		}
	}
	repaired := make([][]float64, len(configs))
	for _, group := range repair.Groups(holes) {
		res, err := repair.Solve(repair.Hole{
			Problem: p, Boxes: group, Value: f.Value, New: solver.New, Tolerance: r.local,
		})
		require.NoError(t, err)
		around, worst := furthestFace(p, f, group, nil, r.exact), 0.0
		for i, b := range missing {
			if slices.Contains(group, b) {
				repaired[i] = res.Values(b)
				worst = max(worst, solvertest.Furthest(valuesOf(p, r.exact, b), repaired[i]))
			}
		}
		if math.IsNaN(res.ErrorBound) {
			res.ErrorBound = 0
		}
		require.LessOrEqual(t, worst, around+res.ErrorBound+slack, "a repair raises the error")
	}
	next := make([]problem.Config, len(configs))
	for i, c := range configs {
		u := repair.Join(part.Box(iterate.Rank(i)), held[i], own[i], missing[i], repaired[i])
		if next[i] = repair.Next(c, part, u, newest); !missing[i].Empty() && !held[i].Empty() {
			r.transit++
		}
	}
	return next
}

// check checks the answer against the problem alone.
func (r *run) check(t require.TestingT, most iterate.Iteration, what string) {
	require.Equal(t, iterate.Converged, r.reason, what)
	e, err := verify.Measure(r.config.Problem, r.u, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, e.RelativeResidual, r.config.Tolerance, "a false verdict, %s", what)
	require.LessOrEqual(t, slices.Max(r.sweeps), most, "sweeps, %s", what)
}
