package host

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRDMAReadsWhatTheKernelShows(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		at := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o777))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o666))
	}
	put("mlx5_0/ports/1/state", "4: ACTIVE\n")
	put("mlx5_0/ports/1/link_layer", "InfiniBand\n")
	put("mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n")
	put("rxe0/ports/1/state", "1: DOWN\n")
	put("rxe0/ports/x/state", "not a port")
	put("broken/node_type", "")
	require.Equal(t, []Device{
		{"mlx5_0", 1, "ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)"},
		{"rxe0", 1, "DOWN", "", ""},
	}, RDMA(root))
	require.Empty(t, RDMA(filepath.Join(root, "nowhere")))
}

func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	resident := ResidentBytes()
	require.Positive(t, resident)
	require.GreaterOrEqual(t, PeakBytes(), resident)
	require.Positive(t, CPUTime())
	require.NotEmpty(t, Limits())
	require.NotEmpty(t, CPU())
	require.Positive(t, Sysctl("net/core/rmem_max"))
	require.Equal(t, int64(-1), Sysctl("no/such/name"))
	require.Positive(t, Free("/"))
}
