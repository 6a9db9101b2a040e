package ether

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Bounds of Config.MTU: the IPv6 minimum (RFC 8200 §5) and the largest IP packet.
const (
	MinMTU = 1280
	MaxMTU = 65535
)

// Defaults of Config, in bytes.
const (
	defaultBufferBytes = 64 << 20
	defaultSocketBytes = 8 << 20
)

const (
	ip4Header = 20
	ip6Header = 40
	udpHeader = 8
)

// Config configures a Link. The zero value listens on every address of the host, on a port
// that the kernel chooses, with every available offload.
type Config struct {
	// Listen is a name or address of this host as "host", "host:port" or ":port". "" and
	// the unspecified addresses stand for all addresses.
	Listen string
	// PortLow to PortHigh are the ports to try, in order, when Listen has no port. With 0
	// the kernel chooses.
	PortLow, PortHigh int
	// MTU is the size of the largest IP packet in bytes, MinMTU to MaxMTU. With 0 it is that
	// of the interface, and Accept lowers it to that of the route to each peer.
	MTU int
	// BufferBytes bounds the memory of pooled frames (default 64 MiB). Beyond it received
	// frames are dropped and counted, and Acquire returns unpooled memory.
	BufferBytes int
	// SocketBytes is the size requested for the kernel's receive queue, and the bound of its send queue, which
	// follows the rate of the device (default 8 MiB). The kernel may grant less: see Stats.
	SocketBytes int
	// Switches for tests, measurements and faulty kernels.
	DisableGSO, DisableGRO, DisableBatch bool
	// Log, if not nil, receives a line for every fallback. It must not block.
	Log func(line string)
}

func (c *Config) check() error {
	if c.MTU != 0 && (c.MTU < MinMTU || c.MTU > MaxMTU) {
		return fmt.Errorf("ether: MTU %d: must be %d to %d bytes, or 0 for the interface's", c.MTU, MinMTU, MaxMTU)
	}
	if c.PortLow == 0 && c.PortHigh == 0 {
		return nil
	}
	if c.PortLow < 1 || c.PortHigh > 65535 || c.PortLow > c.PortHigh {
		return fmt.Errorf("ether: port range %d-%d: must be LOW-HIGH within 1-65535 (--port-range)", c.PortLow, c.PortHigh)
	}
	return nil
}

// endpoint splits Listen into host and port; the port is 0 if there is none.
func (c *Config) endpoint() (host string, port int, err error) {
	s := c.Listen
	if s == "" {
		return "", 0, nil
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.String(), 0, nil
	}
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		// A bare name, or a bracketed address without a port.
		if h, _, err = net.SplitHostPort(s + ":0"); err != nil {
			return "", 0, fmt.Errorf("ether: address %q: want HOST, HOST:PORT or :PORT (--listen): %w", s, err)
		}
		return h, 0, nil
	}
	port, err = strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("ether: address %q: port %q is not a number from 0 to 65535 (--listen)", s, p)
	}
	return h, port, nil
}

// resolve returns the address to bind and its network, where "udp" is a socket of both
// families.
func (c *Config) resolve() (network string, ip netip.Addr, port int, err error) {
	host, port, err := c.endpoint()
	if err != nil {
		return "", ip, 0, err
	}
	if host == "" {
		return "udp", netip.IPv6Unspecified(), port, nil
	}
	ip, err = netip.ParseAddr(host)
	if err != nil {
		a, rerr := net.ResolveIPAddr("ip", host)
		if rerr != nil {
			return "", ip, 0, fmt.Errorf("ether: address %q (--listen): %w", c.Listen, rerr)
		}
		ip, _ = netip.AddrFromSlice(a.IP)
		ip = ip.Unmap().WithZone(a.Zone)
	}
	ip = ip.Unmap()
	switch {
	case ip.Is4():
		return "udp4", ip, port, nil
	case ip.IsUnspecified():
		return "udp", ip, port, nil
	}
	return "udp6", ip, port, nil
}
