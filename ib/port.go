package ib

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// port is the port of a link with the addresses that offers carry.
type port struct {
	number   int
	layer    verbs.LinkLayer
	mtu      int
	lid      uint16
	gid      verbs.GID
	gidIndex int
	subnet   uint64
}

// openPort opens the configured device, or the first with an active port.
func openPort(provider verbs.Provider, c Config) (verbs.Device, port, error) {
	names := []string{c.Device}
	if c.Device == "" {
		var err error
		if names, err = provider.Devices(); err != nil {
			return nil, port{}, fmt.Errorf("ib: %w", err)
		}
		if len(names) == 0 {
			return nil, port{}, fmt.Errorf("ib: %w: %s lists no device", verbs.ErrNoDevice, provider.Name())
		}
	}
	var errs []error
	for _, name := range names {
		d, err := provider.Open(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("ib: %w", err))
			continue
		}
		p, err := choosePort(d, &c)
		if err == nil {
			return d, p, nil
		}
		errs = append(errs, err, d.Close())
	}
	return nil, port{}, errors.Join(errs...)
}

// choosePort returns the configured port, which must be active, or the first active one.
func choosePort(d verbs.Device, c *Config) (port, error) {
	limits, err := d.Limits()
	if err != nil {
		return port{}, fmt.Errorf("ib: device %s: %w", d.Name(), err)
	}
	first, last := 1, limits.Ports
	if c.Port != 0 {
		first, last = c.Port, c.Port
	}
	var errs []error
	for n := first; n <= last; n++ {
		p := port{number: n}
		if err = p.read(d, c); err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return port{}, errors.Join(errs...)
}

// read reads the port's attributes. It fails unless the port is active.
func (p *port) read(d verbs.Device, c *Config) error {
	a, err := d.Port(p.number)
	if err != nil {
		return fmt.Errorf("ib: port %d of %s: %w", p.number, d.Name(), err)
	}
	if a.State != verbs.PortActive {
		return fmt.Errorf("%w: port %d of %s is %v: it must be ACTIVE", ErrPort, p.number, d.Name(), a.State)
	}
	if p.layer = a.Layer; p.layer == verbs.LayerUnspecified {
		p.layer = verbs.LayerInfiniBand // libraries older than RoCE leave it unspecified
	}
	p.mtu, p.lid = a.MTU, a.LID
	p.subnet = a.SubnetGUID
	if !validMTU(p.mtu) {
		return fmt.Errorf("ib: port %d of %s has an invalid path MTU of %d bytes", p.number, d.Name(), p.mtu)
	}
	return p.chooseGID(d, a.GIDs, c.GID)
}

// describe sets the port's fields of an offer.
func (p *port) describe(o *offer) {
	o.Layer, o.MTU = p.layer, uint16(p.mtu)
	o.LID, o.Subnet = p.lid, p.subnet
	o.GIDKind, o.GID = p.gid.Kind, p.gid.Addr.As16()
}

// chooseGID selects the configured entry, or the best.
func (p *port) chooseGID(d verbs.Device, entries, want int) error {
	best := -1
	for i := range entries {
		if want != 0 && want != i+1 {
			continue
		}
		g, err := d.GID(p.number, i)
		if err != nil || !g.Addr.IsValid() || g.Addr.IsUnspecified() {
			continue
		}
		if rank := gidRank(g.Kind == verbs.GIDRoCEv2, g.Addr); rank > best {
			best = rank
			p.gid, p.gidIndex = g, i
		}
	}
	switch {
	case best >= 0:
		return nil
	case want != 0:
		return fmt.Errorf("ib: port %d of %s has no GID at index %d of %d", p.number, d.Name(), want-1, entries)
	case p.layer == verbs.LayerEthernet:
		return fmt.Errorf("ib: port %d of %s has no GID among %d entries: assign an address to its network interface",
			p.number, d.Name(), entries)
	}
	p.gid.Addr = netip.IPv6Unspecified()
	return nil
}

// gidRank orders the GIDs of an Ethernet port; the largest is the best. RoCE v2 is routed and v1 is
// not. An IPv4 entry stays when the link-local entry changes with the network interface.
func gidRank(v2 bool, a netip.Addr) (rank int) {
	if v2 {
		rank = 4
	}
	switch {
	case a.Unmap().Is4():
		rank += 2
	case !a.IsLinkLocalUnicast():
		rank++
	}
	return rank
}

// timeoutCode returns the code of an RC pair's time-out per attempt, 4.096 µs × 2^code, such
// that all attempts together take about d. An adapter may wait up to four times as long
// (IBTA 9.7.6.1.3).
func timeoutCode(d time.Duration) uint8 {
	each := uint64(d.Nanoseconds()) / (retries + 1) / 4096 / 2
	return uint8(max(8, min(31, bits.Len64(each))))
}
