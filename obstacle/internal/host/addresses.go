package host

import (
	"net"
	"net/netip"
	"slices"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// MaxAddresses bounds the addresses of one server that are shown and dialled.
const MaxAddresses = 8

// Addresses returns the HOST:PORT at which other hosts reach a server of this host that listens at an address, the likeliest
// first: those that a name resolves to, then those of IPv4. A host without network has that of the loopback interface.
func Addresses(listens, name string) []string {
	at, err := netip.ParseAddrPort(listens)
	if err != nil || !at.Addr().IsUnspecified() {
		return []string{listens}
	}
	all := driver.Addresses("")
	if at.Addr().Is4() {
		all = slices.DeleteFunc(all, netip.Addr.Is6)
	}
	return dialled(all, at.Port(), func() []string {
		named, _ := net.LookupHost(name) // nil if it does not resolve
		return named
	})
}

// dialled orders the addresses of a host for those who dial a port.
func dialled(all []netip.Addr, port uint16, named func() []string) []string {
	if len(all) == 0 {
		return []string{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()}
	}
	first := named()
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		rank := func(ip netip.Addr) int {
			switch {
			case slices.Contains(first, ip.String()):
				return 0
			case ip.Is4():
				return 1
			}
			return 2
		}
		return rank(a) - rank(b)
	})
	var out []string
	for _, ip := range all[:min(len(all), MaxAddresses)] {
		out = append(out, netip.AddrPortFrom(ip, port).String())
	}
	return out
}
