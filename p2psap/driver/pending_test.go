package driver

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// addressed is a connection from an address that counts how often it was closed.
type addressed struct {
	net.Conn
	from   netip.AddrPort
	closed int
}

func (c *addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(c.from)
}

func (c *addressed) Close() error {
	c.closed++
	return nil
}

func TestPendingClosesTheOldestOfTheBusiestSource(t *testing.T) {
	for name, c := range map[string]struct {
		from   []string
		closed []int // indices, of a bound of 3
	}{
		"one address":      {[]string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, []int{0, 1}},
		"a peer beside":    {[]string{"192.0.2.9", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, []int{1, 2}},
		"one IPv6 network": {[]string{"2001:db8::9", "2001:db8:1::1", "2001:db8:1::2", "2001:db8:1::3"}, []int{1}},
		"mapped":           {[]string{"192.0.2.9", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"}, []int{1}},
		"all different":    {[]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPending(3)
			var all []*addressed
			for i, from := range c.from {
				all = append(all, &addressed{from: netip.AddrPortFrom(netip.MustParseAddr(from), uint16(1+i))})
				p.Add(all[len(all)-1])
			}
			var closed []int
			for i, conn := range all {
				if conn.closed > 0 {
					closed = append(closed, i)
				}
				require.Equal(t, conn.closed == 0, p.Remove(conn))
			}
			require.Equal(t, c.closed, closed)
			require.Zero(t, p.Len())
		})
	}
}

// A connection is displaced only by one of its own source while another source has more, the bound holds, and
// no connection is closed twice.
func TestPendingIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 8).Draw(t, "limit")
		p := NewPending(limit)
		honest := &addressed{from: netip.MustParseAddrPort("192.0.2.99:1")}
		p.Add(honest)
		for i := range rapid.IntRange(0, 60).Draw(t, "strangers") {
			host := rapid.IntRange(1, max(1, limit/2)).Draw(t, "host")
			c := &addressed{from: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(host)}), uint16(1000+i))}
			before := p.Len()
			if p.Add(c) != (before == limit) {
				t.Fatalf("closed one of %d connections, bound %d", before, limit)
			}
			if p.Len() > limit || c.closed > 1 {
				t.Fatalf("%d connections, bound %d", p.Len(), limit)
			}
		}
		// With fewer hosts than places, some host always has two connections.
		if limit/2+1 < limit && honest.closed > 0 {
			t.Fatal("hosts with many connections displaced one that had a single connection")
		}
	})
}

// Len returns how many connections have not authenticated yet.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
