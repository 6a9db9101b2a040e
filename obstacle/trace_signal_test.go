//go:build linux

package obstacle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
)

// catches reports whether a process catches a signal.
func catches(pid int, s syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(`SigCgt:\s*([0-9a-f]+)`).FindSubmatch(status)
	if m == nil {
		return false
	}
	set, _ := strconv.ParseUint(string(m[1]), 16, 64)
	return set&(1<<(s-1)) != 0
}

// Signals that ask for traces end neither the launcher nor the peers that it is starting meanwhile.
func TestTraceSignalsFromTheStart(t *testing.T) {
	r := start(t, "solve", "membrane", "--n", "12", "--peers", "3", "--trace", filepath.Join(t.TempDir(), "t"), "--format", "json")
	pid := r.cmd.Process.Pid
	await.Until(t, func() bool { return catches(pid, syscall.SIGUSR1) || r.over() }, "the launcher to catch the signal")
	await.Until(t, func() bool {
		r.signal(syscall.SIGUSR1)
		return r.over()
	}, "the end of the run")
	require.Equal(t, 0, r.wait(patience))
	require.True(t, r.solution().Converged)
}
