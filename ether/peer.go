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
	to       netip.AddrPort
	sockaddr sockaddr // the same, as system calls want it
	gso      atomic.Bool
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
type peerTable struct {
	peers    []*peer // by LinkAddr − 1
	bySource map[source]microproto.LinkAddr
}

func (r *peerTable) peer(a microproto.LinkAddr) *peer {
	if a == 0 || int(a) > len(r.peers) {
		return nil
	}
	return r.peers[a-1]
}

// with returns a roster in which the other end at c may be sent to, and frames
// from any of its sources are its own. An end already known under c keeps its
// address.
func (r *peerTable) withPeer(p *peer, c source, sources []source) (*peerTable, microproto.LinkAddr, error) {
	addr, known := r.bySource[c]
	if !known {
		if len(r.peers) >= maxPeers {
			return nil, 0, fmt.Errorf("ether: more than %d peers", maxPeers)
		}
		addr = microproto.LinkAddr(len(r.peers) + 1)
	}
	next := &peerTable{
		peers:    append([]*peer(nil), r.peers...),
		bySource: make(map[source]microproto.LinkAddr, len(r.bySource)+len(sources)),
	}
	for s, a := range r.bySource {
		next.bySource[s] = a
	}
	if !known {
		next.peers = append(next.peers, p)
	}
	for _, s := range sources {
		if _, taken := next.bySource[s]; !taken {
			next.bySource[s] = addr
		}
	}
	return next, addr, nil
}
