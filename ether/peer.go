package ether

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// maxPeers bounds the table of accepted ends.
const maxPeers = 1 << 16

// peer is an accepted remote end.
type peer struct {
	to   netip.AddrPort
	name sockaddr // the same, as system calls want it
	gso  atomic.Bool
}

// source identifies where a datagram came from. IPv4 is mapped; scope is the
// interface of a link-local address, else 0.
type source struct {
	ip    [16]byte
	port  uint16
	scope uint32
}

func sourceOf(a netip.AddrPort, scope uint32) source {
	return source{ip: a.Addr().As16(), port: a.Port(), scope: scope}
}

// roster is an immutable table of peers; Accept replaces it whole.
type roster struct {
	peers []*peer // by LinkAddr − 1
	from  map[source]microproto.LinkAddr
}

func (r *roster) peer(a microproto.LinkAddr) *peer {
	if a == 0 || int(a) > len(r.peers) {
		return nil
	}
	return r.peers[a-1]
}

// with returns a roster in which the other end at c may be sent to, and frames
// from any of its sources are its own. An end already known under c keeps its
// address.
func (r *roster) with(p *peer, c source, sources []source) (*roster, microproto.LinkAddr, error) {
	addr, known := r.from[c]
	if !known {
		if len(r.peers) >= maxPeers {
			return nil, 0, fmt.Errorf("ether: more than %d peers", maxPeers)
		}
		addr = microproto.LinkAddr(len(r.peers) + 1)
	}
	next := &roster{
		peers: append([]*peer(nil), r.peers...),
		from:  make(map[source]microproto.LinkAddr, len(r.from)+len(sources)),
	}
	for s, a := range r.from {
		next.from[s] = a
	}
	if !known {
		next.peers = append(next.peers, p)
	}
	for _, s := range sources {
		if _, taken := next.from[s]; !taken {
			next.from[s] = addr
		}
	}
	return next, addr, nil
}
