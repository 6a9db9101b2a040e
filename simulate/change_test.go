package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/stretchr/testify/require"
)

// If every machine is lost, no peer notices. The run ends with an error.
func TestAllMachinesLost(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		for _, peers := range []int{1, 3} {
			m := gigabit(peers)
			for rank := range peers {
				m.Events = append(m.Events, cluster.Event{At: 100 * time.Microsecond, Rank: rank, Lost: true})
			}
			r, err := Run(context.Background(), runOf(t, m, membrane(7), s, peers))
			require.ErrorContains(t, err, "100µs after the first relaxation: the last machine is lost")
			require.Equal(t, 100*time.Microsecond, r.Virtual)
		}
	}
}

// Of two slow events of a machine, the one that began last counts. When it is over, the first counts
// again.
func TestSlowTimesOverlap(t *testing.T) {
	e := &engine{run: &Config{}, slow: []float64{1, 1}}
	long := &cluster.Event{Rank: 1, Slow: 100}
	short := &cluster.Event{Rank: 1, Slow: 2}
	other := &cluster.Event{Rank: 0, Slow: 7}
	for _, c := range []struct {
		modelChange
		want float64
	}{
		{modelChange{ev: long, on: true}, 100}, {modelChange{ev: other, on: true}, 100}, {modelChange{ev: short, on: true},
			2},
		{modelChange{ev: short}, 100}, {modelChange{ev: long}, 1},
	} {
		e.changes = []modelChange{c.modelChange}
		e.applyChange(0)
		require.Equal(t, c.want, e.slow[1])
	}
	require.Equal(t, 7.0, e.slow[0])
}

// If sessions never open, the run ends with an error that names the cause.
func TestSetupWithoutEnd(t *testing.T) {
	m := gigabit(4)
	m.Networks[0].Latency = 6 * time.Second // a hello and its answer take longer than the 10 s that they have
	run := runOf(t, m, membrane(7), iterate.Synchronous(), 4)
	run.Until = time.Second // of the run, which does not begin
	r, err := Run(context.Background(), run)
	require.ErrorContains(t, err, "no rank has relaxed after a set-up of 1h0m0s")
	require.ErrorContains(t, err, "latency")
	require.Zero(t, r.Virtual)
}

// A run without a bound of its own ends with an error, not with ReachedTime.
func TestNoVerdict(t *testing.T) {
	m := gigabit(1)
	m.Hosts[0].Relaxation = 1e-5
	r, err := Run(context.Background(), runOf(t, m, membrane(7), iterate.Synchronous(), 1))
	require.ErrorContains(t, err, "no verdict after 100 days of virtual time")
	require.Equal(t, forever, r.Virtual)
}
