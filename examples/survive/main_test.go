package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// asProgram makes this test binary the program.
const asProgram = "SURVIVE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The second of four processes crashes, and the run is solved in every scheme, also with copies of iterates and with parts.
func TestRunGoesOn(t *testing.T) {
	for _, more := range [][]string{
		{"--scheme", "sync"}, {"--scheme", "async"}, {"--scheme", "delay:2"}, {"--scheme", "hybrid", "--clusters", "2"},
		{"--recover", "exact"}, {"--parts", "2"},
	} {
		exe, err := os.Executable()
		require.NoError(t, err)
		run := exec.CommandContext(t.Context(), exe, append([]string{"solve", "rod", "--peers", "4", "--format", "json"}, more...)...)
		run.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+t.TempDir())
		out, err := run.Output()
		require.NoError(t, err, "%v", more)
		var s struct {
			Converged bool
			Losses    []struct{ Rank int }
			Residual  float64 `json:"relative_residual"`
		}
		require.NoError(t, json.Unmarshal(out, &s))
		require.True(t, s.Converged, "%v", more)
		require.Less(t, s.Residual, 1e-6)
		require.NotEmpty(t, s.Losses, "%v", more)
	}
}

func TestBlocks(t *testing.T) {
	f, err := newRod(nil)
	require.NoError(t, err)
	blocks, err := f.Parts([]int{0, 10, 20, 48})
	require.NoError(t, err)
	for _, b := range blocks {
		b.(*part).crashes = false
	}
	require.NoError(t, iteratetest.Suite{Blocks: blocks}.Check())
}
