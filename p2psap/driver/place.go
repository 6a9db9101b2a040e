package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// hostID names this boot of this host, as the network sees it: containers that share
// a host but not its network are hosts of their own, as their traffic leaves by an
// interface.
func hostID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		// A name alone is not enough: what two hosts of one name exchange would go
		// unprotected, as inside a host.
		id = hardware()
	}
	space, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		space = ""
	}
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	if len(name) > 128 {
		name = name[:128]
	}
	if len(id) == 0 {
		return ""
	}
	return strings.TrimSpace(string(id)) + "/" + space + "/" + name
}

// hardware lists the addresses that the host's interfaces were made with, as far as
// they tell it apart from others; a host that has none stays unknown.
func hardware() []byte {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	h := sha256.New()
	known := false
	for _, i := range interfaces {
		// The second bit of an address that somebody chose, for a bridge, say, is set.
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

// processID tells processes of one host apart: the number alone is used again,
// and is not unique across containers; the start time makes it so.
func processID() uint64 {
	pid := uint64(os.Getpid())
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

// sameHost reports whether both ends of a connection are on this host, in one network
// namespace: the other end's address is a loopback address, that of this end, or that of
// another interface.
func sameHost(local, remote net.Addr) bool {
	there := addressOf(remote)
	if there.IsLoopback() || there.IsValid() && there == addressOf(local) {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && there.IsValid() && p.Addr().Unmap() == there {
			return true
		}
	}
	return false
}

// addressOf returns the IP address of one end of a connection, without zone.
func addressOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// maxAddresses is how many of a host's addresses are told to others.
const maxAddresses = 32

// Addresses are those at which other hosts reach a node that listens at a name or an
// address; "": at all of this host's.
func Addresses(listen string) []netip.Addr {
	var out []netip.Addr
	for _, p := range reachable(net.JoinHostPort(listen, "0")) {
		if !p.Addr().IsLoopback() {
			out = append(out, p.Addr())
		}
	}
	return out
}

// reachable lists the addresses at which other hosts reach a node that listens at
// host:port, each with its network: of every interface that is up, or the one that is
// listened at.
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
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface went away
		}
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

// listened are the prefixes that hold the address listened at, when it is a certain one.
func listened(all []netip.Prefix, host string) []netip.Prefix {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsUnspecified() {
		return all[:min(len(all), maxAddresses)]
	}
	if ip.IsLoopback() {
		// It says nothing of the network, but the round trip can be measured.
		return []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}
	}
	for _, p := range all {
		if p.Addr() == ip.Unmap().WithZone("") {
			return []netip.Prefix{p}
		}
	}
	return nil
}
