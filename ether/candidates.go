package ether

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// candidates lists the addresses at which the link can be reached: the one it is
// bound to, or those of every interface that is up, loopback last.
func (l *Link) candidates() ([]candidate, error) {
	port := l.local.Port()
	if ip := l.local.Addr(); !ip.IsUnspecified() {
		return []candidate{{netip.AddrPortFrom(ip.WithZone(""), port), ip.BitLen()}}, nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("ether: interfaces of this host: %w", err)
	}
	var outer, loopback []candidate
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, p := range prefixes(i) {
			ip := p.Addr()
			// A link-local address means nothing without its interface.
			if ip.IsLinkLocalUnicast() || !l.supports(ip) {
				continue
			}
			c := candidate{netip.AddrPortFrom(ip, port), p.Bits()}
			if ip.IsLoopback() {
				loopback = append(loopback, c)
			} else {
				outer = append(outer, c)
			}
		}
	}
	all := append(outer, loopback...)
	if len(all) == 0 {
		return nil, fmt.Errorf("ether: no interface of this host is up with an address that %s serves", l.local)
	}
	return all[:min(len(all), maxCandidates)], nil
}

func prefixes(i net.Interface) []netip.Prefix {
	addrs, err := i.Addrs()
	if err != nil {
		return nil // the interface went away
	}
	var ps []netip.Prefix
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		ones, _ := n.Mask.Size()
		ps = append(ps, netip.PrefixFrom(ip.Unmap(), ones))
	}
	return ps
}

// speaks tells whether the socket can send to that family.
func (l *Link) supports(ip netip.Addr) bool {
	if l.inet4 {
		return ip.Is4()
	}
	return ip.Is6() || l.local.Addr().IsUnspecified()
}

// choose picks the candidate to send to: over loopback on one host, else one in a
// network that this host is in, else any that a route leads to; in the order
// offered. route is what the route's own MTU and error are.
func (l *Link) chooseCandidate(o offer) (candidate, int, error) {
	const classes = 3
	var byClass [classes][]candidate
	var refused []string
	for _, c := range o.candidates {
		class, why := l.rank(c, o.host)
		if why != "" {
			refused = append(refused, fmt.Sprintf("%s: %s", c.addr, why))
			continue
		}
		byClass[class] = append(byClass[class], c)
	}
	for _, cs := range byClass {
		for _, c := range cs {
			if ip := c.addr.Addr(); ip.IsLinkLocalUnicast() {
				c.addr = netip.AddrPortFrom(ip.WithZone(l.local.Addr().Zone()), c.addr.Port())
			}
			mtu, err := routeMTU(l.local.Addr(), c.addr)
			if err == nil {
				return c, mtu, nil
			}
			refused = append(refused, fmt.Sprintf("%s: %v", c.addr, err))
		}
	}
	return candidate{}, 0, fmt.Errorf("ether: no way from %s to the other end: %s (have both listen on addresses of one network with --listen)",
		l.local, strings.Join(refused, "; "))
}

// class ranks a candidate, 0 the best, or says why it cannot be used.
func (l *Link) rank(c candidate, host uint64) (class int, why string) {
	ip, own := c.addr.Addr(), l.local.Addr()
	sameHost := host == l.host || host == 0 || l.host == 0
	switch {
	case !l.supports(ip):
		return 0, fmt.Sprintf("this end speaks %s only", l.family())
	case ip.IsLoopback() && !sameHost:
		return 0, "a loopback address of another host"
	case own.IsLoopback() && !sameHost:
		return 0, "this end listens on loopback only, the other is on another host"
	case ip.IsLoopback() && !own.IsLoopback() && !own.IsUnspecified():
		return 0, "a loopback address, and this end does not listen on loopback"
	case ip.IsLinkLocalUnicast() && ip.Is6() && own.Zone() == "":
		return 0, "a link-local address, and this end does not listen on one"
	case ip.IsLoopback():
		return 0, ""
	case l.onLocalNetwork(ip):
		return 1, ""
	}
	return 2, ""
}

func (l *Link) family() string {
	if l.inet4 {
		return "IPv4"
	}
	return "IPv6"
}

// neighbourhood tells whether ip is in the network of one of this host's addresses.
func (l *Link) onLocalNetwork(ip netip.Addr) bool {
	interfaces, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range interfaces {
		for _, p := range prefixes(i) {
			if i.Flags&net.FlagUp != 0 && p.Masked().Contains(ip.WithZone("")) {
				return true
			}
		}
	}
	return false
}
