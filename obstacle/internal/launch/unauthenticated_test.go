//go:build linux

package launch

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// silentConnections opens n connections that send nothing or part of a TLS record.
func silentConnections(t *testing.T, address string, n int) []net.Conn {
	t.Helper()
	var all []net.Conn
	for i := range n {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		if i%3 == 0 {
			_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}[:1+i%5])
		}
		all = append(all, c)
	}
	return all
}

// closedByPeer reports whether the other end has closed a connection without sending anything.
func closedByPeer(t *testing.T, c net.Conn) bool {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var n int
	var failed error
	require.NoError(t, raw.Read(func(fd uintptr) bool {
		n, failed = syscall.Read(int(fd), make([]byte, 1))
		return true // without waiting
	}))
	require.LessOrEqual(t, n, 0, "nothing is sent before authentication")
	return !errors.Is(failed, syscall.EAGAIN)
}

// Silent connections are closed when others wait, so that peers need not wait for their timeout.
func TestSilentConnectionsKeepNoPeerOut(t *testing.T) {
	r := rehearse(t, nil)
	address := <-r.address
	r.address <- address
	silent := silentConnections(t, address, 400)
	for _, p := range r.join() {
		p.block()
		p.result(Converged, "", -1)
	}
	standing := 0
	for _, c := range silent {
		if !closedByPeer(t, c) {
			standing++
		}
	}
	require.LessOrEqual(t, standing, rendezvous.MinPending+peers)
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Positive(t, o.Refused)
}
