package ctp

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// Synchronous is the endpoint of the synchronous columns. Messages have a tag and a label, and
// arrive exactly once, in the order of their tag. A transfer is accepted when it is stored at
// the other end: when all of its segments are acknowledged or, over a reliable link without
// PositiveAck, when a grant says so.
//
// OptionReceive bounds the receiver's queue: payload plus 64 bytes for each message. PositiveAck
// tells the sender how much is free; over a reliable link Synchronous sends grants itself (see
// grants.go). A peer that sends more than it was granted fails the composite.
type Synchronous struct {
	named
	limit, peerLimit uint64
	tag              microproto.Attr[uint32]
	label            microproto.Attr[uint64]
	number           microproto.Attr[uint64] // local: the transfer whose last segment this is, 0: none
	offset, total    microproto.Attr[uint32]
	backlog, segment *int
	buffers          *buffers
	posted           *posted
	grant, sent      *uint64
	consumed, credit *uint64
	taken            *uint64
	mostMessages     int

	grants       bool                    // no PositiveAck carries the credit
	advertised   uint64                  // bytes granted by the last grant
	acknowledged uint64                  // transfers acknowledged by the last grant
	grantDue     bool                    // the pool had no message for a grant
	carries      bool                    // segments carry grants
	grantLate    bool                    // a grant that no message has carried waits for grantDelay
	storedAttr   microproto.Attr[uint64] // if carries; else not declared
	grantedAttr  microproto.Attr[uint64]
	grantBytes   [grantPayload]byte
	grantDelay   time.Duration // from the arrival of a message to its grant
	grantTimer   microproto.TimerID

	sending    sending
	alone      transferHeader // of the segment that is sent by the common path
	coalescing coalescingBuffer
	accepted   uint64
	arrivals   uint64
	stored     uint64
	queues     []tagQueue
	slots      []slotSize
}

// sending numbers the transfers.
type sending struct {
	last uint64                     // number of the last transfer
	tags fifo.Queue[transferHeader] // of the messages not yet segmented completely
}

type transferHeader struct {
	tag    uint32
	label  uint64
	number uint64
}

type slotSize struct {
	tag    uint32
	length int
}

type tagQueue struct {
	tag      uint32
	messages fifo.Queue[storedMessage]
}

type storedMessage struct {
	label uint64
	contents
}

// defaultGrantDelay is shorter than a round trip through a scheduler, and longer than the time
// in which a receiver that keeps up receives a message.
const defaultGrantDelay = 200 * time.Microsecond

func newSynchronous(s *settings) microproto.MicroProtocol {
	return &Synchronous{named: s.named, limit: s.queue(OptionReceive), peerLimit: s.queue(OptionPeerReceive),
		grantDelay: option(s, OptionAckDelay, defaultGrantDelay, 0, time.Second),
		carries:    option(s, OptionGrantsInMessages, 0, 0, 1) == 1}
}

// Attach implements microproto.MicroProtocol.
func (s *Synchronous) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrOffset, &s.offset)
	lookupAttr(b, attrTotal, &s.total)
	lookupCell(b, cellBacklog, &s.backlog)
	lookupCell(b, microproto.CellSegmentBytes, &s.segment)
	lookupCell(b, cellBuffers, &s.buffers)
	lookupCell(b, cellPosted, &s.posted)
	wireAttr(b, "synchronous.tag", &s.tag)
	wireAttr(b, "synchronous.label", &s.label)
	if s.carries {
		wireAttr(b, "synchronous.stored", &s.storedAttr)
		wireAttr(b, "synchronous.granted", &s.grantedAttr)
	}
	s.number = microproto.LocalAttr[uint64](b, "synchronous.transfer")
	declareCell(b, cellGrant, &s.grant, math.MaxUint64)
	declareCell(b, cellSent, &s.sent, 0)
	declareCell(b, cellConsumed, &s.consumed, 0)
	declareCell(b, cellCredit, &s.credit, s.limit)
	declareCell(b, cellTaken, &s.taken, 0)
	s.mostMessages = max(1, b.Limits().Messages/4)
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Early, s.fillHeader)
	bind(b, microproto.SegmentAcked, s.acked)
	s.posted.claims = s.claims
	bind(b, messageAssembled, s.store)
	s.bindGrants(b)
	if !s.carries { // the number of a grant is final only when its segment is certain to be sent
		b.Common(microproto.CommonCase{
			Send: s.sendsAlone, Expect: s.expectsAlone, Take: s.takeAlone, Priority: microproto.Last,
		})
	}
	return nil
}

