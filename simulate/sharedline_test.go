package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Two machines at each of two sites, in a row: near faces and far ones meet at the ports of those in the middle. Each face
// that is read is at most some round trips through full queues old, and the run is shorter than in lockstep.
func TestNoFlowStarvesAtASharedPort(t *testing.T) {
	description, err := clusterfile.Open("grid-0.1ms")
	require.NoError(t, err)
	m, err := description.Model(4)
	require.NoError(t, err)
	p := membrane(32)
	met := map[string]time.Duration{}
	for name, scheme := range map[string]iterate.Scheme{"sync": iterate.Synchronous(), "async": iterate.Asynchronous()} {
		run := runOf(t, m, p, scheme, 4)
		run.Solver.Partition, err = problem.Slabs(p.N, 4, nil)
		require.NoError(t, err)
		run.Evaluate, run.Until = true, time.Second
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Equal(t, iterate.Converged, r.Reason, name)
		met[name] = r.Met.After
		for rank := range r.Ranks {
			for _, read := range r.Ranks[rank].Reads {
				t.Logf("%s: faces of %d at %d: mean age %d, %d new in %d sweeps", name, read.Rank, rank, read.Sum/read.Faces,
					read.Fresh, read.Faces)
				require.Less(t, read.Faces, 200*read.Fresh)
				require.Less(t, time.Duration(read.Sum/read.Faces)*r.Steady, 10*time.Millisecond)
			}
		}
	}
	require.Less(t, met["async"], met["sync"])
}
