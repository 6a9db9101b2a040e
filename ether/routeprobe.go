package ether

import (
	"encoding/binary"
	"net/netip"
)

// probeBytes is the size of a probe of a route, a datagram, big endian:
//
//	kind       1 byte
//	route      1 byte: its number at the end that asks
//	           2 bytes, 0
//	round      4 bytes
//	key        8 bytes: of the receiver's offer, by which probes differ from frames
//	withdrawn  16 bytes: an address of the end that asks to which nothing should be sent, IPv4 mapped; else 0
const probeBytes = 32

// The kinds of probes. An answer has the route and the round of the probe, and nothing withdrawn.
const (
	probeAsks    = 0xf1
	probeAnswers = 0xf2
)

type probe struct {
	kind, route uint8
	round       uint32
	key         uint64
	withdrawn   netip.Addr // the zero Addr: none
}

func (p *probe) append(b []byte) []byte {
	b = append(b, p.kind, p.route, 0, 0)
	b = binary.BigEndian.AppendUint32(b, p.round)
	b = binary.BigEndian.AppendUint64(b, p.key)
	if !p.withdrawn.IsValid() {
		return append(b, make([]byte, 16)...)
	}
	ip := p.withdrawn.As16()
	return append(b, ip[:]...)
}

// decodeProbe decodes a datagram from an untrusted source. It returns false for a frame.
func decodeProbe(b []byte, key uint64) (p probe, ok bool) {
	if len(b) != probeBytes || b[0] != probeAsks && b[0] != probeAnswers || b[2] != 0 || b[3] != 0 {
		return p, false
	}
	p = probe{kind: b[0], route: b[1], round: binary.BigEndian.Uint32(b[4:]), key: binary.BigEndian.Uint64(b[8:])}
	if ip := [16]byte(b[16:]); ip != [16]byte{} {
		p.withdrawn = netip.AddrFrom16(ip).Unmap()
	}
	return p, p.key == key && (p.kind == probeAsks || !p.withdrawn.IsValid())
}

// mayHoldProbe reports whether a datagram of frames of one size, of which the last may be shorter, may hold a probe.
func mayHoldProbe(b []byte, size int) bool {
	n := len(b)
	return size == probeBytes || n%size == probeBytes%size && n >= probeBytes && b[n-probeBytes] >= probeAsks
}
