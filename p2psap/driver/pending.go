package driver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Pending bounds the accepted connections that have not authenticated yet. Authentication takes milliseconds, so
// beyond the bound an old connection is closed to make room: silent connections keep no peer out, however many there
// are. Pending may be used from any goroutine.
type Pending struct {
	limit int

	mu    sync.Mutex
	conns []pendingConn // oldest first
}

type pendingConn struct {
	conn   net.Conn
	source netip.Prefix // see sourceOf
}

// NewPending returns an empty Pending of at most limit connections.
func NewPending(limit int) *Pending { return &Pending{limit: limit} }

// Add adds c. Beyond the bound it closes the oldest connection of the source that has the most, so that one host
// cannot displace the connections of others. It reports whether it closed one.
func (p *Pending) Add(c net.Conn) (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, pendingConn{c, sourceOf(c.RemoteAddr())})
	if len(p.conns) <= p.limit {
		return false
	}
	count := map[netip.Prefix]int{}
	most := 0
	for _, o := range p.conns {
		count[o.source]++
		most = max(most, count[o.source])
	}
	i := slices.IndexFunc(p.conns, func(o pendingConn) bool { return count[o.source] == most })
	_ = p.conns[i].conn.Close()
	p.conns = slices.Delete(p.conns, i, i+1)
	return true
}

// Remove removes c once it has authenticated or failed to. It reports false for a connection that Add has closed.
func (p *Pending) Remove(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.conns, func(o pendingConn) bool { return o.conn == c })
	if i >= 0 {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
	return i >= 0
}

// sourceOf returns the range from which one host can choose its address: an IPv4 address, or the network of 64 bits
// of an IPv6 address. Addresses that are not IP have one source.
func sourceOf(a net.Addr) netip.Prefix {
	ip := addressOf(a)
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	source, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no IP address
	}
	return source
}
