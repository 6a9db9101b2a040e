//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A secret that others can read is accepted with a warning, unless it is mounted as Kubernetes does.
func TestModesOfASecret(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(name, []byte("correct horse"), 0o600))
	warned := func(mode os.FileMode) bool {
		require.NoError(t, os.Chmod(name, mode))
		var log bytes.Buffer
		a := &app{log: zerolog.New(&log)}
		secret, err := a.secret(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, "correct horse", string(secret))
		return bytes.Contains(log.Bytes(), []byte("can read the run's secret"))
	}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o440: true, 0o640: true, 0o644: true, 0o604: true} {
		require.Equal(t, want, warned(mode), "%o", mode)
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(name, 65532, -1))
		require.False(t, warned(0o440))
		require.True(t, warned(0o444))
	}
}
