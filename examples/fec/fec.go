package main

import (
	"bytes"
	"fmt"
	"math/bits"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Keys of microproto.Options that FEC reads.
const (
	OptionSegments = "fec.segments" // segments for each parity segment, 2 to 32 (default 4)
	OptionFlush    = "fec.flush.ns" // time after which a group is closed that is not full (default 2 ms)
)

// FEC is forward error correction for channels without retransmission. After every k segments it
// sends a parity segment, their exclusive or, so that any one of the k + 1 may be lost. It costs
// 1/k of the bandwidth. A group that is not full is closed after OptionFlush.
//
// The parity is computed over complete frames, headers included, so FEC recovers the frame that
// was lost. The frame enters the channel as if it had arrived, and the other micro-protocols do
// not notice. FEC is the lowest micro-protocol.
type FEC struct {
	segments int
	flush    time.Duration

	group  microproto.Attr[uint32]
	index  microproto.Attr[uint8]  // in the group; isParity: the parity segment
	count  microproto.Attr[uint8]  // parity: segments in the group
	length microproto.Attr[uint16] // of the payload; parity: the exclusive or of all

	out      xor // the group that is being sent
	open     uint32
	sent     int
	timer    microproto.TimerID
	in       [groups]incoming
	repaired uint64
}

// incoming is a group of the other end.
type incoming struct {
	xor
	group uint32
	seen  uint32 // bit i: segment i has arrived
	count int    // segments in the group, 0: the parity has not arrived
	used  bool
	done  bool // all segments have arrived or were recovered
}

// xor is the exclusive or of frames.
type xor struct {
	header, payload []byte
	length          uint16
}

const (
	isParity    = 255
	groups      = 64 // incoming groups that are kept
	maxSegments = 32
)

var flushGroup = microproto.NewEvent[*FEC]("fec.flush")

// New returns a FEC with the settings of a composition.
func New(o microproto.Options) (microproto.MicroProtocol, error) {
	f := &FEC{segments: 4, flush: 2 * time.Millisecond}
	if v, ok := o[OptionSegments]; ok {
		f.segments = int(v)
	}
	if v, ok := o[OptionFlush]; ok {
		f.flush = time.Duration(v)
	}
	if f.segments < 2 || f.segments > maxSegments || f.flush <= 0 {
		return nil, fmt.Errorf("fec: %d segments for one of parity, flushed after %v; want 2 to %d and a positive time",
			f.segments, f.flush, maxSegments)
	}
	return f, nil
}

// Name implements microproto.MicroProtocol.
func (f *FEC) Name() string { return "FEC" }

// Repaired returns the number of segments that were recovered.
func (f *FEC) Repaired() uint64 { return f.repaired }

// Attach implements microproto.MicroProtocol.
func (f *FEC) Attach(b *microproto.Binder) error {
	f.group = microproto.WireAttr[uint32](b, "fec.group")
	f.index = microproto.WireAttr[uint8](b, "fec.index")
	f.count = microproto.WireAttr[uint8](b, "fec.count")
	f.length = microproto.WireAttr[uint16](b, "fec.length")
	microproto.Bind(b, microproto.SegmentToNet, microproto.Late, f.number)
	// By then all micro-protocols have written their header bytes.
	microproto.Bind(b, ctp.SegmentSent, microproto.Late, f.add)
	// Before all others: the header is still unchanged.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.First-1, f.take)
	microproto.Bind(b, flushGroup, microproto.Normal, func(x *microproto.Exec, _ *FEC) {
		f.timer = 0
		f.finish(x)
	})
	return nil
}

// number assigns a segment to the open group.
func (f *FEC) number(_ *microproto.Exec, m *microproto.Message) {
	f.group.Set(m, f.open)
	f.index.Set(m, uint8(f.sent))
	f.count.Set(m, 0)
	f.length.Set(m, uint16(len(m.Payload)))
}

// add adds a transmitted segment to the parity, which is sent when the group is full.
func (f *FEC) add(x *microproto.Exec, m *microproto.Message) {
	f.out.add(m, f.length.Get(m))
	f.sent++
	switch {
	case f.sent == f.segments:
		f.finish(x)
	case f.timer == 0:
		f.timer = microproto.RaiseAfter(x, flushGroup, f.flush, f)
	}
}

// finish sends the parity of the open group and opens the next.
func (f *FEC) finish(x *microproto.Exec) {
	if f.timer != 0 {
		x.Cancel(f.timer)
		f.timer = 0
	}
	if f.sent == 0 {
		return
	}
	// Parity is optional: without a message or room below it is not sent.
	if m, err := x.NewMessage(microproto.Down); err == nil {
		copy(m.Header(), f.out.header)
		m.Payload = f.out.payload
		f.group.Set(m, f.open)
		f.index.Set(m, isParity)
		f.count.Set(m, uint8(f.sent))
		f.length.Set(m, f.out.length)
		if x.Transmit(m) == nil {
			x.Done(m)
		} else {
			x.Drop(m, "no room for parity")
		}
	}
	f.out.clear()
	f.sent = 0
	f.open++
}

// take records a segment, and recovers a missing one if possible.
func (f *FEC) take(x *microproto.Exec, m *microproto.Message) {
	index, count := int(f.index.Get(m)), int(f.count.Get(m))
	parity := index == isParity
	if parity && (count < 1 || count > maxSegments) ||
		!parity && (index >= maxSegments || int(f.length.Get(m)) != len(m.Payload)) {
		x.Drop(m, "fec: malformed")
		return
	}
	if g := f.find(f.group.Get(m)); g != nil {
		switch {
		case parity && g.count == 0:
			g.count = count
			g.add(m, f.length.Get(m))
		case !parity && g.seen>>index&1 == 0:
			g.seen |= 1 << index
			g.add(m, f.length.Get(m))
		}
		f.repair(x, g)
	}
	if parity {
		x.Done(m)
	}
}

// find returns the group of that number, nil if it is too old.
func (f *FEC) find(group uint32) *incoming {
	g := &f.in[group%groups]
	if g.used && g.group == group {
		if g.done {
			return nil
		}
		return g
	}
	if g.used && int32(group-g.group) < 0 {
		return nil
	}
	g.xor.clear()
	*g = incoming{xor: g.xor, group: group, used: true}
	return g
}

// repair recovers the missing segment of a group, if it is the only one.
func (f *FEC) repair(x *microproto.Exec, g *incoming) {
	if g.count == 0 || g.done {
		return
	}
	all := uint32(1)<<g.count - 1
	missing := all &^ g.seen
	if missing == 0 || bits.OnesCount32(missing) > 1 {
		g.done = missing == 0
		return
	}
	g.done = true
	if int(g.length) > len(g.payload) {
		return // the parity does not match the segments
	}
	m, err := x.NewMessage(microproto.Up)
	if err != nil {
		return
	}
	f.repaired++
	copy(m.Header(), g.header)
	m.Payload = bytes.Clone(g.payload[:g.length])
	f.group.Set(m, g.group)
	f.index.Set(m, uint8(bits.TrailingZeros32(missing)))
	f.count.Set(m, 0)
	f.length.Set(m, g.length)
	// The handler of FEC ignores it: the group is done.
	if microproto.Raise(x, microproto.SegmentFromNet, m) {
		x.Forward(m)
	}
}

// add adds a frame.
func (s *xor) add(m *microproto.Message, length uint16) {
	s.header = mix(s.header, m.Header())
	s.payload = mix(s.payload, m.Payload)
	s.length ^= length
}

func (s *xor) clear() {
	s.header, s.payload = s.header[:0], s.payload[:0]
	s.length = 0
}

// mix adds src to dst, which grows with zeros as needed.
func mix(dst, src []byte) []byte {
	for len(dst) < len(src) {
		dst = append(dst, 0)
	}
	for i, c := range src {
		dst[i] ^= c
	}
	return dst
}
