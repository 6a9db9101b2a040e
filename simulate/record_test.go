package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/trace"
)

// A trace changes nothing, and has every message and all relaxing of the run, of each epoch by itself.
func TestTracesInVirtualTime(t *testing.T) {
	run, alone := undisturbed(t, iterate.Asynchronous(), "")
	kill := cluster.Event{At: alone.Virtual / 2, Rank: 3, Killed: true}
	plain := played(t, run, kill)
	run.Trace = &trace.Options{Bytes: 1 << 20}
	traced := played(t, run, kill)
	nodes := traced.Traces
	traced.Traces = nil
	require.Equal(t, plain, traced)
	require.Len(t, nodes, 16, "eight ranks in two epochs")
	require.Equal(t, "virtual epoch 0", nodes[0].Run)
	require.Equal(t, "virtual epoch 1", nodes[8].Run)
	sent := uint64(0)
	for i, n := range nodes {
		require.True(t, n.Virtual)
		require.Zero(t, n.Overwritten)
		last, relaxing, open := int64(0), time.Duration(0), int64(-1)
		for _, r := range n.Records {
			require.LessOrEqual(t, last, r.At)
			last = r.At
			switch r.Kind {
			case trace.Send:
				sent++
			case trace.RelaxBegin:
				open = r.At
			case trace.RelaxEnd:
				require.GreaterOrEqual(t, open, int64(0))
				relaxing += time.Duration(r.At - open)
			}
		}
		require.Positive(t, relaxing, i)
	}
	require.Equal(t, traced.Messages(), sent)
}
