package p2psap

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// HeaderBytes is the size of the session header in front of every data frame, big endian:
//
//	version  1 byte: WireVersion, or SealedVersion when what follows is encrypted
//	epoch    1 byte: of the session's composition
//	run      2 bytes: hash of the run's identity, against stray frames of another run
//	session  4 bytes: the receiver's number of the session
const HeaderBytes = 8

// Versions of what nodes exchange.
const (
	WireVersion    = 1               // of the session header
	SealedVersion  = 2               // of the session header of a protected frame
	ControlVersion = control.Version // of the control channel's messages
)

// MaxControlBytes bounds one message of the control channel. On a byte stream a message is preceded
// by its length, 4 bytes, big endian.
const MaxControlBytes = control.MaxBytes

// header is the session header of a data frame.
type header struct {
	sealed  bool
	epoch   uint8
	run     uint16
	session SessionID
}

// putAll writes the header into each of the frames that f stands for.
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

// splitHeaders splits f, which joins several frames of one size: same holds the first frames, whose session headers
// are equal, rest the others.
func splitHeaders(f microproto.Frame) (same, rest microproto.Frame) {
	at := f.Segment
	for at > HeaderBytes && len(f.Data)-at >= HeaderBytes && [HeaderBytes]byte(f.Data) == [HeaderBytes]byte(f.Data[at:]) {
		at += f.Segment
	}
	if f.Segment <= 0 || at >= len(f.Data) {
		return f, microproto.Frame{}
	}
	same = f.Retain()
	same.Data = f.Data[:at:at]
	return same, f.Slice(at, len(f.Data))
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
	return header{
		sealed: b[0] == SealedVersion, epoch: b[1],
		run: binary.BigEndian.Uint16(b[2:]), session: SessionID(binary.BigEndian.Uint32(b[4:])),
	}, true
}

// runTag folds the identity of a run into the header's two bytes.
func runTag(run string) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	s := h.Sum32()
	return uint16(s) ^ uint16(s>>16)
}

// sessionHeader reserves the header's bytes at the front of a composite's header. The session writes
// them when a frame leaves and reads them before it enters.
type sessionHeader struct{}

func (sessionHeader) Name() string { return "SessionHeader" }

// Attach implements microproto.MicroProtocol. The session writes the header of each frame of a
// train.
func (sessionHeader) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	b.Header(HeaderBytes)
	b.Common(microproto.CommonCase{Send: microproto.Always, Expect: microproto.Always})
	return nil
}
