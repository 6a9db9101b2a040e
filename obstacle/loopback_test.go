//go:build linux

package obstacle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// A run of one host ends at once where the loopback interface is down, and needs no IPv4 there.
func TestLoopback(t *testing.T) {
	t.Parallel()
	host := netlab.New(t).Host("a")
	change := func(f func(lo netlink.Link) error) {
		require.NoError(t, host.Do(func() error {
			lo, err := netlink.LinkByName("lo")
			require.NoError(t, err)
			return f(lo)
		}))
	}
	for _, args := range [][]string{{"--peers", "2"}, {"--peers", "2", "--in-process"}} {
		args = append([]string{"solve", "membrane", "--n", "8", "--scheme", "async", "--network", "ether"}, args...)
		change(netlink.LinkSetDown)
		r := startIn(t, host.Do, args...)
		require.Equal(t, 1, r.wait(patience))
		r.said("the loopback interface lo is down, .*ip link set lo up")

		change(netlink.LinkSetUp)
		change(func(lo netlink.Link) error {
			all, err := netlink.AddrList(lo, netlink.FAMILY_V4)
			for i := 0; err == nil && i < len(all); i++ {
				err = netlink.AddrDel(lo, &all[i])
			}
			return err
		})
		r = startIn(t, host.Do, args...)
		require.Equal(t, 0, r.wait(patience))
	}
}
