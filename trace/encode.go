package trace

import (
	"encoding/binary"
	"math"
)

// A trace file is little endian. It begins with Magic, the version (2 bytes), RecordBytes (2 bytes) and 4 bytes of
// zero. Blocks follow: a type (1 byte), a length (4 bytes) and as many bytes. A block of type blockNode begins a node;
// the others are of the node that began last. Readers skip blocks of types that they do not know.
const (
	Magic   = "P2PTRACE"
	Version = 1

	PreambleBytes = 16
	blockHeader   = 5
)

const (
	blockNode = iota + 1
	blockSessions
	blockTexts
	blockLayouts
	blockPings
	blockRecords
	blockFrames // of the records in the block before
)

// chunkRecords is the number of records of a block: what is lost with the end of a truncated file is less.
const chunkRecords = 4096

// Append appends a file of these nodes to b.
func Append(b []byte, nodes ...*Node) []byte {
	b = append(b, Magic...)
	b = binary.LittleEndian.AppendUint16(b, Version)
	b = binary.LittleEndian.AppendUint16(b, RecordBytes)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, n := range nodes {
		b = n.append(b)
	}
	return b
}

func (n *Node) append(b []byte) []byte {
	w := writer{b}
	w.block(blockNode, func() {
		for _, s := range []string{n.Name, n.Run, n.Program, n.Cluster, n.Host} {
			w.text(s)
		}
		w.texts(n.Rails)
		w.flag(n.Virtual)
		for _, v := range []int64{n.Began, n.Wall, n.At, int64(n.Overwritten)} {
			w.u64(uint64(v))
		}
	})
	w.block(blockTexts, func() { w.texts(n.Texts) })
	w.block(blockSessions, func() {
		w.u32(uint32(len(n.Sessions)))
		for _, s := range n.Sessions {
			w.text(s.Name)
			w.text(s.Peer)
		}
	})
	w.block(blockLayouts, func() {
		w.u32(uint32(len(n.Layouts)))
		for i := range n.Layouts {
			w.layout(&n.Layouts[i])
		}
	})
	w.block(blockPings, func() {
		w.u32(uint32(len(n.Pings)))
		for _, p := range n.Pings {
			w.text(p.Peer)
			w.flag(p.Asked)
			for _, v := range []uint64{p.Number, uint64(p.Sent), uint64(p.Answered), uint64(p.Reflected)} {
				w.u64(v)
			}
		}
	})
	for from := 0; from < len(n.Records); from += chunkRecords {
		to := min(from+chunkRecords, len(n.Records))
		w.block(blockRecords, func() {
			for i := range n.Records[from:to] {
				w.record(&n.Records[from+i])
			}
		})
		if n.Frames != nil {
			w.block(blockFrames, func() {
				for _, f := range n.Frames[from:to] {
					f = f[:min(len(f), math.MaxUint16)]
					w.u16(uint16(len(f)))
					w.b = append(w.b, f...)
				}
			})
		}
	}
	return w.b
}

// writer appends values to b.
type writer struct{ b []byte }

func (w *writer) block(kind byte, contents func()) {
	w.b = append(w.b, kind, 0, 0, 0, 0)
	from := len(w.b)
	contents()
	binary.LittleEndian.PutUint32(w.b[from-4:], uint32(len(w.b)-from))
}

func (w *writer) u16(v uint16) { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

func (w *writer) flag(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *writer) text(s string) {
	s = s[:min(len(s), math.MaxUint16)]
	w.u16(uint16(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) texts(s []string) {
	w.u32(uint32(len(s)))
	for i := range s {
		w.text(s[i])
	}
}

func (w *writer) layout(l *Layout) {
	w.u16(l.Session)
	w.b = append(w.b, l.Epoch)
	w.flag(l.Asynchronous)
	w.flag(l.WAN)
	w.flag(l.Sealed)
	for _, s := range []string{l.Network, l.Locality, l.Column} {
		w.text(s)
	}
	w.texts(l.Protocols)
	w.u32(uint32(l.HeaderBytes))
	w.u32(l.Local)
	w.u32(l.Remote)
	w.u32(uint32(len(l.Fields)))
	for _, f := range l.Fields {
		w.text(f.Protocol)
		w.text(f.Name)
		w.u32(uint32(f.Offset))
		w.u32(uint32(f.Length))
	}
}

func (w *writer) record(r *Record) {
	w.u64(uint64(r.At))
	w.u64(r.Number)
	w.b = append(w.b, byte(r.Kind), byte(r.Cause), r.Rail, r.Epoch)
	w.u16(r.Session)
	w.u16(r.Count)
	for _, v := range [...]uint32{r.Bytes, r.Tag, r.Window, r.InFlight, r.Waiting, r.Value} {
		w.u32(v)
	}
}
