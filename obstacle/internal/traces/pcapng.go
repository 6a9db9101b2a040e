package traces

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/p2pdc/p2pdc/trace"
)

// Blocks, options and link types of pcapng (draft-ietf-opsawg-pcapng), and tags of Wireshark's exported PDUs.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6
	byteOrder      = 0x1a2b3c4d

	optionEnd      = 0
	optionProgram  = 4 // shb_userappl
	optionName     = 2 // if_name
	optionResol    = 9 // if_tsresol
	optionFlags    = 2 // epb_flags
	flagInbound    = 1
	flagOutbound   = 2
	linkUpperPDU   = 252
	nanoseconds    = 9
	tagDissector   = 12
	tagEnd         = 0
	dissector      = "p2psap"
	wiresharkBound = 1 << 18 // the longest packet
)

// What the first byte of an exported PDU says. docs/p2psap.lua reads both.
const (
	pduLayout = 0
	pduFrame  = 1
)

// ErrNoFrames: the files hold no frames.
var ErrNoFrames = errors.New("trace: no frames were kept: record with --trace-frames BYTES")

// Pcapng writes the frames that were kept as exported PDUs for Wireshark. The layouts of the headers come first. There
// is an interface for each node.
func (s *Set) Pcapng(to io.Writer) error {
	kept := false
	for _, n := range s.Nodes {
		kept = kept || n.Frames != nil
	}
	if !kept {
		return ErrNoFrames
	}
	w := pcapng{w: bufio.NewWriter(to)}
	w.section()
	for _, n := range s.Nodes {
		w.network(n.Name)
	}
	base := s.Nodes[0].Began - s.Offsets[0]
	if s.Nodes[0].Virtual {
		base = 0
	}
	ids := map[layoutOf]int{}
	for i, n := range s.Nodes {
		for k := range n.Layouts {
			l := &n.Layouts[k]
			if id := len(ids); id <= math.MaxUint16 {
				ids[layoutOf{i, l.Session, l.Epoch}] = id
				pdu := appendLayout(nil, n, l, id)
				w.packet(i, base, pdu, len(pdu), 0)
			}
		}
	}
	for _, at := range s.ordered() {
		n := s.Nodes[at.node]
		r := &n.Records[at.record]
		id, ok := ids[layoutOf{at.node, r.Session, r.Epoch}]
		if (r.Kind != trace.SegmentOut && r.Kind != trace.SegmentIn) || n.Frames == nil || !ok {
			continue
		}
		pdu := appendFrame(nil, r, id)
		whole := len(pdu) + int(r.Bytes/uint32(max(r.Count, 1)))
		pdu = append(pdu, n.Frames[at.record]...)
		flags := uint32(flagOutbound)
		if r.Kind == trace.SegmentIn {
			flags = flagInbound
		}
		w.packet(at.node, base+at.at, pdu, max(whole, len(pdu)), flags)
	}
	return w.w.Flush()
}

type layoutOf struct {
	node    int
	session uint16
	epoch   uint8
}

// appendLayout appends the PDU of a layout.
func appendLayout(b []byte, n *trace.Node, l *trace.Layout, id int) []byte {
	of := n.Session(l.Session)
	b = append(b, pduLayout)
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	b = append(b, l.Epoch)
	for _, s := range []string{n.Name, of.Peer, of.Name, l.Column, l.Network} {
		b = appendShort(b, s)
	}
	fields := l.Fields[:min(len(l.Fields), math.MaxUint8)]
	b = binary.BigEndian.AppendUint16(b, uint16(max(l.HeaderBytes, 0)))
	b = append(b, byte(len(fields)))
	for _, f := range fields {
		b = appendShort(b, f.Protocol)
		b = appendShort(b, f.Name)
		b = binary.BigEndian.AppendUint16(b, uint16(f.Offset))
		b = binary.BigEndian.AppendUint16(b, uint16(f.Length))
	}
	return b
}

func appendShort(b []byte, s string) []byte {
	s = s[:min(len(s), math.MaxUint8)]
	return append(append(b, byte(len(s))), s...)
}

// appendFrame appends what precedes the bytes of a frame in its PDU.
func appendFrame(b []byte, r *trace.Record, id int) []byte {
	b = append(b, pduFrame)
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	direction := byte(0)
	if r.Kind == trace.SegmentIn {
		direction = 1
	}
	b = append(b, direction)
	b = binary.BigEndian.AppendUint16(b, r.Count)
	return binary.BigEndian.AppendUint32(b, r.Bytes)
}

// pcapng writes blocks. Flush of w returns the first error.
type pcapng struct {
	w    *bufio.Writer
	body []byte
}

func (w *pcapng) block(kind uint32) {
	for len(w.body)%4 != 0 {
		w.body = append(w.body, 0)
	}
	length := uint32(len(w.body) + 12)
	head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, kind), length)
	_, _ = w.w.Write(head)
	_, _ = w.w.Write(w.body)
	_, _ = w.w.Write(binary.LittleEndian.AppendUint32(nil, length))
	w.body = w.body[:0]
}

func (w *pcapng) u16(v ...uint16) {
	for _, v := range v {
		w.body = binary.LittleEndian.AppendUint16(w.body, v)
	}
}

func (w *pcapng) u32(v ...uint32) {
	for _, v := range v {
		w.body = binary.LittleEndian.AppendUint32(w.body, v)
	}
}

func (w *pcapng) option(code uint16, value []byte) {
	value = value[:min(len(value), math.MaxUint16)]
	w.u16(code, uint16(len(value)))
	w.body = append(w.body, value...)
	for len(w.body)%4 != 0 {
		w.body = append(w.body, 0)
	}
}

func (w *pcapng) section() {
	w.u32(byteOrder)
	w.u16(1, 0)
	w.u32(math.MaxUint32, math.MaxUint32) // the length of the section is not known
	w.option(optionProgram, []byte("obstacle trace export"))
	w.option(optionEnd, nil)
	w.block(blockSection)
}

func (w *pcapng) network(name string) {
	w.u16(linkUpperPDU, 0)
	w.u32(wiresharkBound)
	w.option(optionName, []byte(name))
	w.option(optionResol, []byte{nanoseconds})
	w.option(optionEnd, nil)
	w.block(blockInterface)
}

// packet writes a PDU of which whole bytes were sent. flags of 0 are none.
func (w *pcapng) packet(network int, at int64, pdu []byte, whole int, flags uint32) {
	tags := binary.BigEndian.AppendUint16(nil, tagDissector)
	tags = binary.BigEndian.AppendUint16(tags, uint16(len(dissector)+2)) // tags are padded to 4 bytes
	tags = append(append(tags, dissector...), 0, 0)
	tags = binary.BigEndian.AppendUint32(tags, tagEnd)
	w.u32(uint32(network), uint32(uint64(at)>>32), uint32(at))
	w.u32(uint32(len(tags)+len(pdu)), uint32(min(len(tags)+whole, wiresharkBound)))
	w.body = append(append(w.body, tags...), pdu...)
	for len(w.body)%4 != 0 {
		w.body = append(w.body, 0)
	}
	if flags != 0 {
		w.option(optionFlags, binary.LittleEndian.AppendUint32(nil, flags))
		w.option(optionEnd, nil)
	}
	w.block(blockPacket)
}
