package ether

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// frameBytes returns the size of the largest frame for an MTU and an IP version.
func frameBytes(mtu int, ip6 bool) int {
	if ip6 {
		return mtu - ip6Header - udpHeader
	}
	return mtu - ip4Header - udpHeader
}

func clampMTU(mtu int) int { return max(MinMTU, min(mtu, MaxMTU)) }

// ErrInterfaceDown is the error of Open if the interface of the address is down.
var ErrInterfaceDown = errors.New("ether: no interface that is up has the address")

// interfaceMTU returns the smallest MTU of the interfaces that have the bound address ip.
// Loopback counts only if there is no other.
func interfaceMTU(ip netip.Addr) (int, error) {
	smallest, loopback := 0, 0
	err := eachAddress(func(i net.Interface, p netip.Prefix) {
		isLoopback := i.Flags&net.FlagLoopback != 0
		switch {
		case !ip.IsUnspecified() && p.Addr() != ip.WithZone("") && !(isLoopback && ip.IsLoopback()):
		case isLoopback:
			loopback = i.MTU
		case smallest == 0 || i.MTU < smallest:
			smallest = i.MTU
		}
	})
	if smallest == 0 {
		smallest = loopback
	}
	if err == nil && smallest == 0 {
		err = fmt.Errorf("%w %s", ErrInterfaceDown, ip)
	}
	return clampMTU(smallest), err
}

// routeTo returns the MTU, the interface and the source address of the route from own to an address, or an error if there is no
// route. It sends nothing.
func routeTo(own netip.Addr, to netip.AddrPort) (mtu int, through net.Interface, from netip.Addr, err error) {
	d := net.Dialer{}
	if !own.IsUnspecified() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
	}
	conn, err := d.Dial("udp", to.String())
	if err != nil {
		return 0, through, from, err
	}
	defer conn.Close()
	udp := conn.(*net.UDPConn)
	from = udp.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	err = eachAddress(func(i net.Interface, p netip.Prefix) {
		if p.Addr() == from {
			through = i
		}
	})
	if mtu = pathMTU(udp, to.Addr().Is6()); mtu > 0 || err != nil {
		return clampMTU(mtu), through, from, err
	}
	mtu, err = interfaceMTU(from)
	return mtu, through, from, err
}
