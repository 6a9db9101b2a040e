package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrTruncated states that a file ends within a block. The blocks before it were read.
var ErrTruncated = errors.New("trace: the file is truncated")

// errMalformed states that the content of a block does not match its type.
var errMalformed = errors.New("trace: a malformed block")

// CheckPreamble returns why a file whose first PreambleBytes bytes are b cannot be read: ErrTruncated if it is a trace file that has
// fewer.
func CheckPreamble(b []byte) error {
	if n := min(len(b), len(Magic)); n == 0 || string(b[:n]) != Magic[:n] {
		return errors.New("trace: not a trace file of obstacle")
	}
	if len(b) < PreambleBytes {
		return ErrTruncated
	}
	version, size := binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:])
	if version != Version || size != RecordBytes {
		return fmt.Errorf("trace: the file has version %d with records of %d bytes; this program reads version %d "+
			"with %d: use the program that has written it", version, size, Version, RecordBytes)
	}
	return nil
}

// Parse reads a file. Of a file that ends early it returns what is whole, with ErrTruncated. The nodes refer to b.
func Parse(b []byte) ([]*Node, error) {
	if err := CheckPreamble(b); err != nil {
		return nil, err
	}
	var nodes []*Node
	for at := PreambleBytes; at < len(b); {
		if len(b)-at < blockHeader {
			return nodes, ErrTruncated
		}
		kind, length := b[at], int64(binary.LittleEndian.Uint32(b[at+1:]))
		payload := b[at+blockHeader:]
		whole := length <= int64(len(payload))
		if whole {
			payload = payload[:length]
		}
		if kind == blockNode && whole {
			nodes = append(nodes, &Node{})
		}
		if len(nodes) > 0 && (whole || kind == blockRecords) {
			if !nodes[len(nodes)-1].parse(kind, payload, whole) {
				return nodes, fmt.Errorf("%w of type %d at byte %d", errMalformed, kind, at)
			}
		}
		if !whole {
			return nodes, ErrTruncated
		}
		at += blockHeader + int(length)
	}
	return nodes, nil
}

// parse reads a block. It returns false if the block is malformed.
func (n *Node) parse(kind byte, payload []byte, whole bool) bool {
	r := reader{b: payload}
	switch kind {
	case blockNode:
		for _, s := range []*string{&n.Name, &n.Run, &n.Program, &n.Cluster, &n.Host} {
			*s = r.text()
		}
		n.Rails = r.texts()
		n.Virtual = r.u8() != 0
		n.Began, n.Wall, n.At = int64(r.u64()), int64(r.u64()), int64(r.u64())
		n.Overwritten = r.u64()
	case blockTexts:
		n.Texts = r.texts()
	case blockSessions:
		for range r.count(4) {
			n.Sessions = append(n.Sessions, Session{r.text(), r.text()})
		}
	case blockLayouts:
		for range r.count(32) {
			n.Layouts = append(n.Layouts, r.layout())
		}
	case blockPings:
		for range r.count(35) {
			p := Ping{Peer: r.text(), Asked: r.u8() != 0, Number: r.u64()}
			p.Sent, p.Answered, p.Reflected = int64(r.u64()), int64(r.u64()), int64(r.u64())
			n.Pings = append(n.Pings, p)
		}
	case blockRecords:
		for len(r.b) >= RecordBytes {
			n.Records = append(n.Records, r.record())
			if n.Frames != nil {
				n.Frames = append(n.Frames, nil)
			}
		}
		return len(r.b) == 0 || !whole
	case blockFrames:
		n.parseFrames(&r)
	default:
		return true
	}
	return !r.bad && len(r.b) == 0
}

// parseFrames reads the frames of the newest records: those without frames so far.
func (n *Node) parseFrames(r *reader) {
	first := 0
	if n.Frames == nil {
		n.Frames = make([][]byte, len(n.Records))
	}
	first = max(0, (len(n.Records)-1)/chunkRecords*chunkRecords)
	for i := first; i < len(n.Records) && !r.bad; i++ {
		n.Frames[i] = r.take(int(r.u16()))
	}
}

// reader takes values from b. After the first that is missing it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int(r.u16()))) }

// count reads a number of elements of at least least bytes each, all of which lie in b.
func (r *reader) count(least int) int {
	n := r.u32()
	if uint64(n)*uint64(least) > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) texts() (out []string) {
	for range r.count(2) {
		out = append(out, r.text())
	}
	return out
}

func (r *reader) layout() Layout {
	l := Layout{
		Session: r.u16(), Epoch: r.u8(), Asynchronous: r.u8() != 0, WAN: r.u8() != 0, Sealed: r.u8() != 0,
		Network: r.text(), Locality: r.text(), Column: r.text(), Protocols: r.texts(),
		HeaderBytes: int(r.u32()), Local: r.u32(), Remote: r.u32(),
	}
	for range r.count(12) {
		l.Fields = append(l.Fields, Field{r.text(), r.text(), int(r.u32()), int(r.u32())})
	}
	return l
}

func (r *reader) record() (out Record) {
	out.At, out.Number = int64(r.u64()), r.u64()
	out.Kind, out.Cause, out.Rail, out.Epoch = Kind(r.u8()), Cause(r.u8()), r.u8(), r.u8()
	out.Session, out.Count = r.u16(), r.u16()
	for _, v := range [...]*uint32{&out.Bytes, &out.Tag, &out.Window, &out.InFlight, &out.Waiting, &out.Value} {
		*v = r.u32()
	}
	return out
}
