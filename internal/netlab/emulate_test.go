//go:build linux

package netlab_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/netlab"
)

// sockets returns two sockets connected by the link.
func sockets(t *testing.T, k *netlab.Link) (a, b *net.UDPConn) {
	t.Helper()
	return listen(t, k.A.IPv4, k.A.Host), listen(t, k.B.IPv4, k.B.Host)
}

func put(t *testing.T, from, to *net.UDPConn, data []byte) {
	t.Helper()
	_, err := from.WriteToUDPAddrPort(data, port(to))
	require.NoError(t, err)
}

// get returns the next datagram.
func get(t *testing.T, c *net.UDPConn) []byte {
	t.Helper()
	buf := make([]byte, 2000)
	n, err := c.Read(buf)
	require.NoError(t, err)
	return buf[:n]
}

func twoHosts(t *testing.T, e netlab.Emulation) *netlab.Link {
	t.Helper()
	lab := netlab.New(t)
	return lab.Emulate(lab.Host("a"), lab.Host("b"), e)
}

// The link delays packets. path_test.go tests the duration in virtual time; bench measures the lateness of the
// link's thread.
func TestEmulatedDelay(t *testing.T) {
	c := netlab.Conditions{Delay: time.Millisecond}
	k := twoHosts(t, netlab.Emulation{Forth: c, Back: c})
	a, b := sockets(t, k)
	for i := range byte(20) {
		put(t, a, b, []byte{i})
		require.Equal(t, []byte{i}, get(t, b))
		put(t, b, a, []byte{i})
		get(t, a)
	}
	for _, d := range []netlab.Direction{netlab.Forth, netlab.Back} {
		require.EqualValues(t, 20, k.Counters(d).Forwarded, "no other packets use the link")
		require.NoError(t, k.Change(d, netlab.Conditions{Delay: time.Hour}))
	}
	put(t, a, b, []byte{1})
	put(t, b, a, []byte{1})
	for _, d := range []netlab.Direction{netlab.Forth, netlab.Back} {
		await.Until(t, func() bool { return k.Counters(d).Held == 1 }, "a packet that is held")
		require.EqualValues(t, 20, k.Counters(d).Forwarded)
	}
}

func TestEmulatedLinkCarriesBothFamilies(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{MTU: 9000})
	a, b := listen(t, k.A.IPv6, k.A.Host), listen(t, k.B.IPv6, k.B.Host)
	put(t, a, b, make([]byte, 8000))
	n, err := b.Read(make([]byte, 9000))
	require.NoError(t, err, "%+v", k.Counters(netlab.Forth))
	require.Equal(t, 8000, n)
	require.EqualValues(t, 1, k.Counters(netlab.Forth).Forwarded, "in one packet")
}

// At one byte per second one packet is transmitted, the queue fills, and the other packets are dropped. At a
// higher rate the queued packets arrive.
func TestEmulatedRate(t *testing.T) {
	const size, count = 972, 60 // with its headers a packet has 1000 bytes
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{Rate: 1, QueueBytes: 40_000}})
	a, b := sockets(t, k)
	for range count {
		put(t, a, b, make([]byte, size))
	}
	await.Until(t, func() bool { return k.Counters(netlab.Forth).In == count }, "the packets to be taken in")
	counters := k.Counters(netlab.Forth)
	require.EqualValues(t, count-41, counters.Dropped[netlab.QueueFull])
	require.EqualValues(t, 41, counters.Held)
	require.Zero(t, counters.Forwarded)
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{Rate: 10_000_000}))
	for range 41 {
		get(t, b)
	}
	require.EqualValues(t, count-41, k.Counters(netlab.Forth).Dropped[netlab.QueueFull])
}

