//go:build unix

package spawn

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that ends before it has read its line is a started one, and Wait tells how it ended: here it has closed its
// standard input.
func TestProcessThatReadsNothing(t *testing.T) {
	for range 20 {
		p, err := Start("/bin/sh", []string{"-c", "exec 0<&-; exit 7"}, make([]byte, 1<<20), io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, p.Wait(), "exit status 7")
	}
	_, err := Start("/nowhere", nil, nil, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The program of this process is started although its file was removed.
func TestExecutableThatWasRemoved(t *testing.T) {
	if os.Getenv("P2PDC_TEST_REMOVED") != "" {
		path, err := os.Executable()
		require.NoError(t, err)
		usual, err := Executable()
		require.NoError(t, err)
		require.Equal(t, path, usual)
		require.NoError(t, os.Remove(path))
		now, err := Executable()
		require.NoError(t, err)
		p, err := Start(now, []string{"-test.run", "^$"}, nil, io.Discard)
		require.NoError(t, err)
		require.NoError(t, p.Wait())
		return
	}
	if _, err := os.Stat(running); err != nil {
		t.Skipf("this system cannot start a file that was removed: %v", err)
	}
	exe, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(copied, exe, 0o700))
	c := exec.CommandContext(t.Context(), copied, "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), "P2PDC_TEST_REMOVED=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
}
