package ctp

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Several small messages may be sent as one. Such a coalesced message has a tag of its own,
// and its label is the number of messages in it. It begins with a head for each message: 16
// bytes of tag, label and length, padded to messageCost bytes for all but one; the payloads
// follow. So it takes as many bytes of the receiver's queue as its messages would one by one,
// and credit, acknowledgements and the HandoverState need no change for it.

const (
	coalescedTag      = grantTag - 1 // reserved
	coalescedHead     = 16           // bytes
	maxCoalesced      = 64           // messages in one
	maxCoalescedBytes = 512          // a longer message is not worth the copy
)

// coalescingBuffer holds messages that were started and wait to be sent as one. Their
// payloads are still in the user's memory.
type coalescingBuffer struct {
	messages []coalescedMessage // maxCoalesced of them; nil before the first
	n, bytes int
	payload  []byte // reused
}

type coalescedMessage struct {
	tag   uint32
	label uint64
	data  []byte
}

// coalescedBytes returns the length of a coalesced message of n messages with so many payload
// bytes in all.
func coalescedBytes(n, bytes int) int { return (n-1)*messageCost + bytes }

// SendMore implements microproto.Coalescer.
func (s *Synchronous) SendMore(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	if len(data) > maxCoalescedBytes {
		return s.Send(x, tag, label, data)
	}
	if err := s.admit(x, tag, data); err != nil {
		return 0, err
	}
	t := &s.coalescing
	if t.n == maxCoalesced || t.n > 0 && coalescedBytes(t.n+1, t.bytes+len(data)) > *s.segment {
		if err := s.Flush(x); err != nil {
			return 0, err
		}
	}
	t.add(tag, label, data)
	return s.startTransfer(data), nil
}

func (t *coalescingBuffer) add(tag uint32, label uint64, data []byte) {
	if t.messages == nil { // most sessions never send small messages
		t.messages = make([]coalescedMessage, maxCoalesced)
	}
	t.messages[t.n] = coalescedMessage{tag, label, data}
	t.n++
	t.bytes += len(data)
}

// Flush implements microproto.Coalescer.
func (s *Synchronous) Flush(x *microproto.Exec) error {
	t := &s.coalescing
	if t.n == 0 {
		return nil
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		return microproto.ErrBusy
	}
	o := transferHeader{t.messages[0].tag, t.messages[0].label, s.sending.last}
	if m.Payload = t.messages[0].data; t.n > 1 {
		m.Payload = t.pack()
		if err := x.Own(m); err != nil {
			x.Drop(m, "no memory to coalesce")
			return microproto.ErrBusy
		}
		o.tag, o.label = coalescedTag, uint64(t.n)
	}
	clear(t.messages[:t.n])
	t.n, t.bytes = 0, 0
	s.sending.tags.Push(o)
	microproto.Raise(x, microproto.MessageFromUser, m)
	return nil
}

func (t *coalescingBuffer) pack() []byte {
	front := (t.n - 1) * messageCost
	p := append(t.payload[:0], make([]byte, front)...)
	for i := range t.messages[:t.n] {
		m, h := &t.messages[i], p[i*coalescedHead:]
		binary.BigEndian.PutUint32(h, m.tag)
		binary.BigEndian.PutUint64(h[4:], m.label)
		binary.BigEndian.PutUint32(h[12:], uint32(len(m.data)))
		p = append(p, m.data...)
	}
	t.payload = p
	return p
}

// validCoalesced reports whether data is a coalesced message of n messages.
func validCoalesced(n uint64, data []byte) bool {
	if n < 2 || n > maxCoalesced || uint64(len(data)) < (n-1)*messageCost {
		return false
	}
	bytes := uint64(0)
	for i := range int(n) {
		h := data[i*coalescedHead:]
		if binary.BigEndian.Uint32(h) >= coalescedTag {
			return false
		}
		bytes += uint64(binary.BigEndian.Uint32(h[12:]))
	}
	return (n-1)*messageCost+bytes == uint64(len(data))
}

func (s *Synchronous) unpack(x *microproto.Exec, a *assembled) {
	n := s.label.Get(a.Segment)
	s.buffers.finish(x, s.buffers.flatten(&a.contents))
	if !validCoalesced(n, a.data) {
		x.Fail(fmt.Errorf("%w: %d messages in %d bytes", errCoalesced, n, a.length))
		return
	}
	rest := a.data[int(n-1)*messageCost:]
	for i := range int(n) {
		h := a.data[i*coalescedHead:]
		length := binary.BigEndian.Uint32(h[12:])
		m := storedMessage{
			label:    binary.BigEndian.Uint64(h[4:]),
			contents: contents{length: int(length), data: s.buffers.clone(rest, int(length))},
		}
		if !s.push(x, binary.BigEndian.Uint32(h), m) {
			return
		}
		rest = rest[length:]
	}
	s.buffers.put(a.data)
	s.scheduleGrant(x)
}

// reservedTag reports whether a tag is not available to users.
func reservedTag(tag uint32) bool { return tag >= coalescedTag }
