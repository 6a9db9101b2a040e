//go:build linux

package obstacle_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
)

// resume continues the run in a directory by a fast method to a tolerance that it meets soon.
func resume(t *testing.T, directory string, more ...string) *running {
	t.Helper()
	noGate(t)
	args := []string{"resume", directory, "--method", "multigrid", "--scheme", "sync", "--tol", "1e-3", "--format", "json"}
	r := start(t, append(args, more...)...)
	require.Equal(t, 0, r.wait(patience))
	require.True(t, r.solution().Converged)
	return r
}

// SIGTERM ends a run with a checkpoint that holds the answer, and the run continues with another method.
func TestSIGTERMWritesACheckpoint(t *testing.T) {
	for _, scheme := range schemes() {
		directory, u := filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "u.npy")
		r := endless(t, scheme, "--checkpoint", directory, "--checkpoint-every", "0", "--out", u)
		r.signal(syscall.SIGTERM)
		require.Equal(t, 3, r.wait(patience))
		s := r.solution()
		require.Equal(t, launch.Interrupted, s.Reason)
		require.True(t, s.Resumable)
		require.Equal(t, 1, s.Checkpoint.Written)
		f, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		p, err := f.Problem()
		require.NoError(t, err)
		written, err := output.ReadInitial(u, p)
		require.NoError(t, err)
		require.Equal(t, written, f.U)
		require.Equal(t, s.RelativeResidual, f.Residual)
		require.EqualValues(t, slices.Max(s.Sweeps), f.Sweeps)

		after := resume(t, directory, "--peers", "2").solution()
		require.Equal(t, f.Sweeps, after.Resumed.Sweeps)
	}
}

// Checkpoints are written while the peers relax. A run whose processes are killed continues from the last one.
func TestCheckpointsDuringTheRun(t *testing.T) {
	for _, scheme := range schemes() {
		directory := filepath.Join(t.TempDir(), "c")
		r := endless(t, scheme, "--checkpoint", directory, "--checkpoint-every", "1ms")
		r.said(`"sweeps":[1-9].*checkpoint written`)
		r.signal(syscall.SIGKILL)
		r.wait(patience)
		f, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		require.Empty(t, f.Skipped)
		require.Positive(t, f.Sweeps)
		require.Equal(t, f.Name, resume(t, directory, "--peers", "1").solution().Resumed.From)
	}
}

// A full file system costs the checkpoints but not the answer, and leaves no partial file. The exit code is 1 if the
// run depends on the checkpoint.
func TestFullFileSystemForCheckpoints(t *testing.T) {
	t.Setenv(fileLimit, "65536")
	directory := filepath.Join(t.TempDir(), "c")
	closeGate(t, gate.Gate{Step: 2})
	r := start(t, "solve", "front2d", "--n", "96", "--param", "steps=2", "--tol", "1e-3", "--method", "richardson", "--peers", "1",
		"--checkpoint", directory, "--checkpoint-every", "1ns", "--format", "json")
	r.said("box-1-0.npy: the file cannot be written: file too large")
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Equal(t, 1, s.Checkpoint.Failed)
	require.Equal(t, "checkpoint "+filepath.Join(directory, "box-1-0.npy")+": the file cannot be written: file too large", s.Checkpoint.Error)

	directory = filepath.Join(t.TempDir(), "c")
	r = start(t, "solve", "front2d", "--n", "96", "--peers", "1", "--max-sweeps", "1", "--checkpoint", directory)
	require.Equal(t, 1, r.wait(patience))
	require.Contains(t, r.stdout.String(), "stopped by --max-sweeps: best iterate")
	require.Regexp(t, `(?m)^checkpoint +NOT WRITTEN once: checkpoint .*/box-1-0.npy: the file cannot be written: file too large$`,
		r.stdout.String())
	require.NotContains(t, r.stdout.String(), "obstacle resume")
	for _, name := range files(t, directory) {
		require.True(t, name == "lock" || strings.HasPrefix(name, "problem-"), name)
	}
}
