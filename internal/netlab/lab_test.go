//go:build linux

package netlab_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

func listen(t *testing.T, at netip.Addr, h *netlab.Host) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	require.NoError(t, h.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

func port(c *net.UDPConn) netip.AddrPort {
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestHostsCommunicateOverTheirWire(t *testing.T) {
	lab := netlab.New(t)
	a, b := lab.Host("a"), lab.Host("b")
	endA, endB := lab.Join(a, b, netlab.Wire{MTU: 9000})
	for _, pair := range [][2]netip.Addr{{endA.IPv4, endB.IPv4}, {endA.IPv6, endB.IPv6}} {
		ca, cb := listen(t, pair[0], a), listen(t, pair[1], b)
		_, err := ca.WriteToUDPAddrPort([]byte("hello"), port(cb))
		require.NoError(t, err)
		buf := make([]byte, 10)
		n, from, err := cb.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		require.Equal(t, "hello", string(buf[:n]))
		require.Equal(t, port(ca), from)
	}
	require.NoError(t, a.Do(func() error {
		i, err := net.InterfaceByName(endA.Interface)
		if err == nil {
			require.Equal(t, 9000, i.MTU)
		}
		return err
	}))
}

func TestHostsAreIsolated(t *testing.T) {
	before, err := net.Interfaces()
	require.NoError(t, err)
	lab := netlab.New(t)
	a, b, c := lab.Host("a"), lab.Host("b"), lab.Host("c")
	_, endB := lab.Join(a, b, netlab.Wire{})
	lab.Join(b, c, netlab.Wire{})
	require.Error(t, c.Do(func() error { // c has no wire to that network
		conn, err := net.Dial("udp", netip.AddrPortFrom(endB.IPv4, 9).String())
		if err == nil {
			conn.Close()
		}
		return err
	}))
	// A port used by one host is free on the other.
	first := listen(t, netip.MustParseAddr("127.0.0.1"), a)
	require.NoError(t, b.Do(func() error {
		second, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(port(first)))
		if err == nil {
			second.Close()
		}
		return err
	}))
	after, err := net.Interfaces()
	require.NoError(t, err)
	require.Equal(t, before, after, "the lab is visible outside")
}

func TestDoRestoresTheNamespace(t *testing.T) {
	lab := netlab.New(t)
	a := lab.Host("a")
	here, err := net.Interfaces()
	require.NoError(t, err)
	failure := errors.New("on purpose")
	require.ErrorIs(t, a.Do(func() error {
		there, err := net.Interfaces()
		require.NoError(t, err)
		require.Len(t, there, 1) // loopback
		return failure
	}), failure)
	again, err := net.Interfaces()
	require.NoError(t, err)
	require.Equal(t, here, again)
}

func TestProcessesRunInTheirHost(t *testing.T) {
	lab := netlab.New(t)
	a, b := lab.Host("a"), lab.Host("b")
	endA, _ := lab.Join(a, b, netlab.Wire{})
	var out strings.Builder
	cmd := exec.Command("cat", "/proc/net/fib_trie")
	cmd.Stdout = &out
	require.NoError(t, a.Do(cmd.Start))
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.String(), endA.IPv4.String())
}

// The kernel bounds the rate of a wire. No packet is lost while the queue has room.
func TestRate(t *testing.T) {
	lab := netlab.New(t)
	a, b := lab.Host("a"), lab.Host("b")
	const rate, size, count = 2_500_000, 1000, 60
	endA, endB := lab.Join(a, b, netlab.Wire{Rate: rate, Queue: 1 << 20})
	for _, end := range []netlab.End{endA, endB} {
		require.NoError(t, end.Host.Do(func() error {
			link, err := netlink.LinkByName(end.Interface)
			if err != nil {
				return err
			}
			all, err := netlink.QdiscList(link)
			if err != nil {
				return err
			}
			for _, q := range all {
				if tbf, is := q.(*netlink.Tbf); is {
					require.EqualValues(t, rate, tbf.Rate)
					require.EqualValues(t, 1<<20, tbf.Limit)
					return nil
				}
			}
			return fmt.Errorf("no token bucket on %s: %v", end.Interface, all)
		}))
	}
	ca, cb := listen(t, endA.IPv4, a), listen(t, endB.IPv4, b)
	for range count {
		_, err := ca.WriteToUDPAddrPort(make([]byte, size), port(cb))
		require.NoError(t, err)
	}
	buf := make([]byte, size)
	for range count {
		_, _, err := cb.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
	}
}
