package host

import (
	"net"
	"net/netip"
)

// Interface is a network interface that is up.
type Interface struct {
	Name      string         `json:"name"`
	MTU       int            `json:"mtu"` // bytes
	Loopback  bool           `json:"loopback"`
	Addresses []netip.Prefix `json:"addresses"` // each with the prefix of its network
}

// Interfaces returns the network interfaces that are up and have an address.
func Interfaces() []Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []Interface
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		f := Interface{Name: i.Name, MTU: i.MTU, Loopback: i.Flags&net.FlagLoopback != 0}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				f.Addresses = append(f.Addresses, p)
			}
		}
		if len(f.Addresses) > 0 {
			out = append(out, f)
		}
	}
	return out
}
