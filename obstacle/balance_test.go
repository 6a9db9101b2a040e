//go:build linux

package obstacle_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// Planes move away from a process that is slowed down by a factor of 100. The answer stays the same and reports the
// moves. How well planes follow speeds is tested in virtual time.
func TestPlanesMoveBetweenProcesses(t *testing.T) {
	const tol = 1e-6
	for name, c := range map[string]struct {
		problem string
		n       int
		more    []string
		planes  int
	}{
		"sync":               {"membrane", 28, []string{"--scheme", "sync"}, 28},
		"async":              {"membrane", 28, []string{"--scheme", "async"}, 28},
		"sync, in time":      {"front", 24, []string{"--scheme", "sync", "--param", "steps=8"}, 24},
		"async, in time":     {"front", 24, []string{"--scheme", "async", "--param", "steps=8"}, 24},
		"hybrid, in process": {"membrane", 28, []string{"--scheme", "hybrid", "--clusters", "2", "--in-process"}, 28},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "sync" {
				t.Skip("several seconds of processes: without -short")
			}
			at := filepath.Join(t.TempDir(), "u.npy")
			closeGate(t, gate.Gate{Every: time.Millisecond}) // the run cannot end before speeds are measured
			r := start(t, append([]string{"solve", c.problem, "--n", fmt.Sprint(c.n), "--tol", fmt.Sprint(tol), "--method", "richardson",
				"--peers", "3", "--partition", "slabs", "--slowdown", "1:100", "--balance", "on", "--out", at, "--format", "json"}, c.more...)...)
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Equal(t, "on", s.Balance)
			require.Positive(t, s.PlanesMoved)
			require.Len(t, s.Planes, 3)
			given, end := 0, 0
			for i, p := range s.PerPeer {
				require.Equal(t, end, p.Box[2][0])
				end = p.Box[2][1]
				require.Equal(t, end-p.Box[2][0], s.Planes[i])
				given += int(p.Given)
			}
			require.Equal(t, c.planes, end)
			require.Equal(t, given, s.PlanesMoved)
			if c.more[1] != "sync" {
				return
			}
			p := load(t, c.problem, c.n, c.more)
			oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
			require.NoError(t, err)
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			require.Equal(t, oracle.U, u)
		})
	}
}

// load builds the problem that the flags describe.
func load(t *testing.T, name string, n int, flags []string) *problem.Problem {
	t.Helper()
	var params []string
	if len(flags) > 2 {
		params = flags[3:]
	}
	spec, err := file.Open(nil, name, params)
	require.NoError(t, err)
	p, err := spec.BuildValid([]int{n})
	require.NoError(t, err)
	return p
}
