package ether

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// eachAddress calls f for every address of the interfaces that are up.
func eachAddress(f func(i net.Interface, p netip.Prefix)) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("ether: cannot list the interfaces of this host: %w", err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := i.Addrs() // an error means that the interface was removed
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				ones, _ := n.Mask.Size()
				f(i, netip.PrefixFrom(ip.Unmap(), ones))
			}
		}
	}
	return nil
}

// candidates returns the addresses at which the link can be reached: the bound address, or
// those of every interface that is up, loopback last.
func (l *Link) candidates() ([]candidate, error) {
	port := l.local.Port()
	if ip := l.local.Addr(); !ip.IsUnspecified() {
		return []candidate{{addr: netip.AddrPortFrom(ip.WithZone(""), port), bits: ip.BitLen()}}, nil
	}
	var outer, loopback []candidate
	err := eachAddress(func(i net.Interface, p netip.Prefix) {
		ip := p.Addr()
		c := candidate{netip.AddrPortFrom(ip, port), p.Bits(), uint8(i.Index)}
		switch {
		case ip.IsLinkLocalUnicast() || !l.supports(ip): // link-local: meaningless without its interface
		case ip.IsLoopback():
			loopback = append(loopback, c)
		default:
			outer = append(outer, c)
		}
	})
	if err != nil {
		return nil, err
	}
	all := append(outer, loopback...)
	if len(all) == 0 {
		return nil, fmt.Errorf("ether: no interface of this host is up with an address that %s serves", l.local)
	}
	return all[:min(len(all), maxCandidates)], nil
}

// supports reports whether the socket can send to the family of ip.
func (l *Link) supports(ip netip.Addr) bool {
	if l.inet4 {
		return ip.Is4()
	}
	return ip.Is6() || l.local.Addr().IsUnspecified()
}

// routesTo returns the destinations to send to, the one to begin with first. It prefers loopback on the same host, then
// a network of this host, then any candidate with a route; of these, interfaces with a carrier, each in the order
// offered. Of destinations behind one interface at both ends, which are one cable, it returns the first.
func (l *Link) routesTo(o offer) ([]destination, error) {
	const ranks = 3
	var byRank [ranks][]candidate
	var refused []string
	for _, c := range o.candidates {
		rank, reason := l.rank(c, o.host)
		if reason != "" {
			refused = append(refused, fmt.Sprintf("%s: %s", c.addr, reason))
			continue
		}
		byRank[rank] = append(byRank[rank], c)
	}
	var out []destination
	for rank, cs := range byRank {
		first := len(out)
		for _, c := range cs {
			d, err := l.destinationOf(c)
			if err != nil {
				refused = append(refused, fmt.Sprintf("%s: %v", c.addr, err))
				continue
			}
			if !slices.ContainsFunc(out, d.sameCable) {
				out = append(out, d)
			}
			if rank == 0 {
				return out, nil
			}
		}
		slices.SortStableFunc(out[first:], func(a, b destination) int { return cmp.Compare(b.carrier(), a.carrier()) })
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("ether: no path from %s to the other end: %s "+
			"(let both ends listen on addresses of one network with --listen)", l.local, strings.Join(refused, "; "))
	}
	return out, nil
}

// destinationOf returns the destination of a candidate to which there is a route.
func (l *Link) destinationOf(c candidate) (d destination, err error) {
	if ip := c.addr.Addr(); ip.IsLinkLocalUnicast() {
		c.addr = netip.AddrPortFrom(ip.WithZone(l.local.Addr().Zone()), c.addr.Port())
	}
	d = destination{to: c.addr, remote: c.interfaceNumber}
	if d.mtu, d.local, d.from, err = routeTo(l.local.Addr(), c.addr); err != nil {
		return d, err
	}
	if d.scope, err = scopeOf(c.addr.Addr()); err != nil {
		return d, err
	}
	d.sockaddr = sockaddrOf(c.addr, d.scope, l.inet4)
	return d, nil
}

// rank returns a candidate's rank, 0 the best, or the reason why it cannot be used.
func (l *Link) rank(c candidate, host uint64) (rank int, reason string) {
	ip, own := c.addr.Addr(), l.local.Addr()
	sameHost := l.sameHost(host)
	isOwn, near := placeOf(ip)
	switch {
	case !l.supports(ip):
		return 0, fmt.Sprintf("this end supports %s only", l.family())
	case ip.IsLoopback() && !sameHost:
		return 0, "a loopback address of another host"
	case own.IsLoopback() && !sameHost:
		return 0, "this end listens on loopback only, and the other end is on another host"
	case ip.IsLoopback() && !own.IsLoopback() && !own.IsUnspecified():
		return 0, "a loopback address, and this end does not listen on loopback"
	case ip.IsLinkLocalUnicast() && ip.Is6() && own.Zone() == "":
		return 0, "a link-local address, and this end does not listen on one"
	case ip.IsLoopback():
		return 0, ""
	case isOwn && !sameHost: // of a bridge that both hosts have, for example
		return 0, "an address of this host, and the other end is on another"
	case near:
		return 1, ""
	}
	return 2, ""
}

// sameHost reports whether an end with that host ID may share this end's loopback interface.
func (l *Link) sameHost(host uint64) bool { return host == l.host || host == 0 || l.host == 0 }

func (l *Link) family() string {
	if l.inet4 {
		return "IPv4"
	}
	return "IPv6"
}

// placeOf reports whether ip is an address of this host, and whether it is in a network of this host.
func placeOf(ip netip.Addr) (own, near bool) {
	_ = eachAddress(func(_ net.Interface, p netip.Prefix) {
		own = own || p.Addr() == ip.WithZone("")
		near = near || p.Masked().Contains(ip.WithZone(""))
	})
	return own, near
}
