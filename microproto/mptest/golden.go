package mptest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The flag is shared by every test binary that imports this package.
var update = flag.Bool("update", false, "write golden files anew")

// Golden compares text with testdata/<name>; with -update it writes the file.
func Golden(tb testing.TB, name, text string) {
	tb.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(tb, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(tb, err, "run the test with -update to write it")
	require.Equal(tb, string(want), text, "%s differs; if the change is meant, run the test with -update", path)
}
