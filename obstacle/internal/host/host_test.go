package host

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	require.Greater(t, PeakBytes(), int64(1<<20))
	require.Positive(t, CPUTime())
	require.NotEmpty(t, Limits())
	require.NotEmpty(t, CPU())
	require.Positive(t, Sysctl("net/core/rmem_max"))
	require.Equal(t, int64(-1), Sysctl("no/such/name"))
	require.Positive(t, Free("/"))
}