func TestEmulatedLoss(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Seed: 3, Forth: netlab.Conditions{Loss: 0.5}})
	a, b := sockets(t, k)
	const count = 200 // a socket buffers that many packets without a reader
	for range count {
		put(t, a, b, []byte{1})
	}
	await.Until(t, func() bool { return k.Counters(netlab.Forth).In == count }, "the packets to be taken in")
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{}))
	put(t, a, b, []byte{2})
	got := 0
	for get(t, b)[0] != 2 {
		got++
	}
	require.InDelta(t, count/2, got, 36) // five standard deviations
	c := k.Counters(netlab.Forth)
	require.EqualValues(t, count+1, c.In)
	require.EqualValues(t, count-got, c.Dropped[netlab.Lost])
	require.Error(t, k.Change(netlab.Forth, netlab.Conditions{Loss: 2}))
	require.Zero(t, k.Conditions(netlab.Forth).Loss)
}

func TestChosenPacketsAndBlackHole(t *testing.T) {
	var first bool
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{Pick: func(ip []byte) bool {
		if ip[0] != 0x45 || ip[9] != 17 || first { // not UDP over IPv4
			return false
		}
		first = true
		return ip[28] == 1
	}}})
	a, b := sockets(t, k)
	for i := range byte(3) {
		put(t, a, b, []byte{i + 1})
	}
	require.Equal(t, []byte{2}, get(t, b))
	require.Equal(t, []byte{3}, get(t, b))
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{Down: true}))
	put(t, a, b, []byte{4})
	await.Until(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Down] == 1 },
		"the packet to be dropped")
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{}))
	put(t, a, b, []byte{5})
	require.Equal(t, []byte{5}, get(t, b))
	require.EqualValues(t, 1, k.Counters(netlab.Forth).Dropped[netlab.Picked])
}

// A late packet is overtaken by another one, which is duplicated. path_test.go tests its arrival in virtual time.
func TestReorderedAndDoubled(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{Reorder: 1, Late: time.Hour}})
	a, b := sockets(t, k)
	put(t, a, b, []byte{1})
	await.Until(t, func() bool { return k.Counters(netlab.Forth).Held == 1 }, "a packet that is late")
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{Duplicate: 1}))
	put(t, a, b, []byte{2})
	require.Equal(t, []byte{2, 2}, []byte{get(t, b)[0], get(t, b)[0]})
	c := k.Counters(netlab.Forth)
	require.EqualValues(t, 1, c.Held)
	require.EqualValues(t, 1, c.Reordered)
	require.EqualValues(t, 1, c.Duplicated)
}

// When the MTU of a path decreases, the kernel learns it from the link's ICMP message and fragments later
// packets. The first packet is lost, the second one arrives.
func TestPathNarrows(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{MTU: 1300}})
	for _, pair := range [][2]*net.UDPConn{
		{listen(t, k.A.IPv4, k.A.Host), listen(t, k.B.IPv4, k.B.Host)},
		{listen(t, k.A.IPv6, k.A.Host), listen(t, k.B.IPv6, k.B.Host)},
	} {
		a, b := pair[0], pair[1]
		lost := k.Counters(netlab.Forth).Dropped[netlab.TooLarge]
		put(t, a, b, make([]byte, 1400))
		await.Until(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.TooLarge] == lost+1 },
			"the packet to be dropped")
		whole := slices.Repeat([]byte{7}, 1400)
		put(t, a, b, whole)
		require.Equal(t, whole, get(t, b))
		require.Equal(t, lost+1, k.Counters(netlab.Forth).Dropped[netlab.TooLarge])
	}
}

func TestInterfaceThatIsDown(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{})
	a, b := sockets(t, k)
	require.NoError(t, k.B.Cut())
	put(t, a, b, []byte{1})
	await.Until(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Refused] == 1 },
		"the packet to be refused")
	require.NoError(t, k.B.Restore())
	put(t, a, b, []byte{2})
	require.Equal(t, []byte{2}, get(t, b))
}

func TestSysctl(t *testing.T) {
	lab := netlab.New(t)
	a, b := lab.Host("a"), lab.Host("b")
	require.NoError(t, a.Sysctl("net.ipv4.tcp_sack", "0"))
	require.NoError(t, b.Sysctl("net.ipv4.tcp_sack", "1"))
	require.Error(t, a.Sysctl("net.ipv4.there_is_no_such_thing", "1"))
}
