package ether

import (
	"fmt"
	"net"
	"net/netip"
)

// frameBytes is the largest frame of an MTU in a family.
func frameBytes(mtu int, ip6 bool) int {
	if ip6 {
		return mtu - ip6Header - udpHeader
	}
	return mtu - ip4Header - udpHeader
}

func clampMTU(mtu int) int { return max(MinMTU, min(mtu, MaxMTU)) }

// interfaceMTU is the least MTU of the interfaces through which the bound address
// ip is reached from outside: loopback counts only when there is nothing else.
func interfaceMTU(ip netip.Addr) (int, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0, fmt.Errorf("ether: interfaces of this host: %w", err)
	}
	least, loopback := 0, 0
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		has := false
		for _, p := range prefixes(i) {
			has = has || ip.IsUnspecified() || p.Addr() == ip.WithZone("") ||
				i.Flags&net.FlagLoopback != 0 && ip.IsLoopback()
		}
		switch {
		case !has:
		case i.Flags&net.FlagLoopback != 0:
			loopback = i.MTU
		case least == 0 || i.MTU < least:
			least = i.MTU
		}
	}
	if least == 0 {
		least = loopback
	}
	if least == 0 {
		return 0, fmt.Errorf("ether: no interface that is up has the address %s", ip)
	}
	return clampMTU(least), nil
}

// routeMTU finds out whether a route leads from own to the address, and its MTU;
// nothing is sent.
func routeMTU(own netip.Addr, to netip.AddrPort) (int, error) {
	d := net.Dialer{}
	if !own.IsUnspecified() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
	}
	conn, err := d.Dial("udp", to.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	udp := conn.(*net.UDPConn)
	if mtu := pathMTU(udp, to.Addr().Is6()); mtu > 0 {
		return clampMTU(mtu), nil
	}
	from := udp.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return interfaceMTU(from)
}
