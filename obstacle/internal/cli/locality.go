package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/p2psap"
)

// path is an interface with the locality of peers that are reached over it.
type path struct {
	host.Interface
	Networks []reach `json:"networks"`
}

type reach struct {
	Network  string          `json:"network"`
	Locality string          `json:"locality"`
	Limit    nullable.Number `json:"rtt_limit_seconds"` // above it, another cluster; null: no limit
}

type distance struct {
	Peer     string  `json:"peer"`
	Address  string  `json:"address"`
	RTT      float64 `json:"rtt_seconds"`
	Samples  int     `json:"samples"`
	Locality string  `json:"locality"`
	Why      string  `json:"why"`
}

func paths() []path {
	out := []path{}
	for _, i := range host.Interfaces() {
		p := path{Interface: i, Networks: []reach{}}
		for _, a := range i.Addresses {
			switch {
			case i.Loopback:
				p.Networks = append(p.Networks, reach{a.Masked().String(), p2psap.SameHost.String(), nullable.NaN()})
			case !a.Addr().IsLinkLocalUnicast() && !a.IsSingleIP():
				limit := nullable.Number(p2psap.NetworkRTT.Seconds())
				p.Networks = append(p.Networks, reach{a.Masked().String(), p2psap.SameCluster.String(), limit})
			}
		}
		out = append(out, p)
	}
	return out
}

func pathsText(w io.Writer, all []path) {
	for _, p := range all {
		fmt.Fprintf(w, "interface\t%s: MTU %d, %v\n", p.Name, p.MTU, p.Addresses)
		for _, r := range p.Networks {
			fmt.Fprintf(w, "\t  peers in %s: %s%s\n", r.Network, r.Locality, roundTripLimit(r.Limit))
		}
	}
	limit := nullable.Number(p2psap.NearRTT.Seconds())
	fmt.Fprintf(w, "\t  peers of other networks: %v%s\n", p2psap.SameCluster, roundTripLimit(limit))
}

func roundTripLimit(limit nullable.Number) string {
	if !limit.Known() {
		return ""
	}
	d := time.Duration(float64(limit) * float64(time.Second))
	return fmt.Sprintf(" up to a round trip of %v, %v above", d, p2psap.OtherCluster)
}

// Bounds of a measurement of a distance.
const (
	connects    = 8
	connectTime = 3 * time.Second
)

// distanceTo measures round trips to an address by opening TCP connections; a refused one serves as well. In a run
// both ends measure, here one does.
func distanceTo(ctx context.Context, peer string) (*distance, error) {
	if err := checkAddress("--peer", peer); err != nil {
		return nil, err
	}
	d := &distance{Peer: peer}
	var least time.Duration
	var remote netip.Addr
	for range connects {
		at, rtt, err := connectOnce(ctx, peer)
		if err != nil {
			return nil, failed(fmt.Errorf("--peer %s: %w", peer, err))
		}
		remote = at
		if d.Samples++; least == 0 || rtt < least {
			least = rtt
		}
	}
	f := p2psap.Locate(evidenceOf(host.Interfaces(), remote, least))
	d.Address, d.RTT = remote.String(), least.Seconds()
	d.Locality, d.Why = f.Locality.String(), f.Reason
	return d, nil
}

func connectOnce(ctx context.Context, peer string) (netip.Addr, time.Duration, error) {
	dialer := net.Dialer{Timeout: connectTime}
	start := time.Now()
	c, err := dialer.DialContext(ctx, "tcp", peer)
	rtt := time.Since(start)
	if err == nil {
		defer c.Close()
		return c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), rtt, nil
	}
	if op, is := errors.AsType[*net.OpError](err); is && errors.Is(err, syscall.ECONNREFUSED) {
		if at, is := op.Addr.(*net.TCPAddr); is {
			return at.AddrPort().Addr().Unmap(), rtt, nil
		}
	}
	return netip.Addr{}, 0, err
}

// evidenceOf returns what this end knows about a peer at an address. Its network is assumed to be that of the
// interface over which it is reached.
func evidenceOf(mine []host.Interface, peer netip.Addr, rtt time.Duration) p2psap.Evidence {
	e := p2psap.Evidence{
		Local:  p2psap.Placement{Host: "this", Process: 1},
		Remote: p2psap.Placement{Host: "other", Process: 2},
		RTT:    rtt,
	}
	theirs := netip.PrefixFrom(peer.WithZone(""), peer.BitLen())
	for _, i := range mine {
		e.Local.Addresses = append(e.Local.Addresses, i.Addresses...)
		for _, a := range i.Addresses {
			if a.Addr() == theirs.Addr() || i.Loopback && a.Contains(theirs.Addr()) {
				e.Remote.Host = e.Local.Host
			}
			if a.Contains(theirs.Addr()) {
				theirs = netip.PrefixFrom(theirs.Addr(), a.Bits())
			}
		}
	}
	e.Remote.Addresses = []netip.Prefix{theirs}
	return e
}
