package ether

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/p2pdc/p2pdc/microproto"
)

// Offer returns this end's addresses, which are the same for every peer.
func (l *Link) Offer(string) ([]byte, error) {
	cs, err := l.candidates()
	if err != nil {
		return nil, err
	}
	o := offer{host: l.host, candidates: cs}
	return o.append(nil), nil
}

// Accept chooses one of the addresses in the other end's offer to send to. From then on the
// link receives frames from any of them.
func (l *Link) Accept(remote []byte) (microproto.LinkAddr, error) {
	o, err := decodeOffer(remote)
	if err != nil {
		return 0, err
	}
	chosen, mtu, err := l.chooseCandidate(o)
	if err != nil {
		return 0, err
	}
	scope, err := scopeOf(chosen.addr.Addr())
	if err != nil {
		return 0, err
	}
	sources := []source{sourceOf(chosen.addr, scope)}
	for _, c := range o.candidates {
		if ip := c.addr.Addr(); (!ip.IsLoopback() || l.sameHost(o.host)) && !ip.IsLinkLocalUnicast() {
			sources = append(sources, sourceOf(c.addr, 0))
		}
	}
	p := &peer{to: chosen.addr, sockaddr: sockaddrOf(chosen.addr, scope, l.inet4)}
	p.gso.Store(true)

	l.mu.Lock()
	defer l.mu.Unlock()
	next, addr, err := l.peers.Load().withPeer(p, sources)
	if err != nil {
		return 0, err
	}
	l.peers.Store(next)
	if frame := int64(frameBytes(mtu, !l.inet4)); l.config.MTU == 0 && frame < l.frameSize.Load() {
		l.log("the MTU of the route to %s is %d bytes: the largest frame is now %d bytes", chosen.addr, mtu, frame)
		l.frameSize.Store(frame)
	}
	return addr, nil
}

func scopeOf(ip netip.Addr) (uint32, error) {
	if ip.Zone() == "" {
		return 0, nil
	}
	if i, err := net.InterfaceByName(ip.Zone()); err == nil {
		return uint32(i.Index), nil
	}
	n, err := strconv.ParseUint(ip.Zone(), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("ether: the interface %q of address %s does not exist on this host", ip.Zone(), ip)
	}
	return uint32(n), nil
}
