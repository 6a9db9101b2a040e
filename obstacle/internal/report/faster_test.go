package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A faster method is recommended however the user chose the slowest one, and not if the program chose it.
func TestFasterMethod(t *testing.T) {
	for why, want := range map[string]string{
		"--method": "without --method", "--step": "without --step", "--order": "",
		"that of the checkpoint": "with --method auto", "no other method accepts this run": "",
	} {
		hint := FasterMethod("richardson", why, "multigrid")
		require.Equal(t, want == "", hint == "", why)
		require.Contains(t, hint, want)
	}
	require.Empty(t, FasterMethod("multigrid", "--method", "multigrid"))
	require.Empty(t, FasterMethod("sor", "--method", ""))
	require.Empty(t, FasterMethod("sor", "estimated work", ""))
	require.Contains(t, FasterMethod("sor", "--method", "multigrid"), "without --method, multigrid is chosen")
	require.Contains(t, FasterMethod("sor", "--omega", "multigrid"), "without --omega, multigrid is chosen")
}
