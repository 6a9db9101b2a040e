package netlab

import (
	"encoding/binary"
	"slices"
)

// The sizes and numbers are those of RFC 791, 792, 8200 and 4443.
const (
	header4, header6 = 20, 40
	moreFragments    = 0x2000
	dontFragment     = 0x4000
	protocolICMP     = 1
	protocolICMP6    = 58
	minMTU6          = 1280
)

// version returns the IP version of a packet with a complete header, or 0 for anything else.
func version(ip []byte) int {
	switch {
	case len(ip) >= header4 && ip[0]>>4 == 4 && int(ip[0]&15)*4 >= header4 && len(ip) >= int(ip[0]&15)*4:
		return 4
	case len(ip) >= header6 && ip[0]>>4 == 6:
		return 6
	}
	return 0
}

// mayFragment reports whether a router may fragment the packet: IPv4 without DF.
func mayFragment(ip []byte) bool {
	return version(ip) == 4 && binary.BigEndian.Uint16(ip[6:])&dontFragment == 0
}

// fragment divides an IPv4 packet into fragments (RFC 791, section 3.2). All options are copied to
// every fragment. The minimum MTU has room for the longest header and 8 bytes.
func fragment(ip []byte, mtu int) [][]byte {
	head := int(ip[0]&15) * 4
	room := (mtu - head) &^ 7
	field := binary.BigEndian.Uint16(ip[6:])
	var out [][]byte
	for at := head; at < len(ip); at += room {
		end := min(at+room, len(ip))
		piece := slices.Concat(ip[:head], ip[at:end])
		flags := field + uint16((at-head)/8)
		if end < len(ip) {
			flags |= moreFragments
		}
		binary.BigEndian.PutUint16(piece[2:], uint16(len(piece)))
		binary.BigEndian.PutUint16(piece[6:], flags)
		setChecksum4(piece[:head])
		out = append(out, piece)
	}
	return out
}

// tooBigMessage returns the message of a router to the sender of a packet that does not fit:
// "fragmentation needed" (RFC 792, 1191) or "packet too big" (RFC 4443). Its source is the packet's
// destination. It returns nil if no message may be sent.
func tooBigMessage(ip []byte, mtu int) []byte {
	switch version(ip) {
	case 4:
		if ip[9] == protocolICMP {
			return nil // never answer an ICMP message, which may be an answer
		}
		quoted := ip[:min(len(ip), int(ip[0]&15)*4+8)]
		out := make([]byte, header4+8, header4+8+len(quoted))
		out[0], out[8], out[9] = 0x45, 64, protocolICMP
		copy(out[12:16], ip[16:20])
		copy(out[16:20], ip[12:16])
		out[20], out[21] = 3, 4
		binary.BigEndian.PutUint16(out[26:], uint16(mtu))
		out = append(out, quoted...)
		binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
		setChecksum4(out[:header4])
		binary.BigEndian.PutUint16(out[22:], ^sum(0, out[header4:]))
		return out
	case 6:
		if ip[6] == protocolICMP6 {
			return nil
		}
		quoted := ip[:min(len(ip), minMTU6-header6-8)]
		out := make([]byte, header6+8, header6+8+len(quoted))
		out[0], out[6], out[7] = 0x60, protocolICMP6, 64
		copy(out[8:24], ip[24:40])
		copy(out[24:40], ip[8:24])
		out[40] = 2
		binary.BigEndian.PutUint32(out[44:], uint32(mtu))
		out = append(out, quoted...)
		length := len(out) - header6
		binary.BigEndian.PutUint16(out[4:], uint16(length))
		// The pseudo-header of RFC 8200, section 8.1.
		pseudo := sum(sum(0, out[8:40]), []byte{0, 0, byte(length >> 8), byte(length), 0, 0, 0, protocolICMP6})
		binary.BigEndian.PutUint16(out[42:], ^sum(pseudo, out[header6:]))
		return out
	}
	return nil
}

// setChecksum4 writes the checksum of an IPv4 header.
func setChecksum4(head []byte) {
	head[10], head[11] = 0, 0
	binary.BigEndian.PutUint16(head[10:], ^sum(0, head))
}

// sum returns the sum of the Internet checksum (RFC 1071) before complementation.
func sum(begin uint16, data []byte) uint16 {
	s := uint32(begin)
	for i := 0; i+1 < len(data); i += 2 {
		s += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	if len(data)%2 == 1 {
		s += uint32(data[len(data)-1]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
