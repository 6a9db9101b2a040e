//go:build linux

package obstacle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// Time steps of processes give the bits of the sequential method with the synchronous scheme, for any number of
// peers. With other schemes every step meets the tolerance.
func TestStepsOfProcesses(t *testing.T) {
	const tol = 1e-6
	spec, err := file.Open(nil, "front", []string{"steps=5"})
	require.NoError(t, err)
	p, err := spec.BuildValid([]int{12})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	for _, c := range []struct {
		scheme string
		peers  int
		more   []string
	}{
		{"sync", 1, nil}, {"sync", 2, nil}, {"sync", 4, []string{"--partition", "boxes"}}, {"delay:0", 2, nil},
		{"async", 4, []string{"--partition", "boxes"}}, {"hybrid", 4, []string{"--partition", "boxes", "--clusters", "2"}},
	} {
		if testing.Short() && c.peers > 2 {
			continue
		}
		t.Run(fmt.Sprintf("%s, %d peers", c.scheme, c.peers), func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			r := start(t, append([]string{"solve", "front", "--n", "12", "--param", "steps=5", "--tol", fmt.Sprint(tol), "--peers", fmt.Sprint(c.peers),
				"--scheme", c.scheme, "--out", at, "--format", "json"}, c.more...)...)
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Equal(t, 5, s.StepsDone)
			require.LessOrEqual(t, float64(s.WorstResidual), tol)
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			if c.scheme == "sync" || c.scheme == "delay:0" {
				require.Equal(t, oracle.U, u)
				for m, step := range s.TimeSteps {
					for _, sweeps := range step.Sweeps {
						require.EqualValues(t, oracle.Steps[m].Sweeps, sweeps)
					}
				}
				return
			}
			require.Equal(t, 8, s.Reconfigurations)
			for i := range u { // each step is a contraction: errors do not grow
				require.InDelta(t, oracle.U[i], u[i], 1e-4)
			}
		})
	}
}

// stepping starts a solve with a million steps and waits until some are done.
func stepping(t *testing.T, scheme, at string, more ...string) *running {
	t.Helper()
	r := start(t, append([]string{"solve", "front2d", "--n", "40", "--param", "steps=1000000", "--param", "end=100", "--param", "speed=0.01",
		"--peers", "3", "--scheme", scheme, "--format", "json", "--out", at, "--out-every", "1"}, more...)...)
	fourth := filepath.Join(filepath.Dir(at), "u_0000004.vti")
	await.Until(t, func() bool { _, err := os.Stat(fourth); return err == nil || r.over() }, "the fourth step")
	require.FileExists(t, fourth)
	return r
}

// The answer of an early end is that of the last complete step, with its residual.
func TestInterruptBetweenSteps(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.pvd")
			r := stepping(t, scheme, at)
			r.signal(syscall.SIGINT)
			require.Equal(t, 3, r.wait(patience))
			s := r.solution()
			require.Equal(t, "interrupted", s.Reason)
			require.GreaterOrEqual(t, s.StepsDone, 4)
			require.LessOrEqual(t, float64(s.RelativeResidual), 1e-6, "every step that is complete meets the tolerance")
			require.FileExists(t, fmt.Sprintf("%s_%07d.vti", at[:len(at)-4], s.StepsDone))
		})
	}
}

// A killed peer fails the run. The answer is that of the last complete step.
func TestKilledPeerBetweenSteps(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			r := stepping(t, scheme, filepath.Join(t.TempDir(), "u.pvd"), "--recover", "off")
			require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
			require.Equal(t, 1, r.wait(patience))
			s := r.solution()
			require.Equal(t, "failed", s.Reason)
			require.Contains(t, s.Failure, "peer 1 (pid")
			require.Empty(t, s.MissingBlocks)
			require.GreaterOrEqual(t, s.StepsDone, 4)
			require.LessOrEqual(t, float64(s.RelativeResidual), 1e-6)
			require.LessOrEqual(t, float64(s.MaxError), 1e-2)
		})
	}
}
