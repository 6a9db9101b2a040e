//go:build linux

package obstacle_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// Processes on loopback give the results of the sequential method: the same bits and sweeps with the synchronous
// scheme, within the tolerance otherwise.
func TestProcessesAgreeWithTheSequentialMethod(t *testing.T) {
	const n, tol = 14, 1e-7
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	exact, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 0)
	require.NoError(t, err)
	counts, partitions := []int{2, 4, 8}, []string{"slabs", "boxes"}
	if testing.Short() {
		counts, partitions = []int{2}, partitions[:1]
	}
	networks := []string{"ether", "shm"} // in turn
	for _, peers := range counts {
		for _, scheme := range []string{"sync", "async", "delay:0", "delay:3"} {
			for _, partition := range partitions {
				network := networks[0]
				slices.Reverse(networks)
				t.Run(fmt.Sprintf("%d peers, %s, %s, %s", peers, scheme, partition, network), func(t *testing.T) {
					at := filepath.Join(t.TempDir(), "u.npy")
					r := start(t, "solve", "membrane", "--n", fmt.Sprint(n), "--tol", fmt.Sprint(tol), "--peers", fmt.Sprint(peers),
						"--scheme", scheme, "--partition", partition, "--network", network, "--out", at, "--format", "json")
					require.Equal(t, 0, r.wait(patience))
					s := r.solution()
					require.True(t, s.Converged)
					require.Equal(t, network, s.Network)
					require.LessOrEqual(t, float64(s.RelativeResidual), tol)
					u, err := output.ReadInitial(at, p)
					require.NoError(t, err)
					if scheme == "sync" || scheme == "delay:0" {
						require.Equal(t, oracle.U, u)
						for _, sweeps := range s.Sweeps {
							require.EqualValues(t, oracle.Sweeps, sweeps)
						}
						return
					}
					for i, v := range u {
						require.InDelta(t, exact.U[i], v, float64(s.ErrorBound)+1e-12)
					}
				})
			}
		}
	}
}

// Four peers in one process give the same result.
func TestInProcess(t *testing.T) {
	r := start(t, "solve", "ball3d", "--n", "9", "--peers", "4", "--in-process", "--scheme", "async", "--format", "json")
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	for _, p := range s.PerPeer {
		require.Equal(t, r.cmd.Process.Pid, p.Pid)
	}
}
