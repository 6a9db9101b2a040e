//go:build linux

package obstacle_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inPidSpace runs f in a thread whose children are in a PID namespace of their own, the first with number 1.
func inPidSpace(t *testing.T) func(f func() error) error {
	return func(f func() error) error {
		failed, refused := make(chan error), make(chan error, 1)
		go func() {
			runtime.LockOSThread() // for ever: the thread ends with the goroutine
			err := unix.Unshare(unix.CLONE_NEWPID)
			if refused <- err; err == nil {
				failed <- f()
			}
		}()
		if err := <-refused; err != nil {
			t.Skipf("no PID namespace: %v", err)
		}
		return <-failed
	}
}

// Containers that share the network of a host have processes of the same number. They are processes of their own: each runs the
// parts of its seat.
func TestPidNamespaces(t *testing.T) {
	t.Parallel()
	secret := secretFile(t, "the secret of this run")
	r := start(t, "solve", "membrane", "--n", "12", "--peers", "2", "--parts", "2", "--rendezvous", "127.0.0.1:0",
		"--secret-file", secret, "--format", "json")
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	for seat := range 2 {
		startIn(t, inPidSpace(t), "peer", "--rendezvous", address, "--secret-file", secret, "--seat", fmt.Sprint(seat))
		r.said(fmt.Sprintf(`"rank":%d,.*peer joined`, 2*seat))
	}
	<-r.done // wait would wait for the end of the processes of these numbers
	require.Equal(t, 0, r.code)
	s := r.solution()
	require.True(t, s.Converged)
	for rank, p := range s.PerPeer {
		require.Equal(t, 1, p.Pid, rank)
	}
	for _, e := range s.Sessions {
		want := map[bool]string{true: "memory", false: "shm"}[e.From/2 == e.To/2]
		require.Equal(t, want, e.Network, "%d to %d", e.From, e.To)
	}
}
