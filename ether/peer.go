package ether

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// maxPeers bounds the number of accepted peers.
const maxPeers = 1 << 16

// peer is an accepted remote end.
type peer struct {
	to       netip.AddrPort
	sockaddr sockaddr // the same, in the layout of system calls
	gso      atomic.Bool
}

// source is the address of a datagram's sender. ip is IPv4-mapped where it is IPv4. scope is
// the interface of a link-local address, else 0.
type source struct {
	ip    [16]byte
	port  uint16
	scope uint32
}

func sourceOf(a netip.AddrPort, scope uint32) source {
	return source{ip: a.Addr().As16(), port: a.Port(), scope: scope}
}

// peerTable is an immutable table of peers; Accept replaces the whole table.
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

// withPeer returns a table that also contains peer p, whose frames come from any of sources.
// A peer that is known under the first of them already keeps its link address.
func (r *peerTable) withPeer(p *peer, sources []source) (*peerTable, microproto.LinkAddr, error) {
	addr, known := r.bySource[sources[0]]
	if !known {
		if len(r.peers) >= maxPeers {
			return nil, 0, fmt.Errorf("ether: too many peers: the limit is %d", maxPeers)
		}
		addr = microproto.LinkAddr(len(r.peers) + 1)
	}
	next := &peerTable{
		peers:    slices.Clone(r.peers),
		bySource: make(map[source]microproto.LinkAddr, len(r.bySource)+len(sources)),
	}
	maps.Copy(next.bySource, r.bySource)
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
