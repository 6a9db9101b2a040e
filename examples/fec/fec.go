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
	OptionSegments = "fec.segments" // segments to one parity segment, 2 to 32 (default 4)
	OptionFlush    = "fec.flush.ns" // longest wait for a group to become full (default 2 ms)
)

// FEC is forward error correction for channels that send nothing again: after every k
// segments goes one more, their exclusive or, and of k + 1 any one may be lost. It costs
// 1/k of the bandwidth. A group that does not fill up is closed after OptionFlush.
//
// The parity frame is the exclusive or of whole frames, headers included, so what FEC
// gives back is the frame that the network lost: it enters the channel as if it had
// come, and the other micro-protocols need not know. FEC stands behind all of them.
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

// incoming is a group of the other end's.
type incoming struct {
	xor
	group uint32
	came  uint32 // bit i: segment i
	count int    // segments in the group, 0: its parity has not come
	used  bool
	done  bool // nothing is left to repair
}

// xor is the exclusive or of frames, in parts.
type xor struct {
	header, payload []byte
	length          uint16
}

const (
	isParity    = 255
	groups      = 64 // incoming ones that are remembered
	maxSegments = 32
)

var flushGroup = microproto.NewEvent[*FEC]("fec.flush")

// New makes a FEC with the settings of a composition.
func New(o microproto.Options) (microproto.MicroProtocol, error) {
	f := &FEC{segments: 4, flush: 2 * time.Millisecond}
	if v, ok := o[OptionSegments]; ok {
		f.segments = int(v)
	}
	if v, ok := o[OptionFlush]; ok {
		f.flush = time.Duration(v)
	}
	if f.segments < 2 || f.segments > maxSegments || f.flush <= 0 {
		return nil, fmt.Errorf("fec: %d segments to a parity segment, flushed after %v: 2 to %d and a positive time are wanted", f.segments, f.flush, maxSegments)
	}
	return f, nil
}

// Name implements microproto.MicroProtocol.
func (f *FEC) Name() string { return "FEC" }

// Repaired is the number of segments that were lost and given back.
func (f *FEC) Repaired() uint64 { return f.repaired }

// Attach implements microproto.MicroProtocol.
func (f *FEC) Attach(b *microproto.Binder) error {
	f.group = microproto.WireAttr[uint32](b, "fec.group")
	f.index = microproto.WireAttr[uint8](b, "fec.index")
	f.count = microproto.WireAttr[uint8](b, "fec.count")
	f.length = microproto.WireAttr[uint16](b, "fec.length")
	microproto.Bind(b, microproto.SegmentToNet, microproto.Late, f.number)
	// By then all have written their part of the header.
	microproto.Bind(b, ctp.SegmentSent, microproto.Late, f.add)
	// Before all others: the header is still what came.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.First-1, f.take)
	microproto.Bind(b, flushGroup, microproto.Normal, func(x *microproto.Exec, _ *FEC) {
		f.timer = 0
		f.finish(x)
	})
	return nil
}

// number puts a segment into the open group.
func (f *FEC) number(_ *microproto.Exec, m *microproto.Message) {
	f.group.Set(m, f.open)
	f.index.Set(m, uint8(f.sent))
	f.count.Set(m, 0)
	f.length.Set(m, uint16(len(m.Payload)))
}

// add takes what was transmitted into the parity, and sends that when the group is full.
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
	// Without a message or room below the group goes without: parity is only a help.
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

// take notes what came, and gives back what is missing if it can.
func (f *FEC) take(x *microproto.Exec, m *microproto.Message) {
	index, count := int(f.index.Get(m)), int(f.count.Get(m))
	parity := index == isParity
	if parity && (count < 1 || count > maxSegments) || !parity && (index >= maxSegments || int(f.length.Get(m)) != len(m.Payload)) {
		x.Drop(m, "fec: malformed")
		return
	}
	if g := f.find(f.group.Get(m)); g != nil {
		switch {
		case parity && g.count == 0:
			g.count = count
			g.add(m, f.length.Get(m))
		case !parity && g.came>>index&1 == 0:
			g.came |= 1 << index
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

// repair lets the one segment that is missing from a group enter the channel.
func (f *FEC) repair(x *microproto.Exec, g *incoming) {
	if g.count == 0 || g.done {
		return
	}
	all := uint32(1)<<g.count - 1
	missing := all &^ g.came
	if missing == 0 || bits.OnesCount32(missing) > 1 {
		g.done = missing == 0
		return
	}
	g.done = true
	if int(g.length) > len(g.payload) {
		return // the sender's parity does not fit its segments
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
	// Its own handler sees a group that is done.
	if microproto.Raise(x, microproto.SegmentFromNet, m) {
		x.Forward(m)
	}
}

type nextGroup uint32

// add takes a frame in.
func (s *xor) add(m *microproto.Message, length uint16) {
	s.header = mix(s.header, m.Header())
	s.payload = mix(s.payload, m.Payload)
	s.length ^= length
}

func (s *xor) clear() {
	s.header, s.payload, s.length = s.header[:0], s.payload[:0], 0
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
