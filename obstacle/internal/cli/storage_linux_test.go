package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The check changes nothing, and opens no pipe.
func TestTouchChangesNothing(t *testing.T) {
	folder := t.TempDir()
	file, pipe := filepath.Join(folder, "file"), filepath.Join(folder, "pipe")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	before, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, name := range []string{file, pipe, folder, filepath.Join(folder, "none"), filepath.Join(folder, "none", "none"), ""} {
		for _, as := range []access{reads, writes} {
			namedFile{"", name, as}.touch(false)
			namedFile{"", name, as}.touch(true)
		}
	}
	after, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Equal(t, before, after)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}
