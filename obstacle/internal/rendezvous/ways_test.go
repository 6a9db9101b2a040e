package rendezvous

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// A process that listens at one address, or is reached over the loopback interface, is known by one. Another one is known by
// the first address and those of its host, each once.
func TestWays(t *testing.T) {
	require.Equal(t, "10.0.0.1:7000", Ways("10.0.0.1:7000", "10.0.0.1:7000"))
	require.Equal(t, "127.0.0.1:7000", Ways("127.0.0.1:7000", "0.0.0.0:7000"))
	require.Equal(t, "pipe", Ways("pipe", "pipe"))
	all := strings.Split(Ways("192.0.2.1:7000", "0.0.0.0:7000"), ",")
	require.Equal(t, "192.0.2.1:7000", all[0])
	require.Len(t, all, min(maxAddresses, 1+len(driver.Addresses(""))))
	require.Equal(t, []string{"192.0.2.1:7000", ""}, FirstWays([]string{strings.Join(all, ","), ""}))
}

// Of several addresses of another process those are left out that this host has, too; the first one stays.
func TestElsewhere(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("172.17.0.1"), netip.MustParseAddr("fd00::1")}
	require.Equal(t, []string{"172.17.0.1:1", "10.0.0.2:1"},
		elsewhere([]string{"172.17.0.1:1", "10.0.0.2:1", "172.17.0.1:1", "[fd00::1]:1", "no address"}, own))
	require.Equal(t, []string{"a host:1"}, elsewhere([]string{"a host:1"}, own))
}
