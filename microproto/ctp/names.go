package ctp

import (
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Cells and attributes that the micro-protocols of a channel share. The first micro-protocol
// named declares it, the uppermost of those that use it.
const (
	cellBacklog    = "resize.backlog"         // int: messages not yet segmented completely
	cellPause      = "resize.pause"           // bool: do not segment now; Resize, set by Retransmit
	cellAtOnce     = "resize.at.once"         // bool: do not pause; Resize, set by Asynchronous
	cellBuffers    = "resize.buffers"         // buffers: memory of received messages
	cellPosted     = "receiver.posted"        // posted; Resize, set by Synchronous
	cellGrant      = "credit.grant"           // uint64: bytes granted in all; Synchronous, set by PositiveAck
	cellSent       = "credit.sent"            // uint64: bytes sent in all; Synchronous
	cellConsumed   = "receiver.consumed"      // uint64: bytes that the user received; Synchronous
	cellTaken      = "receiver.taken"         // uint64: bytes that arrived before the open; Synchronous
	cellCredit     = "receiver.credit"        // uint64: granted to the peer; Synchronous, set by ReliableFIFO
	cellNext       = "sequenced.next"         // uint32: number of the next new segment; SequencedSegment
	cellSentNext   = "sequenced.sent"         // uint32: after the last; SequencedSegment, set by Retransmit
	cellExpected   = "receiver.expected"      // uint32; SequencedSegment, set by ReliableFIFO
	cellArrived    = "receiver.arrived"       // arrivals; SequencedSegment, set by ReliableFIFO
	cellAckEach    = "ack.each"               // bool: each of a train; PositiveAck, set by DuplicateAck
	cellRTO        = "rtt.rto"                // time.Duration; Retransmit, set by RTTEstimation
	cellProbe      = "rtt.probe"              // time.Duration, 0: none; Retransmit, set by RTTEstimation
	cellSmoothed   = "rtt.smoothed"           // time.Duration: SRTT, or 0; Retransmit, set by RTTEstimation
	cellAckedTo    = "retransmit.acked.bytes" // uint64: position after the last byte acknowledged in order
	cellSentTo     = "retransmit.sent.bytes"  // uint64: position after the highest segment transmitted
	cellLimit      = "retransmit.limit.bytes" // uint64: position up to which may be sent
	cellSentAt     = "retransmit.sent.at"     // microproto.Instant of the last transmission
	cellAckedTrain = "retransmit.acked.train" // int: longest train acknowledged last, in segments
	cellSelective  = "retransmit.selective"   // bool: selective recovery; Retransmit, set by DuplicateAck
	cellLeft       = "retransmit.left.bytes"  // uint64: within the window, arrived, or lost and not sent again
	cellKeepTimer  = "retransmit.keep.timer"  // bool: do not restart the timer; set by a recovery

	attrRetained = "transport.retained" // local: a lower micro-protocol retains the segment after its transmission
	attrOffset   = "resize.offset"      // wire: position of the payload in its message
	attrTotal    = "resize.total"       // wire: bytes of the message
	attrNumber   = "sequenced.number"   // wire
	attrFlags    = "ack.flags"          // wire
	attrCopy     = "retransmit.copy"    // wire: probeRequest, copyNumber
	attrSent     = "retransmit.sent"    // local: Instant of the last transmission
	attrCopies   = "retransmit.count"   // local: transmissions after the first
	attrEnd      = "retransmit.end"     // local: position after the segment
)

// A position counts the bytes of segments, headers included, in the order of their numbers.
// Retransmit declares the cells that hold positions.

// Events inside a channel. A third party's micro-protocols may bind to them.
var (
	// SegmentSent: TransportDriver has transmitted a segment that no micro-protocol retains.
	SegmentSent = microproto.NewEvent[*microproto.Message]("ctp.segment.sent")
	// AckRequested: an acknowledgement has to be sent, at the given urgency.
	AckRequested = microproto.NewEvent[Urgency]("ctp.ack.requested")
	// AckArrived: a valid acknowledgement has arrived.
	AckArrived = microproto.NewEvent[Ack]("ctp.ack.arrived")
	// SegmentSampled: the acknowledgement of this segment gives a round trip. By Karn's rule
	// RTTEstimation ignores segments that were sent more than once.
	SegmentSampled = microproto.NewEvent[*microproto.Message]("ctp.segment.sampled")
	// ackDue: a segment of a train was processed; send an acknowledgement that is due before
	// the next.
	ackDue = microproto.NewEvent[struct{}]("ctp.ack.due")
	// Consumed: the user received messages; cellConsumed has grown.
	Consumed = microproto.NewEvent[struct{}]("ctp.consumed")
	// CreditBlocked: a Send was refused because the credit is used up.
	CreditBlocked = microproto.NewEvent[struct{}]("ctp.credit.blocked")
	// AckDuplicated: a duplicate acknowledgement has arrived. The argument counts them since
	// the last acknowledgement of something new in order.
	AckDuplicated = microproto.NewEvent[int]("ctp.ack.duplicated")
	// RetransmitOldest: send the oldest unacknowledged segment again.
	RetransmitOldest = microproto.NewEvent[struct{}]("ctp.retransmit.oldest")
	// TailLost: the acknowledgement of a tail-loss probe shows that the segment was lost.
	TailLost = microproto.NewEvent[struct{}]("ctp.tail.lost")
	// LossesDetected: selective recovery has found losses. The argument reports whether the window is to be
	// reduced: false if it was reduced after all lost segments were sent.
	LossesDetected = microproto.NewEvent[bool]("ctp.losses.detected")
	// LossesRefuted: everything that the recovery has sent again had arrived, or a time-out was too short.
	LossesRefuted = microproto.NewEvent[struct{}]("ctp.losses.refuted")
	// WindowMoved: cellLimit has changed.
	WindowMoved = microproto.NewEvent[struct{}]("ctp.window.moved")
)

// Urgency of an acknowledgement.
type Urgency uint8

// Soon: after OptionAckEvery segments or OptionAckDelay, or with the next segment. Now: after
// the current chain. NextAdvance: in the next Advance, so that one acknowledgement covers all
// segments that arrived together, or travels with the user's answer to them.
const (
	Soon Urgency = iota
	Now
	NextAdvance
)

// Keys of microproto.Options, with the micro-protocols that read them. OptionAckDelay is the
// longest delay of an acknowledgement (default a quarter of the RTO floor), in Synchronous of a
// grant (default 200 µs).
const (
	OptionPortLocal     = "port.local"         // TransportDriver: 1 to 65535 (default 1)
	OptionPortRemote    = "port.remote"        // TransportDriver: 1 to 65535 (default 1)
	OptionMessageMax    = "message.max.bytes"  // Resize: largest incoming message (default 64 MiB, at most the queue)
	OptionReceive       = "receive.bytes"      // Synchronous, ReliableFIFO: this end's queue (default 4 MiB)
	OptionPeerReceive   = "peer.receive.bytes" // Synchronous, PositiveAck: the other end's queue (default 4 MiB)
	OptionFirst         = "sequence.first"     // SequencedSegment, DCCPAck: first number of both ends (default 1)
	OptionAckDelay      = "ack.delay.ns"       // PositiveAck, DCCPAck, Synchronous; see below
	OptionAckEvery      = "ack.every"          // PositiveAck: segments for each acknowledgement (default 2)
	OptionInFlight      = "window.bytes"       // Retransmit: unacknowledged payload (default 2 MiB)
	OptionInFlightCount = "window.segments"    // Retransmit: unacknowledged segments (default 1024)
	OptionRTOFloor      = "rto.floor.ns"       // RTTEstimation (default 2 ms)
	OptionRTOInitial    = "rto.initial.ns"     // RTTEstimation: at first (default 50 floors, at most 1 s)
	OptionRTOMax        = "rto.max.ns"         // RTTEstimation: limit of the back-off (default 1 min, RFC 6298 §2.5; at least the floor)
	OptionGranularity   = "rto.granularity.ns" // RTTEstimation: G of RFC 6298, the smallest margin (default 100 µs)
	OptionSelective     = "recovery.selective" // DuplicateAck: 1: selective recovery, as without this row (default 0)
	OptionProbeMargin   = "probe.margin.ns"    // RTTEstimation: the same for tail-loss probes (default 0: none are sent)
)

// OptionGrantsInMessages is read by Synchronous in a column without PositiveAck. With 1 at both ends, the headers of
// messages carry grants (default 0).
const OptionGrantsInMessages = "grants.in.messages"

const (
	defaultReceive    = 4 << 20
	defaultMessageMax = 64 << 20
	defaultRTOFloor   = 2 * time.Millisecond
	// messageCost is the part of the receiver's queue that a message takes in addition to
	// its payload. It bounds the number of empty messages.
	messageCost = 64
)

// ErrMessageSize: the message is too long for the channel.
var ErrMessageSize = errors.New("ctp: message too long for the channel")

// ErrSlot: the tag was not declared, or the length is not that of the slot.
var ErrSlot = errors.New("ctp: no such slot")

// ErrQueueFull: the other end sent more bytes than it was granted.
var ErrQueueFull = errors.New("ctp: receive queue full")

// ErrLink: a link that the composition treats as reliable lost a segment.
var ErrLink = errors.New("ctp: reliable link lost a segment")

// errCoalesced: a coalesced message does not contain the messages that it announces.
var errCoalesced = errors.New("ctp: malformed coalesced message")

// cost returns the bytes of the receiver's queue that a message takes.
func cost(length int) uint64 { return uint64(length) + messageCost }

// before reports whether sequence number a precedes b (RFC 1982).
func before(a, b uint32) bool { return int32(a-b) < 0 }
