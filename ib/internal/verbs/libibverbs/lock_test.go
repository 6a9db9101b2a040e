//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// TestLockLimit runs itself as nobody, since root may lock any amount. VERBS_DEVICES names a device
// as in TestSuite.
func TestLockLimit(t *testing.T) {
	name, _, _ := strings.Cut(os.Getenv("VERBS_DEVICES"), ",")
	if name == "" {
		t.Skip("VERBS_DEVICES names no device: make verbs runs this in a guest")
	}
	if os.Geteuid() == 0 {
		again := exec.Command("/proc/self/exe", "-test.run=^TestLockLimit$", "-test.v")
		again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	const limit = 256 << 10
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}))
	d, err := New().Open(name)
	require.NoError(t, err)
	m, err := d.AllocDomain()
	require.NoError(t, err)
	memory, err := verbs.Allocate(1 << 20)
	require.NoError(t, err)

	_, err = m.Register(memory, verbs.LocalWrite)
	lock := new(verbs.LockLimitError)
	require.ErrorAs(t, err, &lock)
	require.Equal(t, &verbs.LockLimitError{Want: 1 << 20, Limit: limit}, lock)

	r, err := m.Register(memory[:200<<10], verbs.LocalWrite)
	require.NoError(t, err)
	_, err = m.Register(memory[:100], verbs.LocalWrite)
	require.NoError(t, err, "what the limit has room for")
	_, err = m.Register(memory[300<<10:400<<10], verbs.LocalWrite)
	require.ErrorAs(t, err, &lock)
	require.EqualValues(t, 304<<10, lock.Want, "with all that is registered")
	require.NoError(t, r.Close())
	_, err = m.Register(memory[300<<10:400<<10], verbs.LocalWrite)
	require.NoError(t, err, "room again after a region was closed")
	_, err = m.Register(memory, verbs.LocalWrite)
	require.ErrorAs(t, err, &lock)
	require.EqualValues(t, (1024+4+100)<<10, lock.Want, "without the region that was closed")
}
