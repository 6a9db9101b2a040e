package ib

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// port is the port of a link, as offers tell of it.
type port struct {
	number   int
	layer    verbs.LinkLayer
	mtu      int
	lid      uint16
	gid      verbs.GID
	gidIndex int
	subnet   uint64
}

// openPort opens the device named, or the first with an active port.
func openPort(provider verbs.Provider, c Config) (verbs.Device, port, error) {
	names := []string{c.Device}
	if c.Device == "" {
		var err error
		if names, err = provider.Devices(); err != nil {
			return nil, port{}, fmt.Errorf("ib: %w", err)
		}
		if len(names) == 0 {
			return nil, port{}, fmt.Errorf("ib: %w: %s lists none", verbs.ErrNoDevice, provider.Name())
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

// choosePort takes the port named, which must be active, or the first active one.
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

// read fills a port in; it is an error when it is not active.
func (p *port) read(d verbs.Device, c *Config) error {
	a, err := d.Port(p.number)
	if err != nil {
		return fmt.Errorf("ib: port %d of %s: %w", p.number, d.Name(), err)
	}
	if a.State != verbs.PortActive {
		return fmt.Errorf("%w: port %d of %s is %v, and must be ACTIVE", ErrPort, p.number, d.Name(), a.State)
	}
	if a.Layer == verbs.LayerUnspecified {
		a.Layer = verbs.LayerInfiniBand // as verbs of before RoCE say
	}
	p.layer, p.mtu, p.lid, p.subnet = a.Layer, a.MTU, a.LID, a.SubnetGUID
	if !validMTU(p.mtu) {
		return fmt.Errorf("ib: port %d of %s has a path MTU of %d bytes", p.number, d.Name(), p.mtu)
	}
	return p.chooseGID(d, a.GIDs, c.GID)
}

// chooseGID takes the entry named, or the best: on Ethernet RoCE v2 is routed and v1 is
// not, and an IPv4 entry outlives the link-local one that changes with the netdev.
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
		if value := gidValue(g); value > best {
			best, p.gid, p.gidIndex = value, g, i
		}
	}
	switch {
	case best >= 0:
		return nil
	case want != 0:
		return fmt.Errorf("ib: port %d of %s has no GID at index %d of %d", p.number, d.Name(), want-1, entries)
	case p.layer == verbs.LayerEthernet:
		return fmt.Errorf("ib: port %d of %s has no GID among %d entries: give its netdev an address", p.number, d.Name(), entries)
	}
	p.gid.Addr = netip.IPv6Unspecified()
	return nil
}

func gidValue(g verbs.GID) int {
	value := 4 * int(g.Kind)
	switch {
	case g.Addr.Is4In6():
		value += 2
	case !g.Addr.IsLinkLocalUnicast():
		value++
	}
	return value
}

// timeoutCode is the time-out of one attempt of an RC pair: 4.096 µs × 2^code, so that
// all of them together take about d. An adapter may take up to four times what is asked
// (IBTA 9.7.6.1.3).
func timeoutCode(d time.Duration) uint8 {
	each := uint64(d.Nanoseconds()) / (retries + 1) / 4096 / 2
	return uint8(max(8, min(31, bits.Len64(each))))
}
