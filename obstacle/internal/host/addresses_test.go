package host

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddresses(t *testing.T) {
	for _, own := range []string{"127.0.0.1:80", "[::1]:80", "192.0.2.1:1", "no address"} {
		require.Equal(t, []string{own}, Addresses(own, "localhost"))
	}
	for _, all := range []string{"0.0.0.0:80", "[::]:80"} {
		at := Addresses(all, "localhost")
		require.NotEmpty(t, at)
		for _, a := range at {
			p, err := netip.ParseAddrPort(a)
			require.NoError(t, err)
			require.False(t, p.Addr().IsUnspecified())
			require.False(t, all[0] == '0' && p.Addr().Is6(), "it listens to IPv4 only")
			require.EqualValues(t, 80, p.Port())
		}
	}
}

// The addresses of the name come first, then those of IPv4. Their number is bounded.
func TestDialled(t *testing.T) {
	var all []netip.Addr
	for _, a := range []string{"2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"} {
		all = append(all, netip.MustParseAddr(a))
	}
	named := func() []string { return []string{"2001:db8::2"} }
	require.Equal(t, []string{"[2001:db8::2]:7", "192.0.2.1:7", "192.0.2.2:7", "[2001:db8::1]:7"}, dialled(all, 7, named))
	require.Equal(t, []string{"127.0.0.1:7"}, dialled(nil, 7, named))
	require.Len(t, dialled(append(all, append(all, all...)...), 7, named), MaxAddresses)
}
