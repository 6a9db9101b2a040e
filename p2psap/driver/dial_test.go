package driver

import (
	"context"
	"net"
	"net/netip"
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
	require.Equal(t, []string{refuses, refuses}, Refused(err))
	_, err = DialAny(context.Background(), time.Minute, []string{refuses, "a name of no host:1"})
	require.NotErrorIs(t, err, syscall.ECONNREFUSED, "a process may listen at the other address")
	require.Equal(t, []string{refuses}, Refused(err))
	require.Empty(t, Refused(nil))
	_, err = DialAny(context.Background(), time.Minute, nil)
	require.ErrorContains(t, err, "no address")
}

// A neighbour is in a network of this host, and not this host.
func TestNeighbour(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("10.0.1.2/24"), netip.MustParsePrefix("172.17.0.1/16"), netip.MustParsePrefix("fd00::2/64")}
	for at, want := range map[string]bool{
		"10.0.1.1": true, "10.0.1.2": false, "10.0.2.1": false, "172.17.0.1": false, "172.17.9.9": true, "fd00::1": true, "fd00::2": false,
		"fd01::1": false,
	} {
		require.Equal(t, want, neighbour(netip.MustParseAddr(at), own), at)
	}
	require.False(t, Neighbour("127.0.0.1:80"))
	require.False(t, Neighbour("no address"))
}
