package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Go that does not understand the version in go.mod is refused by make with what to do.
func TestMakeNeedsAGoThatFetchesOthers(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	for version, old := range map[string]bool{
		"go1.19.8": true, "go1.20": true, "go1.9": true, "go1.3": true, "go1.21.0": false, "go1.26.0": false, "go1.26": false,
		"go1.100.1": false, "go1.27rc1": false, "devel go1.27-0123456": false,
	} {
		name := filepath.Join(t.TempDir(), "go")
		script := "#!/bin/sh\necho go version " + version + " linux/amd64\n"
		require.NoError(t, os.WriteFile(name, []byte(script), 0o700))
		out, err := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), "-n", "fmt", "GO="+name).
			CombinedOutput()
		require.Equal(t, old, err != nil, "%s: %s", version, out)
		if old {
			require.Contains(t, string(out), "Go 1.26 or newer is needed, from https://go.dev/dl/")
		}
	}
}
