package ether

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Format of an offer, version 2, big endian:
//
//	version  1 byte
//	host     8 bytes: equal at two ends only if they share a loopback interface; 0 if unknown
//	key      8 bytes, random: in the probes of routes to this end
//	count    1 byte, 1 to 32
//	count × { length of the address 1 byte (4 or 16), prefix bits 1 byte, lowest byte of the index of its interface
//	          1 byte, address, port 2 bytes }
const (
	offerVersion  = 2
	offerHeader   = 1 + 8 + 8 + 1
	maxCandidates = 32
)

var errOffer = errors.New("ether: malformed offer")

// candidate is an address at which a link may be reached, with the length of its network's
// prefix. Addresses of one interface have the same number.
type candidate struct {
	addr            netip.AddrPort
	bits            int
	interfaceNumber uint8
}

type offer struct {
	host, key  uint64
	candidates []candidate
}

func (o *offer) append(b []byte) []byte {
	b = append(b, offerVersion)
	b = binary.BigEndian.AppendUint64(b, o.host)
	b = binary.BigEndian.AppendUint64(b, o.key)
	b = append(b, byte(len(o.candidates)))
	for _, c := range o.candidates {
		ip := c.addr.Addr().AsSlice()
		b = append(b, byte(len(ip)), byte(c.bits), c.interfaceNumber)
		b = append(b, ip...)
		b = binary.BigEndian.AppendUint16(b, c.addr.Port())
	}
	return b
}

// decodeOffer decodes an offer from an untrusted source.
func decodeOffer(b []byte) (offer, error) {
	var o offer
	if len(b) > 0 && b[0] != offerVersion {
		return o, fmt.Errorf("ether: the offer has version %d, this end needs %d: run the same program version at both ends",
			b[0], offerVersion)
	}
	if len(b) < offerHeader {
		return o, fmt.Errorf("%w: %d bytes", errOffer, len(b))
	}
	o.host = binary.BigEndian.Uint64(b[1:])
	o.key = binary.BigEndian.Uint64(b[9:])
	n := int(b[offerHeader-1])
	b = b[offerHeader:]
	if n < 1 || n > maxCandidates {
		return o, fmt.Errorf("%w: %d addresses, want 1 to %d", errOffer, n, maxCandidates)
	}
	o.candidates = make([]candidate, 0, n)
	for i := 0; i < n; i++ {
		c, rest, err := decodeCandidate(b)
		if err != nil {
			return o, fmt.Errorf("%w: address %d: %s", errOffer, i+1, err)
		}
		o.candidates, b = append(o.candidates, c), rest
	}
	if len(b) != 0 {
		return o, fmt.Errorf("%w: %d bytes too many", errOffer, len(b))
	}
	return o, nil
}

func decodeCandidate(b []byte) (c candidate, rest []byte, err error) {
	const head = 3
	if len(b) < head {
		return c, nil, errors.New("truncated")
	}
	size, bits := int(b[0]), int(b[1])
	if size != 4 && size != 16 {
		return c, nil, fmt.Errorf("%d bytes long, want 4 or 16", size)
	}
	if bits > 8*size {
		return c, nil, fmt.Errorf("prefix of %d bits", bits)
	}
	if len(b) < head+size+2 {
		return c, nil, errors.New("truncated")
	}
	ip, _ := netip.AddrFromSlice(b[head : head+size])
	port := binary.BigEndian.Uint16(b[head+size:])
	if ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast() || port == 0 {
		return c, nil, fmt.Errorf("%s is not a unicast address with a port", netip.AddrPortFrom(ip, port))
	}
	return candidate{netip.AddrPortFrom(ip, port), bits, b[2]}, b[head+size+2:], nil
}
