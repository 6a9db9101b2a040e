package driver

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenedAddresses(t *testing.T) {
	lan, wan := netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")
	all := []netip.Prefix{lan, wan}
	require.Equal(t, all, listened(all, ""))
	require.Equal(t, all, listened(all, "0.0.0.0"))
	require.Equal(t, all, listened(all, "::"))
	require.Equal(t, all, listened(all, "some.name"))
	require.Equal(t, []netip.Prefix{lan}, listened(all, "10.0.0.1"))
	require.Equal(t, []netip.Prefix{lan}, listened(all, "::ffff:10.0.0.1"))
	require.Equal(t, []netip.Prefix{wan}, listened(all, "fd00::1"))
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, listened(all, "127.0.0.1"))
	require.Empty(t, listened(all, "10.0.0.9"), "not one of this host's")
	many := make([]netip.Prefix, 100)
	require.Len(t, listened(many, ""), maxAddresses)
}

func TestReachable(t *testing.T) {
	require.Empty(t, Addresses("127.0.0.1"), "nobody else reaches it")
	for _, p := range reachable(":0") {
		require.True(t, p.IsValid())
		require.False(t, p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() || p.Addr().Is4In6(), "%v", p)
	}
	require.NotEmpty(t, hostID())
	require.Equal(t, hostID(), hostID())
}

// A host is identified by the hardware addresses of its interfaces. Without any it counts as another host,
// and its frames are protected.
func TestHardwareID(t *testing.T) {
	id := hardwareID()
	require.Equal(t, id, hardwareID())
	require.Contains(t, []int{0, 32}, len(id))
	require.NotContains(t, string(id), strings.Repeat("0", 32))
}

// The address shows whether the other end is on this host: copies of a virtual machine have one identity, but
// other addresses.
func TestSameHost(t *testing.T) {
	at := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for _, c := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", true},
		{"127.0.0.1:1", "127.0.0.7:2", true},
		{"[::1]:1", "[::1]:2", true},
		{"203.0.113.77:1", "203.0.113.77:2", true}, // of an interface that this test need not have
		{"203.0.113.77:1", "[::ffff:203.0.113.77]:2", true},
		{"[fe80::1%1]:1", "[fe80::1%2]:2", true},
		{"203.0.113.77:1", "203.0.113.78:2", false},
		{"[2001:db8::1]:1", "[2001:db8::2]:1", false},
	} {
		require.Equal(t, c.want, sameHost(at(c.local), at(c.remote)), "%s and %s", c.local, c.remote)
	}
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range own {
		p := netip.MustParsePrefix(a.String())
		there := net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Addr(), 1))
		require.True(t, sameHost(at("203.0.113.77:1"), there), "%v is an address of this host", a)
	}
	near, far := net.Pipe()
	require.False(t, sameHost(near.LocalAddr(), far.RemoteAddr()), "no IP address")
}
