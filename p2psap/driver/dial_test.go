package driver

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An address that does not answer, or refuses, does not keep another one from being reached.
func TestDialAny(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refuses := gone.Addr().String()
	require.NoError(t, gone.Close())
	const never = "192.0.2.1:9" // of no host (RFC 5737)
	for _, addresses := range [][]string{{l.Addr().String()}, {refuses, l.Addr().String()}, {never, l.Addr().String()},
		{l.Addr().String(), never}, {l.Addr().String(), l.Addr().String(), refuses}} {
		c, err := DialAny(context.Background(), time.Minute, addresses)
		require.NoError(t, err, addresses)
		require.Equal(t, l.Addr().String(), c.RemoteAddr().String())
		require.NoError(t, c.Close())
	}
	_, err = DialAny(context.Background(), time.Minute, []string{refuses, refuses})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = DialAny(context.Background(), time.Minute, []string{refuses, "a name of no host:1"})
	require.NotErrorIs(t, err, syscall.ECONNREFUSED, "a process may listen at the other address")
	_, err = DialAny(context.Background(), time.Minute, nil)
	require.ErrorContains(t, err, "no address")
}
