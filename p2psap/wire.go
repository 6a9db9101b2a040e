package p2psap

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/p2pdc/p2pdc/microproto"
)

// HeaderBytes is the size of the session header in front of every data frame,
// big endian:
//
//	version  1 byte: WireVersion, or SealedVersion when what follows is encrypted
//	epoch    1 byte: of the session's composition
//	run      2 bytes: hash of the run's identity, against stray frames of another run
//	session  4 bytes: the receiver's number of the session
const HeaderBytes = 8

// WireVersion is the version of the session header, SealedVersion that of a frame
// which is protected; ControlVersion that of the control channel's messages.
const (
	WireVersion    = 1
	SealedVersion  = 2
	ControlVersion = 5
)

// header is the session header of a data frame.
type header struct {
	sealed  bool
	epoch   uint8
	run     uint16
	session SessionID
}

// putAll writes the header of each of the frames that came as one.
func (h header) putAll(f *microproto.Frame) {
	h.put(f.Data)
	step := f.Segment
	if f.Body != nil {
		step = f.Header
	}
	for at := step; step > 0 && at < len(f.Data); at += step {
		copy(f.Data[at:], f.Data[:HeaderBytes])
	}
}

// alike returns the first of the frames that came as one which have the same header,
// and the others.
func alike(f microproto.Frame) (first, rest microproto.Frame) {
	at := f.Segment
	for at > HeaderBytes && len(f.Data)-at >= HeaderBytes && [HeaderBytes]byte(f.Data) == [HeaderBytes]byte(f.Data[at:]) {
		at += f.Segment
	}
	if f.Segment <= 0 || at >= len(f.Data) {
		return f, microproto.Frame{}
	}
	first = f.Retain()
	first.Data = f.Data[:at:at]
	return first, f.Slice(at, len(f.Data))
}

func (h header) put(b []byte) {
	_ = b[HeaderBytes-1]
	b[0], b[1] = WireVersion, h.epoch
	if h.sealed {
		b[0] = SealedVersion
	}
	binary.BigEndian.PutUint16(b[2:], h.run)
	binary.BigEndian.PutUint32(b[4:], uint32(h.session))
}

// parseHeader returns false for frames that are too short or of another version.
func parseHeader(b []byte) (header, bool) {
	if len(b) < HeaderBytes || b[0] != WireVersion && b[0] != SealedVersion {
		return header{}, false
	}
	return header{b[0] == SealedVersion, b[1], binary.BigEndian.Uint16(b[2:]), SessionID(binary.BigEndian.Uint32(b[4:]))}, true
}

// runTag folds the identity of a run into the header's two bytes.
func runTag(run string) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	s := h.Sum32()
	return uint16(s) ^ uint16(s>>16)
}

// sessionHeader reserves the header's bytes at the front of a composite's header.
// The session writes them when a frame leaves, reads them before it enters.
type sessionHeader struct{}

func (sessionHeader) Name() string { return "SessionHeader" }

// Attach implements microproto.MicroProtocol. The session writes the header of each frame
// of a train.
func (sessionHeader) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	b.Header(HeaderBytes)
	return nil
}
