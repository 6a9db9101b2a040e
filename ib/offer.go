package ib

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

const (
	offerVersion = 1
	mask24       = 1<<24 - 1
)

var (
	errOffer   = errors.New("ib: malformed offer")
	offerFixed = binary.Size(offerFields{}) + 1
)

// offer describes one end of a connection to the other. Its encoding is the fields, big endian,
// then the length of the name (1 byte) and the name of the offering end.
//
// The first packet numbers of a connection are the sums of those of the two ends, modulo 2^24.
// When either end offers again, both directions start again.
type offer struct {
	offerFields
	name string
}

// offerFields are the fields of fixed size, in the order of version 1.
type offerFields struct {
	Version     uint8
	Layer       verbs.LinkLayer // InfiniBand or Ethernet (RoCE), as in libibverbs
	MTU         uint16          // of the path
	LID         uint16          // InfiniBand only
	GIDKind     verbs.GIDKind
	GID         [16]byte
	Subnet      uint64   // prefix of the GIDs, InfiniBand only
	BlockBytes  uint32   // size of a receive
	Credit      uint16   // frames that each pair may have in flight at first
	Incarnation uint64   // of the link, random
	Generation  uint32   // of the offer, grows
	RC, UC      endpoint // queue pairs
	Slots       uint16   // of the window, 0 if none
	Address     uint64   // of the window
	Key         uint32   // of the window
}

// endpoint identifies a queue pair to the other end.
type endpoint struct{ Number, PSN uint32 } // PSN of the first packet, 24 random bits

func (o *offer) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.BigEndian, &o.offerFields) // fails only for types of variable size
	return append(append(b, byte(len(o.name))), o.name...)
}

// decodeOffer decodes an offer from an untrusted source.
func decodeOffer(b []byte) (offer, error) {
	var o offer
	if len(b) > 0 && b[0] != offerVersion {
		return o, fmt.Errorf("ib: the offer has version %d, this end needs %d: run the same program version at both ends",
			b[0], offerVersion)
	}
	if len(b) < offerFixed || len(b) != offerFixed+int(b[offerFixed-1]) {
		return o, fmt.Errorf("%w: %d bytes", errOffer, len(b))
	}
	if _, err := binary.Decode(b, binary.BigEndian, &o.offerFields); err != nil {
		return o, fmt.Errorf("%w: %w", errOffer, err)
	}
	o.name = string(b[offerFixed:])
	return o, o.check()
}

func (o *offer) gid() netip.Addr { return netip.AddrFrom16(o.GID) }

func (o *offer) check() error {
	switch {
	case o.name == "":
		return fmt.Errorf("%w: it has no name", errOffer)
	case o.Layer != verbs.LayerInfiniBand && o.Layer != verbs.LayerEthernet:
		return fmt.Errorf("%w: link layer %d", errOffer, o.Layer)
	case !validMTU(int(o.MTU)):
		return fmt.Errorf("%w: path MTU of %d bytes", errOffer, o.MTU)
	case o.BlockBytes < minBlockBytes || o.BlockBytes > maxBlockBytes:
		return fmt.Errorf("%w: blocks of %d bytes", errOffer, o.BlockBytes)
	case o.Credit < 1 || o.Credit > maxReceives || o.Slots > maxSlots:
		return fmt.Errorf("%w: a credit of %d frames, %d slots", errOffer, o.Credit, o.Slots)
	case o.GIDKind > verbs.GIDRoCEv2:
		return fmt.Errorf("%w: GID of kind %d", errOffer, o.GIDKind)
	}
	for _, p := range [2]endpoint{o.RC, o.UC} {
		if p.Number == 0 || p.Number > mask24 || p.PSN > mask24 {
			return fmt.Errorf("%w: queue pair %#x, first packet %#x: must be 24-bit numbers, the pair not 0",
				errOffer, p.Number, p.PSN)
		}
	}
	return checkWindow(o)
}

func validMTU(n int) bool { return n >= 256 && n <= 4096 && n&(n-1) == 0 }

// compatible returns nil if two ends can be connected, or the reason why not.
func (o *offer) compatible(their *offer) error {
	switch {
	case their.name == o.name:
		return fmt.Errorf("ib: peer %q has the same name as this end: give them different names", their.name)
	case their.Layer != o.Layer:
		return fmt.Errorf("%w: this end's port runs on %v, that of %q on %v", ErrFabric, o.Layer, their.name, their.Layer)
	case o.Layer == verbs.LayerInfiniBand && their.Subnet != o.Subnet:
		return fmt.Errorf("%w: this end is on the subnet %016x, %q on %016x", ErrFabric, o.Subnet, their.name, their.Subnet)
	case o.Layer == verbs.LayerInfiniBand && their.LID == 0:
		return fmt.Errorf("%w: the port of %q has no LID: is a subnet manager running?", ErrFabric, their.name)
	case o.Layer == verbs.LayerEthernet && (their.GIDKind != o.GIDKind || their.gid().IsUnspecified()):
		return fmt.Errorf("%w: this end uses GID %v of kind %d, %q %v of kind %d: choose GIDs of one kind", ErrFabric,
			o.gid(), o.GIDKind, their.name, their.gid(), their.GIDKind)
	case their.BlockBytes != o.BlockBytes:
		return fmt.Errorf("ib: %q has blocks of %d bytes, this end of %d: use the same block or message size at both ends",
			their.name, their.BlockBytes, o.BlockBytes)
	}
	return nil
}

// ErrFabric reports that two ports are not on one fabric.
var ErrFabric = errors.New("ib: the two ports are not on one fabric")
