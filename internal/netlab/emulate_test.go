//go:build linux

package netlab_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// sockets are two that are joined by the link.
func sockets(t *testing.T, k *netlab.Link) (a, b *net.UDPConn) {
	t.Helper()
	return listen(t, k.A.IPv4, k.A.Host), listen(t, k.B.IPv4, k.B.Host)
}

func put(t *testing.T, from, to *net.UDPConn, data []byte) {
	t.Helper()
	_, err := from.WriteToUDPAddrPort(data, port(to))
	require.NoError(t, err)
}

// get waits for a datagram.
func get(t *testing.T, c *net.UDPConn) []byte {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
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

func TestEmulatedDelay(t *testing.T) {
	const delay = 3 * time.Millisecond
	k := twoHosts(t, netlab.Emulation{Both: &netlab.Conditions{Delay: delay}})
	a, b := sockets(t, k)
	// The best of some: a busy machine is late now and then.
	best := time.Hour
	for i := range byte(50) {
		begin := time.Now()
		put(t, a, b, []byte{i})
		require.Equal(t, []byte{i}, get(t, b))
		put(t, b, a, []byte{i})
		get(t, a)
		took := time.Since(begin)
		require.GreaterOrEqual(t, took, 2*delay)
		best = min(best, took)
	}
	require.Less(t, best, 2*delay+time.Millisecond)
	for _, d := range []netlab.Direction{netlab.Forth, netlab.Back} {
		require.EqualValues(t, 50, k.Counters(d).Forwarded, "and nothing else goes over the link")
	}
}

func TestEmulatedLinkCarriesBothFamilies(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{MTU: 9000})
	a, b := listen(t, k.A.IPv6, k.A.Host), listen(t, k.B.IPv6, k.B.Host)
	put(t, a, b, make([]byte, 8000))
	require.NoError(t, b.SetReadDeadline(time.Now().Add(10*time.Second)))
	n, err := b.Read(make([]byte, 9000))
	require.NoError(t, err, "%+v", k.Counters(netlab.Forth))
	require.Equal(t, 8000, n)
	require.EqualValues(t, 1, k.Counters(netlab.Forth).Forwarded, "in one packet")
}

func TestEmulatedRate(t *testing.T) {
	const rate, size, count = 250_000, 972, 60 // 0.24 s
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{Rate: rate, QueueBytes: 40_000}})
	a, b := sockets(t, k)
	begin := time.Now()
	for range count {
		put(t, a, b, make([]byte, size))
	}
	for range 40 {
		get(t, b)
	}
	took := time.Since(begin)
	require.Greater(t, took.Seconds(), 39.*1000/rate)
	require.Less(t, took, 5*time.Second, "much slower than the rate")
	get(t, b) // the one that was sent while 40 waited
	counters := k.Counters(netlab.Forth)
	require.Equal(t, 40_000, counters.PeakQueueBytes)
	require.LessOrEqual(t, counters.Dropped[netlab.QueueFull], uint64(count-41))
	require.Positive(t, counters.Dropped[netlab.QueueFull])
}

func TestEmulatedLoss(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Seed: 3, Forth: netlab.Conditions{Loss: 0.5}})
	a, b := sockets(t, k)
	const count = 200 // what a socket holds, if nobody reads meanwhile
	for range count {
		put(t, a, b, []byte{1})
	}
	require.Eventually(t, func() bool { return k.Counters(netlab.Forth).In == count }, 5*time.Second, time.Millisecond)
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
		protocol, payload := netlab.Protocol(ip)
		if protocol != 17 || first {
			return false
		}
		first = true
		return payload[8] == 1
	}}})
	a, b := sockets(t, k)
	for i := range byte(3) {
		put(t, a, b, []byte{i + 1})
	}
	require.Equal(t, []byte{2}, get(t, b))
	require.Equal(t, []byte{3}, get(t, b))
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{Down: true}))
	put(t, a, b, []byte{4})
	require.Eventually(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Down] == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{}))
	put(t, a, b, []byte{5})
	require.Equal(t, []byte{5}, get(t, b))
	require.EqualValues(t, 1, k.Counters(netlab.Forth).Dropped[netlab.Picked])
}

func TestReorderedAndDoubled(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{Reorder: 1, Late: 100 * time.Millisecond}})
	a, b := sockets(t, k)
	put(t, a, b, []byte{1})
	require.Eventually(t, func() bool { return k.Counters(netlab.Forth).Held == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, k.Change(netlab.Forth, netlab.Conditions{Duplicate: 1}))
	put(t, a, b, []byte{2})
	got := []byte{get(t, b)[0], get(t, b)[0], get(t, b)[0]}
	require.Equal(t, []byte{2, 2, 1}, got)
}

// A path that narrows: the kernel learns it from the link's answer and cuts what it
// sends from then on. Nothing arrives of the first packet, all of the second.
func TestPathNarrows(t *testing.T) {
	k := twoHosts(t, netlab.Emulation{Forth: netlab.Conditions{MTU: 1300}})
	for _, pair := range [][2]*net.UDPConn{
		{listen(t, k.A.IPv4, k.A.Host), listen(t, k.B.IPv4, k.B.Host)},
		{listen(t, k.A.IPv6, k.A.Host), listen(t, k.B.IPv6, k.B.Host)},
	} {
		a, b := pair[0], pair[1]
		lost := k.Counters(netlab.Forth).Dropped[netlab.TooLarge]
		put(t, a, b, make([]byte, 1400))
		require.Eventually(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.TooLarge] == lost+1 }, 5*time.Second, time.Millisecond)
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
	require.Eventually(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Refused] == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, k.B.Mend())
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
