package cli

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
)

// A started process ignores the signal from its first instruction on, and this one catches it all the time after.
func TestTraceSignalOfAChild(t *testing.T) {
	heard := make(chan bool, 1)
	defer traceSignal.listen(func() { heard <- true })()
	var out []byte
	require.NoError(t, traceSignal.starting(func() (err error) {
		out, err = exec.Command("sh", "-c", "kill -USR1 $$; echo alive").Output()
		return err
	}))
	require.Equal(t, "alive", strings.TrimSpace(string(out)))
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
	await.Until(t, func() bool { return len(heard) == 1 }, "the signal")
}
