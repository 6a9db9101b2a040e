package pin

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Bind binds every thread, and claims: another peer cannot have the same processor until the claim is given up.
func TestBind(t *testing.T) {
	name := fmt.Sprintf("p2pdc/test/%d", os.Getpid())
	all, err := Allowed()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	var before unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	t.Cleanup(func() { require.NoError(t, bindAll(&before)) })
	last := all[len(all)-1].ID
	c, err := bind(name, []int{last})
	require.NoError(t, err)
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		require.NoError(t, err)
		var set unix.CPUSet
		if unix.SchedGetaffinity(id, &set) == nil { // else the thread has ended
			require.Equal(t, 1, set.Count())
			require.True(t, set.IsSet(last))
		}
	}
	_, err = bind(name, []int{last})
	require.ErrorContains(t, err, fmt.Sprintf("another run is bound to processor %d", last))
	c.Release()
	c, err = bind(name, []int{last})
	require.NoError(t, err)
	c.Release()
	_, err = bind(name, []int{1000}) // the system has no such processor
	require.ErrorContains(t, err, "sched_setaffinity")
}

// The place of a processor is read from /sys, and what is missing there has harmless values.
func TestProcessor(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	write("cpu5/topology/core_id", "2\n")
	write("cpu5/topology/physical_package_id", "1\n")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cpu5/node3"), 0o755))
	require.Equal(t, Processor{ID: 5, Core: 2, Package: 1, Node: 3}, processor(root, 5))
	write("cpu6/topology/core_id", "-1\n")
	write("cpu6/topology/physical_package_id", "none\n")
	require.Equal(t, Processor{ID: 6, Core: 6}, processor(root, 6))
	require.Equal(t, Processor{ID: 7, Core: 7}, processor(root, 7))
}
