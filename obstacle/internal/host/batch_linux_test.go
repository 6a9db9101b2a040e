package host

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestBatch(t *testing.T) {
	require.NoError(t, Batch())
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, x := range tasks {
		id, err := strconv.Atoi(x.Name())
		require.NoError(t, err)
		a, err := unix.SchedGetAttr(id, 0)
		if err == unix.ESRCH {
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, unix.SCHED_BATCH, a.Policy)
	}
}
