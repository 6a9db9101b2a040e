//go:build linux

package obstacle_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands that obstacle shows a new user work, one after the other, in an empty directory.
func TestFirstCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("several solves")
	}
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(args ...string) []byte {
		c := exec.CommandContext(t.Context(), exe, args...)
		c.Dir, c.Env = dir, append(os.Environ(), asProgram+"="+asItIs)
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		require.NoError(t, err, "%q: %s", args, errs.String())
		return out
	}
	var first struct{ Try []struct{ Command string } }
	require.NoError(t, json.Unmarshal(run("--format", "json"), &first))
	require.Len(t, first.Try, 5)
	for _, c := range first.Try {
		words := strings.Fields(c.Command)
		require.Equal(t, "obstacle", words[0])
		require.NotEmpty(t, run(words[1:]...))
	}
	require.FileExists(t, dir+"/my.png")
}