// Slot implements microproto.Endpoint: it bounds the messages of a tag. Those of other tags are
// bounded by the queue only.
func (s *Synchronous) Slot(tag uint32, length int) error {
	if reservedTag(tag) {
		return fmt.Errorf("%w: tag %d is reserved", ErrSlot, tag)
	}
	if length < 0 || cost(length) > s.limit {
		return fmt.Errorf("%w: %d bytes for tag %d, the receive queue has %d", ErrMessageSize, length, tag, s.limit)
	}
	s.slots = slices.DeleteFunc(s.slots, func(l slotSize) bool { return l.tag == tag })
	s.slots = append(s.slots, slotSize{tag, length})
	return nil
}

// Send implements microproto.Endpoint. ErrMessageSize: the message is longer than its slot or
// than the other end's queue.
func (s *Synchronous) Send(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	if err := s.admit(x, tag, data); err != nil {
		return 0, err
	}
	if err := s.Flush(x); err != nil {
		return 0, err
	}
	if s.alone = (transferHeader{tag: tag, label: label}); x.SendCommon(data, 2) {
		return s.startTransfer(data), nil
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		return 0, microproto.ErrBusy
	}
	m.Payload = data
	number := s.startTransfer(data)
	s.sending.tags.Push(transferHeader{tag, label, number})
	microproto.Raise(x, microproto.MessageFromUser, m)
	return number, nil
}

// admit returns an error if the message cannot be sent, or not now.
func (s *Synchronous) admit(x *microproto.Exec, tag uint32, data []byte) error {
	for _, l := range s.slots {
		if l.tag == tag && len(data) > l.length {
			return fmt.Errorf("%w: %d bytes for tag %d, declared with %d", ErrMessageSize, len(data), tag, l.length)
		}
	}
	if reservedTag(tag) {
		return fmt.Errorf("%w: tag %d is reserved", ErrSlot, tag)
	}
	c := cost(len(data))
	if c > s.peerLimit {
		return fmt.Errorf("%w: %d bytes, the other end's queue has %d", ErrMessageSize, len(data), s.peerLimit)
	}
	if *s.sent+c > *s.grant {
		microproto.Raise(x, CreditBlocked, struct{}{})
		return microproto.ErrBusy
	}
	if *s.backlog >= s.mostMessages {
		return microproto.ErrBusy
	}
	return nil
}

func (s *Synchronous) startTransfer(data []byte) uint64 {
	*s.sent += cost(len(data))
	s.sending.last++
	return s.sending.last
}

func (s *Synchronous) fillHeader(x *microproto.Exec, m *microproto.Message) {
	if s.sending.tags.Len() == 0 {
		return // not submitted by Send
	}
	o := s.sending.tags.Front()
	s.tag.Set(m, o.tag)
	s.label.Set(m, o.label)
	if s.offset.Get(m)+uint32(m.Length()) == s.total.Get(m) {
		s.number.Set(m, o.number)
		s.sending.tags.Drop()
	}
	if s.carries {
		s.carryGrant(x, m)
	}
}

// sendsAlone, expectsAlone and takeAlone are the common case: a short message or, without PositiveAck, a grant.
func (s *Synchronous) sendsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	s.tag.Set(m, s.alone.tag)
	s.label.Set(m, s.alone.label)
	if s.alone.tag != grantTag || !s.grants {
		s.number.Set(m, s.sending.last+1)
	}
	return true
}

func (s *Synchronous) expectsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	return !s.isGrant(m) || s.validGrant(m)
}

func (s *Synchronous) takeAlone(x *microproto.Exec, m *microproto.Message) {
	if s.isGrant(m) {
		s.takeGrant(m)
		return
	}
	a := assembled{m, contents{length: len(m.Payload), data: s.buffers.clone(m.Payload, len(m.Payload))}}
	s.store(x, &a)
}

func (s *Synchronous) isGrant(m *microproto.Message) bool {
	return s.grants && s.tag.Get(m) == grantTag
}

