package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// token proves to the other end that this one has read its offer.
type token [32]byte

// offer describes one end to the other. Its encoding is, big endian: version (1 byte), frame bytes (4), incarnation
// (8), token (32), name, group, and the number of addresses (1); then each address. Texts and addresses stand behind
// a byte with their length; an address is that of the IP, 4 or 16 bytes, and the port, 2.
type offer struct {
	offerFields
	name, group string
	addresses   []netip.AddrPort
}

type offerFields struct {
	Version     uint8
	FrameBytes  uint32
	Incarnation uint64 // of the link, random
	Token       token
}

const (
	offerVersion = 1
	maxAddresses = 16
)

var (
	errOffer   = errors.New("stream: malformed offer")
	offerFixed = binary.Size(offerFields{})
)

// ErrGroup is the reason for which Accept refuses an offer of another Config.Group.
var ErrGroup = errors.New("stream: the two ends are in different groups")

func (o *offer) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.BigEndian, &o.offerFields) // fails only for types of variable size
	for _, text := range []string{o.name, o.group} {
		b = append(append(b, byte(len(text))), text...)
	}
	b = append(b, byte(len(o.addresses)))
	for _, a := range o.addresses {
		ip := a.Addr().AsSlice()
		b = append(append(b, byte(len(ip)+2)), ip...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
	}
	return b
}

// decodeOffer decodes an offer from an untrusted source.
func decodeOffer(b []byte) (o offer, err error) {
	if len(b) > 0 && b[0] != offerVersion {
		return o, fmt.Errorf("stream: the offer has version %d, this end needs %d: run the same program version at both "+
			"ends", b[0], offerVersion)
	}
	if _, err := binary.Decode(b, binary.BigEndian, &o.offerFields); err != nil {
		return o, fmt.Errorf("%w: %d bytes", errOffer, len(b))
	}
	name, b, ok := cut(b[offerFixed:])
	if !ok || len(name) == 0 {
		return o, fmt.Errorf("%w: it has no name", errOffer)
	}
	group, b, ok := cut(b)
	if !ok || len(b) == 0 || b[0] == 0 || b[0] > maxAddresses {
		return o, fmt.Errorf("%w: it has no group or no addresses", errOffer)
	}
	o.name, o.group = string(name), string(group)
	n, b := int(b[0]), b[1:]
	for range n {
		var a []byte
		if a, b, ok = cut(b); !ok || len(a) < 2 {
			return o, fmt.Errorf("%w: an address is cut off", errOffer)
		}
		ip, valid := netip.AddrFromSlice(a[:len(a)-2])
		port := binary.BigEndian.Uint16(a[len(a)-2:])
		if !valid || ip.IsUnspecified() || ip.IsMulticast() || port == 0 {
			return o, fmt.Errorf("%w: address %v, port %d", errOffer, ip, port)
		}
		o.addresses = append(o.addresses, netip.AddrPortFrom(ip, port))
	}
	if len(b) > 0 {
		return o, fmt.Errorf("%w: %d bytes too many", errOffer, len(b))
	}
	return o, nil
}

// cut cuts off what stands behind a byte with its length.
func cut(b []byte) (head, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, b, false
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], true
}

// compatible returns nil if two ends can be connected, or the reason why not.
func (o *offer) compatible(their *offer) error {
	switch {
	case their.group != o.group:
		return fmt.Errorf("%w: this end in %q, %q in %q", ErrGroup, o.group, their.name, their.group)
	case their.name == o.name:
		return fmt.Errorf("stream: peer %q has the same name as this end: give them different names", their.name)
	case their.FrameBytes != o.FrameBytes:
		return fmt.Errorf("stream: %q has frames of %d bytes, this end of %d: use the same size at both ends",
			their.name, their.FrameBytes, o.FrameBytes)
	}
	return nil
}

// addresses returns those at which a listener can be reached: the bound one, or those of every interface that is up,
// loopback last.
func addresses(l net.Listener) ([]netip.AddrPort, error) {
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	if ip := bound.Addr().Unmap(); !ip.IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(ip, bound.Port())}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("stream: cannot list the addresses of this host: %w", err)
	}
	var outer, loopback []netip.AddrPort
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); !ok || ip.IsLinkLocalUnicast() || bound.Addr().Is4() && !ip.Is4() {
			continue // link-local: meaningless without its interface
		}
		if at := netip.AddrPortFrom(ip, bound.Port()); ip.IsLoopback() {
			loopback = append(loopback, at)
		} else {
			outer = append(outer, at)
		}
	}
	if outer = append(outer, loopback...); len(outer) == 0 {
		return nil, errors.New("stream: no interface of this host is up with an address")
	}
	return outer[:min(len(outer), maxAddresses)], nil
}
