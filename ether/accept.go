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
	o := offer{host: l.host, key: l.key, candidates: cs}
	return o.append(nil), nil
}

// Accept chooses one of the addresses in the other end's offer to send to. From then on the
// link receives frames from any of them. Where several cables lead to the other end, the link probes all, and sends over
// another one when the first fails; see Watch.
func (l *Link) Accept(remote []byte) (microproto.LinkAddr, error) {
	o, err := decodeOffer(remote)
	if err != nil {
		return 0, err
	}
	routes, err := l.routesTo(o)
	if err != nil {
		return 0, err
	}
	sources := []source{sourceOf(routes[0].to, routes[0].scope)}
	for _, c := range o.candidates {
		if ip := c.addr.Addr(); (!ip.IsLoopback() || l.sameHost(o.host)) && !ip.IsLinkLocalUnicast() {
			sources = append(sources, sourceOf(c.addr, 0))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next, addr, err := l.peers.Load().withPeer(newPeer(o.key, routes), sources)
	if err != nil {
		return 0, err
	}
	l.peers.Store(next)
	// On another route of a smaller MTU the kernel fragments.
	if d := &routes[0]; l.config.MTU == 0 && int64(frameBytes(d.mtu, !l.inet4)) < l.frameSize.Load() {
		frame := frameBytes(d.mtu, !l.inet4)
		l.log("the MTU of the route to %s is %d bytes: the largest frame is now %d bytes", d.to, d.mtu, frame)
		l.frameSize.Store(int64(frame))
	}
	l.cables.follow(addr, next.peer(addr))
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