// acked accepts a transfer when its last segment is acknowledged: acknowledgements come in
// order. All segments of a train that was split have the transfer's number.
func (s *Synchronous) acked(_ *microproto.Exec, m *microproto.Message) {
	if n := s.number.Get(m); n > s.accepted && s.offset.Get(m)+uint32(m.Length()) == s.total.Get(m) {
		s.accepted = n
	}
}

// Accepted implements microproto.Endpoint.
func (s *Synchronous) Accepted() uint64 { return s.accepted }

// Arrivals implements microproto.Endpoint: it counts complete messages.
func (s *Synchronous) Arrivals() uint64 { return s.arrivals }

func (s *Synchronous) store(x *microproto.Exec, a *assembled) {
	s.stored += cost(a.length)
	if s.stored-*s.consumed > s.limit {
		x.Fail(fmt.Errorf("%w: more than %d bytes were not received by the user", ErrQueueFull, s.limit))
		return
	}
	if s.tag.Get(a.Segment) == coalescedTag {
		s.unpack(x, a)
		return
	}
	if s.push(x, s.tag.Get(a.Segment), storedMessage{s.label.Get(a.Segment), a.contents}) {
		s.scheduleGrant(x)
	}
}

// push stores a message in the queue of its tag, unless the other end uses too many tags.
func (s *Synchronous) push(x *microproto.Exec, tag uint32, m storedMessage) bool {
	q := s.queue(tag)
	if q == nil {
		x.Fail(fmt.Errorf("%w: the other end uses more than %d tags in one session", ErrSlot, maxTags))
		return false
	}
	q.messages.Push(m)
	s.arrivals++
	return true
}

// maxTags bounds the queues that a peer can make this end allocate.
const maxTags = 1024

// queue returns the queue of a tag, which it creates if necessary; nil beyond maxTags.
func (s *Synchronous) queue(tag uint32) *tagQueue {
	if q := s.find(tag); q != nil || len(s.queues) == maxTags {
		return q
	}
	s.queues = append(s.queues, tagQueue{tag: tag})
	return &s.queues[len(s.queues)-1]
}

func (s *Synchronous) find(tag uint32) *tagQueue {
	for i := range s.queues {
		if s.queues[i].tag == tag {
			return &s.queues[i]
		}
	}
	return nil
}

// Receive implements microproto.Endpoint.
func (s *Synchronous) Receive(x *microproto.Exec, tag uint32, dst []byte,
	labels *[]microproto.SegmentLabel) (microproto.Arrival, error) {
	q := s.find(tag)
	if q == nil || q.messages.Len() == 0 {
		return microproto.Arrival{}, microproto.ErrNothing
	}
	m := q.messages.Front()
	if len(dst) < m.length {
		return microproto.Arrival{Length: m.length}, microproto.ErrShort
	}
	if !m.posted {
		s.Withdraw()
	}
	m.copyTo(dst)
	switch {
	case m.posted:
		s.clearPost()
	case m.data != nil:
		s.buffers.put(m.data)
	default:
		s.buffers.finish(x, m.parts)
	}
	if labels != nil {
		*labels = (*labels)[:0]
		if cap(*labels) > 0 {
			*labels = append(*labels, microproto.SegmentLabel{Length: m.length, Label: m.label})
		}
	}
	return s.consume(x, q), nil
}

// View implements microproto.Endpoint.
func (s *Synchronous) View(x *microproto.Exec, tag uint32, v *microproto.View) (microproto.Arrival, error) {
	s.Withdraw()
	q := s.find(tag)
	if q == nil || q.messages.Len() == 0 {
		return microproto.Arrival{}, microproto.ErrNothing
	}
	if m := q.messages.Front(); m.data != nil || m.length == 0 {
		if free := v.Swap(m.data); free != nil {
			s.buffers.put(free)
		}
	} else {
		v.Keep(m.parts)
		s.buffers.finish(x, m.parts)
	}
	return s.consume(x, q), nil
}

// consume removes the oldest message of a queue and frees its bytes of the receiver's queue.
func (s *Synchronous) consume(x *microproto.Exec, q *tagQueue) microproto.Arrival {
	m := q.messages.Front()
	a := microproto.Arrival{Label: m.label, Newest: m.label, Length: m.length, Fresh: true, Complete: true}
	*s.consumed += cost(m.length)
	q.messages.Drop()
	microproto.Raise(x, Consumed, struct{}{})
	s.grantFreed(x)
	return a
}
