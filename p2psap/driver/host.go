package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// hostID returns an identity of this boot of this host, as the network sees it: containers that share a host but not
// its network have identities of their own, since their traffic leaves by an interface.
func hostID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		// A name alone is not enough: frames between two hosts of one name would be unprotected, as inside
		// a host.
		id = hardwareID()
	}
	space, _ := os.Readlink("/proc/thread-self/ns/net")
	name, _ := os.Hostname()
	if len(id) == 0 {
		return ""
	}
	return strings.TrimSpace(string(id)) + "/" + space + "/" + name[:min(len(name), 128)]
}

// hardwareID returns a hash of the hardware addresses of the host's interfaces; nil if there are none that
// distinguish it from other hosts.
func hardwareID() []byte {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	h := sha256.New()
	known := false
	for _, i := range interfaces {
		// The second bit of a locally administered address, such as a bridge's, is set.
		if len(i.HardwareAddr) == 6 && i.HardwareAddr[0]&2 == 0 && i.Flags&net.FlagLoopback == 0 {
			_, _ = h.Write(i.HardwareAddr)
			known = true
		}
	}
	if !known {
		return nil
	}
	return hex.AppendEncode(nil, h.Sum(nil)[:16])
}

// PidSpace returns a number of the PID namespace in which os.Getpid has its meaning; 0 if there are none. Containers that
// share a network may have processes of the same number.
func PidSpace() uint64 {
	name, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, _ := strings.Cut(name, "[")
	space, _ := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return space
}

// processID returns a number that no other process of this host has: process numbers are used again and are not
// unique across containers, so the start time and the PID namespace are part of it.
func processID() uint64 {
	pid := uint64(os.Getpid()) ^ PidSpace()<<32
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return pid
	}
	// The 22nd field, counted after the command's closing parenthesis.
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), ")")
	if f := strings.Fields(rest); len(f) > 19 {
		if start, err := strconv.ParseUint(f[19], 10, 64); err == nil {
			return start<<24 ^ pid
		}
	}
	return pid
}

// sameHost reports whether both ends of a connection are on this host, in one network namespace: the other end has a
// loopback address, the address of this end, or that of another interface.
func sameHost(local, remote net.Addr) bool {
	there := addressOf(remote)
	if there.IsLoopback() || there.IsValid() && there == addressOf(local) {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && there.IsValid() && slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == there
	})
}

// addressOf returns the IP address of one end of a connection, without a zone.
func addressOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// maxAddresses is how many of a host's addresses its hello holds.
const maxAddresses = 32

// Addresses returns the addresses at which other hosts reach a node that listens at a name or an address; "": at all
// addresses of this host.
func Addresses(listen string) []netip.Addr {
	var out []netip.Addr
	for _, p := range reachable(net.JoinHostPort(listen, "0")) {
		if !p.Addr().IsLoopback() {
			out = append(out, p.Addr())
		}
	}
	return out
}

// reachable returns the addresses at which other hosts reach a node that listens at host:port, each with its network:
// those of every interface that is up, or the one address of host.
func reachable(listen string) []netip.Prefix {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var all []netip.Prefix
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, _ := i.Addrs() // nil if the interface went away
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
				all = append(all, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()))
			}
		}
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = listen
	}
	return listened(all, host)
}

// listened returns the prefixes of the address listened at; all of them if host is not an address of its own.
func listened(all []netip.Prefix, host string) []netip.Prefix {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsUnspecified() {
		return all[:min(len(all), maxAddresses)]
	}
	if ip.IsLoopback() {
		// A loopback address is in no network, but the round trip can be measured.
		return []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}
	}
	for _, p := range all {
		if p.Addr() == ip.Unmap().WithZone("") {
			return []netip.Prefix{p}
		}
	}
	return nil
}
