package ctp

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Small messages that wait for company go as one: a *bundle* is a message of a tag of its
// own, labelled with the number of those in it. It holds a head for each, of 16 bytes
// (tag, label, length), then zeros up to messageCost bytes for each but the first, then
// their payloads. So a bundle is worth of the receiver's queue exactly what its messages
// are worth one by one, and nobody below needs to know of it: credit, acknowledgements
// and the accounts that outlive a composition stay what they are.

const (
	bundleTag     = grantTag - 1 // no user has it
	bundleHead    = 16
	bundleMost    = 64  // messages of one
	bundleMessage = 512 // bytes of a message that is worth copying for it
)

// together are messages that have been started and wait for company. Their payloads are
// still the user's.
type together struct {
	messages []waitingMessage // bundleMost of them; nil before the first
	n, bytes int
	payload  []byte // of the bundle that is being made
}

type waitingMessage struct {
	tag   uint32
	label uint64
	data  []byte
}

// bundleBytes is the length of a bundle of n messages with payloads of so many bytes.
func bundleBytes(n, bytes int) int { return (n-1)*messageCost + bytes }

// SendMore implements microproto.Coalescer.
func (s *Synchronous) SendMore(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	if len(data) > bundleMessage {
		return s.Send(x, tag, label, data)
	}
	if err := s.admit(x, tag, data); err != nil {
		return 0, err
	}
	t := &s.together
	if t.n == bundleMost || t.n > 0 && bundleBytes(t.n+1, t.bytes+len(data)) > *s.segment {
		if err := s.Flush(x); err != nil {
			return 0, err
		}
	}
	t.add(tag, label, data)
	return s.begin(data), nil
}

func (t *together) add(tag uint32, label uint64, data []byte) {
	if t.messages == nil { // most sessions send nothing so small
		t.messages = make([]waitingMessage, bundleMost)
	}
	t.messages[t.n] = waitingMessage{tag, label, data}
	t.n++
	t.bytes += len(data)
}

// Flush implements microproto.Coalescer.
func (s *Synchronous) Flush(x *microproto.Exec) error {
	t := &s.together
	if t.n == 0 {
		return nil
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		return microproto.ErrBusy
	}
	o := outgoing{t.messages[0].tag, t.messages[0].label, s.sending.last}
	if m.Payload = t.messages[0].data; t.n > 1 {
		m.Payload = t.pack()
		if err := x.Own(m); err != nil {
			x.Drop(m, "no memory for a bundle")
			return microproto.ErrBusy
		}
		o.tag, o.label = bundleTag, uint64(t.n)
	}
	clear(t.messages[:t.n])
	t.n, t.bytes = 0, 0
	s.sending.tags.push(o)
	microproto.Raise(x, microproto.MessageFromUser, m)
	return nil
}

// pack lays the messages out. The memory is used again.
func (t *together) pack() []byte {
	front := (t.n - 1) * messageCost
	p := append(t.payload[:0], make([]byte, front)...)
	for i := range t.messages[:t.n] {
		m, h := &t.messages[i], p[i*bundleHead:]
		binary.BigEndian.PutUint32(h, m.tag)
		binary.BigEndian.PutUint64(h[4:], m.label)
		binary.BigEndian.PutUint32(h[12:], uint32(len(m.data)))
		p = append(p, m.data...)
	}
	t.payload = p
	return p
}

// wellPacked tells whether data is a bundle of n messages.
func wellPacked(n uint64, data []byte) bool {
	if n < 2 || n > bundleMost || uint64(len(data)) < (n-1)*messageCost {
		return false
	}
	bytes := uint64(0)
	for i := range int(n) {
		h := data[i*bundleHead:]
		if binary.BigEndian.Uint32(h) >= bundleTag {
			return false
		}
		bytes += uint64(binary.BigEndian.Uint32(h[12:]))
	}
	return (n-1)*messageCost+bytes == uint64(len(data))
}

// unpack stores the messages of a bundle in their queues.
func (s *Synchronous) unpack(x *microproto.Exec, a *assembled) {
	n := s.label.Get(a.Segment)
	if !wellPacked(n, a.Data) {
		x.Fail(fmt.Errorf("%w: %d messages in %d bytes", errBundle, n, len(a.Data)))
		return
	}
	rest := a.Data[int(n-1)*messageCost:]
	for i := range int(n) {
		h := a.Data[i*bundleHead:]
		length := binary.BigEndian.Uint32(h[12:])
		q := s.queue(binary.BigEndian.Uint32(h))
		if q == nil {
			x.Fail(fmt.Errorf("%w: the other end uses more than %d tags in one session", ErrSlot, maxTags))
			return
		}
		data := s.buffers.get(int(length))
		copy(data, rest)
		rest = rest[length:]
		q.messages.push(stored{label: binary.BigEndian.Uint64(h[4:]), data: data})
		s.arrivals++
	}
	s.buffers.put(a.Data)
	s.arrivedAlone(x)
}

// ownTag tells whether a tag is the channel's and no user's.
func ownTag(tag uint32) bool { return tag >= bundleTag }
