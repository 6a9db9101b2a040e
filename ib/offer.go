package ib

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Format of an offer, version 1, big endian: one end of the connection between two peers.
//
//	version      1 byte
//	layer        1: InfiniBand or Ethernet (RoCE), as in libibverbs
//	path MTU     2
//	LID          2: InfiniBand only
//	GID kind     1, GID 16
//	subnet       8: prefix of the GIDs, InfiniBand only
//	block        4: size of a receive, bytes
//	credit       2: frames that each pair may have in flight at first
//	incarnation  8: of the link, random
//	generation   4: of the offer, grows
//	RC, UC       each: number 4, first PSN 4 (24 bits, random)
//	slots        2: of the window, 0 if none
//	address      8, key 4: of the window
//	name         1 byte of length, then the name of the offering end
//
// The first packet numbers of a connection are the sums of those of the two ends, modulo 2^24.
// When either end offers again, both directions start again.
const (
	offerVersion = 1
	offerFixed   = 1 + 1 + 2 + 2 + 1 + 16 + 8 + 4 + 2 + 8 + 4 + 2*8 + 2 + 8 + 4 + 1
	mask24       = 1<<24 - 1
)

var errOffer = errors.New("ib: malformed offer")

// offer describes one end of a connection to the other.
type offer struct {
	name        string
	layer       verbs.LinkLayer
	mtu         int
	lid         uint16
	gid         verbs.GID
	subnet      uint64
	blockBytes  int
	credit      int
	incarnation uint64
	generation  uint32
	rc, uc      endpoint
	slots       int
	address     uint64
	key         uint32
}

// endpoint identifies a queue pair to the other end.
type endpoint struct{ number, psn uint32 }

func (o *offer) append(b []byte) []byte {
	e := binary.BigEndian
	b = append(b, offerVersion, byte(o.layer))
	b = e.AppendUint16(b, uint16(o.mtu))
	b = e.AppendUint16(b, o.lid)
	gid := o.gid.Addr.As16()
	b = append(append(b, byte(o.gid.Kind)), gid[:]...)
	b = e.AppendUint64(b, o.subnet)
	b = e.AppendUint32(b, uint32(o.blockBytes))
	b = e.AppendUint16(b, uint16(o.credit))
	b = e.AppendUint64(b, o.incarnation)
	b = e.AppendUint32(b, o.generation)
	for _, p := range [2]endpoint{o.rc, o.uc} {
		b = e.AppendUint32(b, p.number)
		b = e.AppendUint32(b, p.psn)
	}
	b = e.AppendUint16(b, uint16(o.slots))
	b = e.AppendUint64(b, o.address)
	b = e.AppendUint32(b, o.key)
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
	e := binary.BigEndian
	o.layer, o.mtu = verbs.LinkLayer(b[1]), int(e.Uint16(b[2:]))
	o.lid = e.Uint16(b[4:])
	o.gid = verbs.GID{Kind: verbs.GIDKind(b[6]), Addr: netip.AddrFrom16([16]byte(b[7:23]))}
	o.subnet = e.Uint64(b[23:])
	o.blockBytes, o.credit = int(e.Uint32(b[31:])), int(e.Uint16(b[35:]))
	o.incarnation, o.generation = e.Uint64(b[37:]), e.Uint32(b[45:])
	o.rc = endpoint{e.Uint32(b[49:]), e.Uint32(b[53:])}
	o.uc = endpoint{e.Uint32(b[57:]), e.Uint32(b[61:])}
	o.slots = int(e.Uint16(b[65:]))
	o.address, o.key = e.Uint64(b[67:]), e.Uint32(b[75:])
	o.name = string(b[offerFixed:])
	return o, o.check()
}

func (o *offer) check() error {
	switch {
	case o.name == "":
		return fmt.Errorf("%w: it has no name", errOffer)
	case o.layer != verbs.LayerInfiniBand && o.layer != verbs.LayerEthernet:
		return fmt.Errorf("%w: link layer %d", errOffer, o.layer)
	case !validMTU(o.mtu):
		return fmt.Errorf("%w: path MTU of %d bytes", errOffer, o.mtu)
	case o.blockBytes < minBlockBytes || o.blockBytes > maxBlockBytes:
		return fmt.Errorf("%w: blocks of %d bytes", errOffer, o.blockBytes)
	case o.credit < 1 || o.credit > maxReceives || o.slots > maxSlots:
		return fmt.Errorf("%w: a credit of %d frames, %d slots", errOffer, o.credit, o.slots)
	case o.gid.Kind > verbs.GIDRoCEv2:
		return fmt.Errorf("%w: GID of kind %d", errOffer, o.gid.Kind)
	}
	for _, p := range [2]endpoint{o.rc, o.uc} {
		if p.number == 0 || p.number > mask24 || p.psn > mask24 {
			return fmt.Errorf("%w: queue pair %#x, first packet %#x: must be 24-bit numbers, the pair not 0",
				errOffer, p.number, p.psn)
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
	case their.layer != o.layer:
		return fmt.Errorf("%w: this end's port runs on %v, that of %q on %v", ErrFabric, o.layer, their.name, their.layer)
	case o.layer == verbs.LayerInfiniBand && their.subnet != o.subnet:
		return fmt.Errorf("%w: this end is on the subnet %016x, %q on %016x", ErrFabric, o.subnet, their.name, their.subnet)
	case o.layer == verbs.LayerInfiniBand && their.lid == 0:
		return fmt.Errorf("%w: the port of %q has no LID: is a subnet manager running?", ErrFabric, their.name)
	case o.layer == verbs.LayerEthernet && (their.gid.Kind != o.gid.Kind || their.gid.Addr.IsUnspecified()):
		return fmt.Errorf("%w: this end uses GID %v of kind %d, %q %v of kind %d: choose GIDs of one kind", ErrFabric,
			o.gid.Addr, o.gid.Kind, their.name, their.gid.Addr, their.gid.Kind)
	case their.blockBytes != o.blockBytes:
		return fmt.Errorf("ib: %q has blocks of %d bytes, this end of %d: use the same block or message size at both ends",
			their.name, their.blockBytes, o.blockBytes)
	}
	return nil
}

// ErrFabric reports that two ports are not on one fabric.
var ErrFabric = errors.New("ib: not on one fabric")
