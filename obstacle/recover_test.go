package obstacle_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// long starts a run of three peers that takes long enough to be disturbed, and returns when it relaxes.
func long(t *testing.T, more ...string) *running {
	t.Helper()
	n := "40"
	if testing.Short() {
		n = "24"
	}
	r := start(t, append([]string{"solve", "membrane", "--n", n, "--tol", "1e-9", "--peers", "3", "--slowdown", "0:8",
		"--peer-timeout", "10m", "--format", "json"}, more...)...)
	r.said(`"relaxing"`)
	return r
}

// A run goes on without a killed peer, with every scheme and method, and its answer is solved.
func TestKilledPeerIsReplaced(t *testing.T) {
	runs := map[string][]string{
		"sync":      {"--scheme", "sync"},
		"async":     {"--scheme", "async"},
		"delay":     {"--scheme", "delay:3"},
		"hybrid":    {"--scheme", "hybrid", "--clusters", "2"},
		"ether":     {"--scheme", "async", "--network", "ether"},
		"sor":       {"--method", "sor", "--slowdown", "0:300"},
		"schwarz":   {"--method", "schwarz", "--local", "richardson", "--scheme", "async"},
		"multigrid": {"--method", "multigrid", "--slowdown", "1:200", "--tol", "1e-13"},
		"spare":     {"--scheme", "async", "--spares", "1"},
	}
	if testing.Short() {
		runs = map[string][]string{"async": runs["async"], "spare": runs["spare"]}
	}
	for name, args := range runs {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			r := long(t, append(args, "--out", at)...)
			pid := r.pid(1)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.MissingBlocks)
			require.Len(t, s.Losses, 1)
			l := s.Losses[0]
			require.Equal(t, 1, l.Rank)
			require.Contains(t, l.Why, fmt.Sprintf("peer 1 (pid %d)", pid))
			require.Contains(t, l.By, map[bool]string{false: "new peer 1", true: "spare peer 1"}[name == "spare"])
			require.NotEmpty(t, l.Method, "the block was repaired")
			require.Empty(t, l.Unbound)
			require.GreaterOrEqual(t, float64(l.Recovered), l.Detected)
			p, _, err := file.Load("membrane", s.N)
			require.NoError(t, err)
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			e, err := verify.Evaluate(p, u, nil)
			require.NoError(t, err)
			require.Equal(t, float64(s.RelativeResidual), e.RelativeResidual, "the residual is that of what was written")
		})
	}
}
