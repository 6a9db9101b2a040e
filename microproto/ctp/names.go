package ctp

import (
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Cells and attributes by which the micro-protocols of a channel work together.
// Who stands higher declares, since a micro-protocol sees what is above it.
const (
	cellBacklog  = "resize.backlog"    // int: messages not yet cut whole; Resize
	cellPause    = "resize.pause"      // bool: enough segments wait below; Resize declares, Retransmit sets
	cellAtOnce   = "resize.at.once"    // bool: a message is cut whole before the Send returns; Resize declares, Asynchronous sets
	cellBuffers  = "resize.buffers"    // buffers: memory of received messages; Resize
	cellPosted   = "receiver.posted"   // posted: where a message is waited for; Resize declares, Synchronous sets
	cellGrant    = "credit.grant"      // uint64: bytes that may be sent in all; Synchronous declares, PositiveAck sets
	cellSent     = "credit.sent"       // uint64: bytes sent in all; Synchronous
	cellConsumed = "receiver.consumed" // uint64: bytes that the user took; Synchronous
	cellTaken    = "receiver.taken"    // uint64: bytes of messages that came before the channel was opened; Synchronous
	cellCredit   = "receiver.credit"   // uint64: bytes granted to the other end; Synchronous declares, ReliableFIFO sets
	cellNext     = "sequenced.next"    // uint32: number of the next new segment; SequencedSegment
	cellAckEach  = "ack.each"          // bool: of a train every segment counts, and each that comes out of order is acknowledged; PositiveAck declares, DuplicateAck sets
	cellSentNext = "sequenced.sent"    // uint32: number behind the highest that was transmitted; SequencedSegment declares, Retransmit sets
	cellExpected = "receiver.expected" // uint32: number that ReliableFIFO waits for; SequencedSegment declares, ReliableFIFO sets
	cellSeen     = "receiver.seen"     // uint64: bit i: expected+1+i is stored; likewise
	cellRTO      = "rtt.rto"           // time.Duration; Retransmit declares, RTTEstimation sets
	cellSmoothed = "rtt.smoothed"      // time.Duration: SRTT, 0 before the first sample; RTTEstimation

	// Positions count the bytes of segments, headers included, in the order of
	// their numbers. Retransmit declares them.
	cellAckedTo  = "retransmit.acked.bytes" // uint64: position behind what is acknowledged in order
	cellSentTo   = "retransmit.sent.bytes"  // uint64: position behind the highest segment that was transmitted
	cellLimit    = "retransmit.limit.bytes" // uint64: position up to which may be sent; a congestion window sets it
	cellSentAt   = "retransmit.sent.at"     // microproto.Instant of the last transmission
	cellByCount  = "retransmit.by.count"    // bool: duplicates are counted, Retransmit does not judge the bitmap; DuplicateAck sets
	cellTogether = "retransmit.together"    // int: most segments of one train that the last acknowledgement was of
	cellTimer    = "retransmit.timer.kept"  // bool: an acknowledgement does not start the timer afresh; a recovery sets

	attrKept   = "transport.kept"   // local: a lower micro-protocol keeps the segment after its transmission
	attrOffset = "resize.offset"    // wire: first byte of the payload in its message
	attrTotal  = "resize.total"     // wire: bytes of the message
	attrNumber = "sequenced.number" // wire
	attrFlags  = "ack.flags"        // wire
	attrSent   = "retransmit.sent"  // local: Instant of the last transmission
	attrCopies = "retransmit.count" // local: transmissions after the first
	attrEnd    = "retransmit.end"   // local: position behind the segment
)

// Events inside a channel. A third party's micro-protocols may bind to them.
var (
	// SegmentSent: TransportDriver has transmitted a segment that nobody keeps;
	// on a reliable link it counts as acknowledged.
	SegmentSent = microproto.NewEvent[*microproto.Message]("ctp.segment.sent")
	// AckWanted: the other end should be told what has come, now or soon.
	AckWanted = microproto.NewEvent[Urgency]("ctp.ack.wanted")
	// AckArrived: an acknowledgement that can be believed.
	AckArrived = microproto.NewEvent[Ack]("ctp.ack.arrived")
	// SegmentSampled: a segment whose acknowledgement gives a round trip; by
	// Karn's rule RTTEstimation ignores those that were sent more than once.
	SegmentSampled = microproto.NewEvent[*microproto.Message]("ctp.segment.sampled")
	// ackDue: one segment of a train has been judged; an acknowledgement that is due goes
	// before the next.
	ackDue = microproto.NewEvent[struct{}]("ctp.ack.due")
	// Consumed: the user took messages from the queue; cellConsumed has grown.
	Consumed = microproto.NewEvent[struct{}]("ctp.consumed")
	// CreditBlocked: a Send was refused for want of credit.
	CreditBlocked = microproto.NewEvent[struct{}]("ctp.credit.blocked")
	// AckDuplicated: an acknowledgement that acknowledges nothing new in order has
	// come; the argument counts them since the last one that did.
	AckDuplicated = microproto.NewEvent[int]("ctp.ack.duplicated")
	// RetransmitOldest: the oldest segment that is not acknowledged goes out again.
	RetransmitOldest = microproto.NewEvent[struct{}]("ctp.retransmit.oldest")
	// WindowMoved: the position up to which may be sent is another one.
	WindowMoved = microproto.NewEvent[struct{}]("ctp.window.moved")
)

// Urgency of an acknowledgement.
type Urgency uint8

// Soon lets an acknowledgement wait for company, Now does not. Turn lets it wait for
// the present turn to end: what has come at once is acknowledged at once, and a user
// who answers at once carries it.
const (
	Soon Urgency = iota
	Now
	Turn
)

// Ack is an acknowledgement: every number before Next has come, and Next+1+i where
// bit i of Seen is set. Credit is the bytes granted in all (compare MAX_DATA, RFC
// 9000 §4.1). Alone: it came without a segment of a message.
type Ack struct {
	Next   uint32
	Seen   uint64
	Credit uint64
	Alone  bool
}

// Keys of microproto.Options that the micro-protocols read.
const (
	OptionPortLocal     = "port.local"         // TransportDriver: 1 to 65535 (default 1)
	OptionPortRemote    = "port.remote"        // TransportDriver: likewise
	OptionMessageMax    = "message.max.bytes"  // Resize: largest message taken from the net (default 64 MiB, at most the queue)
	OptionReceive       = "receive.bytes"      // Synchronous, ReliableFIFO: this end's queue (default 4 MiB)
	OptionPeerReceive   = "peer.receive.bytes" // Synchronous, PositiveAck: the other end's queue, the first grant (default 4 MiB)
	OptionFirst         = "sequence.first"     // SequencedSegment: first number, the same at both ends (default 1)
	OptionAckDelay      = "ack.delay.ns"       // PositiveAck: longest wait (default a quarter of the RTO floor); Synchronous without it: likewise (default 200 µs)
	OptionAckEvery      = "ack.every"          // PositiveAck: segments to one acknowledgement (default 2)
	OptionInFlight      = "window.bytes"       // Retransmit: payload sent and not acknowledged (default 2 MiB)
	OptionInFlightCount = "window.segments"    // Retransmit: likewise in segments (default 1024)
	OptionRTOFloor      = "rto.floor.ns"       // RTTEstimation (default 2 ms)
	OptionRTOInitial    = "rto.initial.ns"     // RTTEstimation: before the first sample (default 50 floors, at most 1 s)
	OptionRTOMax        = "rto.max.ns"         // RTTEstimation: cap of the back-off (default 1 s, at least the floor)
	OptionGranularity   = "rto.granularity.ns" // RTTEstimation: G of RFC 6298, the least that the variance adds (default 100 µs)
)

const (
	defaultReceive    = 4 << 20
	defaultMessageMax = 64 << 20
	defaultRTOFloor   = 2 * time.Millisecond
	// messageCost is what a message costs of the receiver's queue beside its
	// payload, so that empty messages are bounded too.
	messageCost = 64
)

// ErrMessageSize: a message that the channel can never carry.
var ErrMessageSize = errors.New("ctp: message too long for the channel")

// ErrSlot: a tag that was not declared, or a length that is not the slot's.
var ErrSlot = errors.New("ctp: no such slot")

// ErrQueueFull: the other end sent more than it was granted.
var ErrQueueFull = errors.New("ctp: receive queue full")

// ErrLink: a link that the composition takes for reliable lost a segment.
var ErrLink = errors.New("ctp: reliable link lost a segment")

// errBundle: what the other end says are several messages are not.
var errBundle = errors.New("ctp: malformed bundle")

// cost is a message's share of the receiver's queue.
func cost(length int) uint64 { return uint64(length) + messageCost }

// before compares sequence numbers, as in RFC 1982: a comes before b.
func before(a, b uint32) bool { return int32(a-b) < 0 }
