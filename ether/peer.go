package ether

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// maxPeers bounds the number of accepted peers.
const maxPeers = 1 << 16

// peer is an accepted remote end.
type peer struct {
	key    uint64        // of its offer
	routes []destination // the one to begin with first; more than one where several cables lead to it
	used   atomic.Pointer[destination]
	gso    atomic.Bool
}

func newPeer(key uint64, routes []destination) *peer {
	p := &peer{key: key, routes: routes}
	p.used.Store(&routes[0])
	p.gso.Store(true)
	return p
}

// with returns the peer with further routes. Those that it has stay: their interfaces may be down at present.
func (p *peer) with(routes []destination) *peer {
	all := slices.Clone(p.routes)
	for _, d := range routes {
		if !slices.ContainsFunc(all, d.same) && len(all) < maxCandidates {
			all = append(all, d)
		}
	}
	if len(all) == len(p.routes) {
		return p
	}
	out := newPeer(p.key, all)
	out.gso.Store(p.gso.Load())
	return out
}

// destination is an address of a peer, with the interfaces at both ends of the way to it.
type destination struct {
	to       netip.AddrPort
	scope    uint32
	sockaddr sockaddr // the same, in the layout of system calls
	mtu      int
	local    net.Interface
	from     netip.Addr // of this end
	remote   uint8      // number of the interface in the peer's offer
}

// sameCable reports whether two destinations are behind the same interfaces.
func (d destination) sameCable(o destination) bool {
	return d.local.Index == o.local.Index && d.remote == o.remote
}

// same reports whether two destinations are the same.
func (d destination) same(o destination) bool { return d.to == o.to }

// carrier returns 1 if the interface had a carrier when the peer was accepted, else 0.
func (d destination) carrier() int { return int(d.local.Flags&net.FlagRunning) / int(net.FlagRunning) }

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
// A peer that is known under one of them by the same key, or under the first by another one, keeps its link address.
// With the same key it also gets the routes of p. With another one it may be another peer, and must not get the frames of the
// first at further addresses of its choice: it gets no further routes.
func (r *peerTable) withPeer(p *peer, sources []source) (*peerTable, microproto.LinkAddr, error) {
	addr, known := r.bySource[sources[0]]
	for _, s := range sources {
		if a := r.bySource[s]; a != 0 && r.peer(a).key == p.key {
			addr, known = a, true
		}
	}
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
	switch {
	case !known:
		next.peers = append(next.peers, p)
	case r.peer(addr).key == p.key:
		next.peers[addr-1] = r.peer(addr).with(p.routes)
	}
	for _, s := range sources {
		if _, taken := next.bySource[s]; !taken {
			next.bySource[s] = addr
		}
	}
	return next, addr, nil
}
