package rendezvous

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// maxAddresses bounds the addresses of a process that others are told.
const maxAddresses = 8

// Ways returns the address of a process that others know it by: first and, if it listens at all addresses of its host and
// other hosts reach it, those others, separated by commas. Several cables may lead to the host.
func Ways(first, listens string) string {
	all := []string{first}
	if severalWays(listens, first) {
		_, port, _ := net.SplitHostPort(first)
		for _, a := range driver.Addresses("") {
			if at := net.JoinHostPort(a.String(), port); at != first && len(all) < maxAddresses {
				all = append(all, at)
			}
		}
	}
	return strings.Join(all, ",")
}

// FirstWay returns the first of the addresses of a process.
func FirstWay(ways string) string {
	first, _, _ := strings.Cut(ways, ",")
	return first
}

// FirstWays returns the first address of each of some processes.
func FirstWays(processes []string) (out []string) {
	for _, ways := range processes {
		out = append(out, FirstWay(ways))
	}
	return out
}

// Dial connects to a process at the first of its addresses that answers (see Ways). It leaves out those that this host has,
// too, as those of bridges for containers: another process may listen there.
func Dial(ctx context.Context, most time.Duration, ways string) (net.Conn, error) {
	all := strings.Split(ways, ",")
	if len(all) > 1 {
		all = elsewhere(all, driver.Addresses(""))
	}
	return driver.DialAny(ctx, most, all)
}

// elsewhere returns the first address and those of the others that are not this host's own.
func elsewhere(all []string, own []netip.Addr) []string {
	others := slices.DeleteFunc(slices.Clone(all[1:]), func(address string) bool {
		at, err := netip.ParseAddrPort(address)
		return err != nil || slices.Contains(own, at.Addr())
	})
	return append(all[:1:1], others...)
}
