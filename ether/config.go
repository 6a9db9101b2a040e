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

// Defaults of Config.
const (
	defaultBufferBytes = 64 << 20
	defaultSocketBytes = 8 << 20
)

const (
	ip4Header = 20
	ip6Header = 40
	udpHeader = 8
)

// Config says how a Link listens. The zero value listens on every address of the
// host, on a port that the kernel chooses, with every offload that there is.
type Config struct {
	// Listen is "host", "host:port", ":port" or "": a name or address of this
	// host; "" and the unspecified addresses mean all of them.
	Listen string
	// PortLow to PortHigh are the ports to try, in order, when Listen names none;
	// 0: the kernel chooses.
	PortLow, PortHigh int
	// MTU is the largest IP packet in bytes, MinMTU to MaxMTU; 0: that of the
	// interface, lowered by Accept to that of the route to each peer.
	MTU int
	// BufferBytes bounds the memory of pooled frames (default 64 MiB). Past it
	// received frames are dropped and counted; Acquire takes plain memory.
	BufferBytes int
	// SocketBytes is asked of the kernel for each of its two queues (default
	// 8 MiB); it may grant less, see Stats.
	SocketBytes int
	// Switches for tests, measurements and kernels that misbehave.
	DisableGSO, DisableGRO, DisableBatch bool
	// Log is told of fallbacks, one line each; it may be nil. It must not block.
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

// endpoint splits Listen; port 0 means none was named.
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

// resolve finds the address to bind and the network to bind it in. "udp" is a
// socket of both families.
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
