package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Keys of microproto.Options that DCCPAck reads in addition to those of PositiveAck and
// RTTEstimation.
const (
	OptionAckRatioMax    = "ack.ratio.max"       // the largest ack ratio (1 to 16, default 16)
	OptionPacketRTOFloor = "packet.rto.floor.ns" // of small windows (default 2 ms, at most the RTO floor)
)

// DCCPAck numbers the packets of an asynchronous channel, acknowledges those of the other end,
// and determines which of its own packets have arrived or are lost: the acknowledgements of
// CCID 2 (RFC 4341 §6, RFC 4340 §11). A packet is a segment that carries data. Acknowledgements
// without data have numbers of their own, so that their loss is detected too. Nothing is
// retransmitted.
//
// Every frame carries the highest number that has arrived, a bitmap of the 64 before it, the
// time since then, and the ack ratio that this end requests. An acknowledgement is sent alone
// for every R packets, the last after OptionAckDelay, unless a packet in that direction carries
// it. Each gives at most one measurement of the round trip. DCCPAck also runs the time-out of
// RFC 6298, which allows for the delay of acknowledgements at the other end.
type DCCPAck struct {
	delay    time.Duration
	estimate *RTTEstimation // not attached
	rto      time.Duration  // with the floor and the granularity of small windows
	floor    time.Duration  // of other windows
	margin   time.Duration  // granularity of other windows

	flags, ratioAttr microproto.Attr[uint8]
	number           microproto.Attr[uint32]
	highest          microproto.Attr[uint32]
	seen             microproto.Attr[uint64]
	elapsed          microproto.Attr[uint32]

	shared struct { // cells
		window, inFlight, ratio *int
		rto                     *time.Duration
	}
	flight    packetFlight
	arrivals  packetArrivals
	acks      ackArrivals
	ratio     ackRatio
	acksOut   uint32 // number of the next acknowledgement without data
	pending   int    // packets to be acknowledged
	peerRatio int    // ack ratio that the other end requests
	timedOut  bool   // by a time-out since the last acknowledgement

	timer    microproto.TimerID // of the acknowledgement
	expiry   microproto.TimerID // of the time-out
	fires    microproto.Instant // when expiry fires
	deadline microproto.Instant
	due      bool
}

// PacketReport is the effect of an acknowledgement, or of a time-out, on the packets of an
// asynchronous channel.
type PacketReport struct {
	First    uint32 // all packets before it have arrived or are lost
	Next     uint32 // number of the next packet
	Acked    int    // packets acknowledged for the first time
	Lost     int    // packets now considered lost; LastLost is the highest of their numbers
	LastLost uint32
	InFlight int           // packets, before the event
	RTT      time.Duration // smoothed; 0: not known
	Again    bool          // PacketsTimedOut: nothing was acknowledged since the last one
}

// Events of an asynchronous channel with congestion control.
var (
	// PacketSent: the packet of that number leaves.
	PacketSent = microproto.NewEvent[uint32]("ctp.packet.sent")
	// PacketsAcked: an acknowledgement changed the state of packets.
	PacketsAcked = microproto.NewEvent[PacketReport]("ctp.packets.acked")
	// PacketsTimedOut: no packet in flight was acknowledged within the time-out; all are
	// considered lost.
	PacketsTimedOut = microproto.NewEvent[PacketReport]("ctp.packets.timed.out")

	dccpAckTimer    = microproto.NewEvent[*DCCPAck]("ctp.dccp.ack.timer")
	dccpAckFlush    = microproto.NewEvent[*DCCPAck]("ctp.dccp.ack.flush")
	dccpExpiryTimer = microproto.NewEvent[*DCCPAck]("ctp.dccp.expiry.timer")
)

// flagAcknowledges: the acknowledgement fields are set.
const flagAcknowledges = 2

// Cells and attributes of the asynchronous column between clusters.
const (
	cellPackets   = "dccp.window"    // int: packets that may be in flight; DCCPWindowCongestionControl sets it
	cellInFlight  = "dccp.in.flight" // int: packets
	cellPacketRTO = "dccp.rto"       // time.Duration
	cellAckRatio  = "dccp.ack.ratio" // int: R, of the acknowledgements of this end's packets

	attrPacketFlags = "dccp.flags"       // wire
	attrTag         = "asynchronous.tag" // wire; Asynchronous declares it
)

func newDCCPAck(o microproto.Options) (microproto.MicroProtocol, error) {
	estimate, err := newRTTEstimation(o)
	if err != nil {
		return nil, err
	}
	delay, err := ackDelay(o)
	if err != nil {
		return nil, err
	}
	first, err := option(o, OptionFirst, 1, 0, 1<<32-1)
	if err != nil {
		return nil, err
	}
	d := &DCCPAck{delay: delay, estimate: estimate.(*RTTEstimation)}
	d.floor, d.margin = d.estimate.floor, d.estimate.granularity
	floor, err := option(o, OptionPacketRTOFloor, int64(min(d.estimate.floor, defaultRTOFloor)), 1,
		int64(d.estimate.max))
	if err != nil {
		return nil, err
	}
	d.estimate.floor, d.estimate.granularity = time.Duration(floor), min(d.margin, time.Duration(floor))
	most, err := option(o, OptionAckRatioMax, maxRatio, 1, maxRatio)
	d.estimate.rto, d.estimate.smoothed = &d.rto, new(time.Duration)
	d.rto = d.estimate.initial
	d.flight.first = uint32(first)
	d.ratio = ackRatio{value: min(defaultRatio, int(most)), most: int(most), mark: uint32(first)}
	d.peerRatio = 1
	return d, err
}

// ackDelay returns the longest delay of an acknowledgement.
func ackDelay(o microproto.Options) (time.Duration, error) {
	floor, err := option(o, OptionRTOFloor, int64(defaultRTOFloor), 1, int64(time.Hour))
	if err != nil {
		return 0, err
	}
	delay, err := option(o, OptionAckDelay, min(floor/4, int64(25*time.Millisecond)), 0, int64(time.Second))
	return time.Duration(delay), err
}

// Name implements microproto.MicroProtocol.
func (d *DCCPAck) Name() string { return "DCCPAck" }

// Attach implements microproto.MicroProtocol.
func (d *DCCPAck) Attach(b *microproto.Binder) error {
	d.flags = microproto.WireAttr[uint8](b, attrPacketFlags)
	d.ratioAttr = microproto.WireAttr[uint8](b, "dccp.ratio")
	d.number = microproto.WireAttr[uint32](b, "dccp.number")
	d.highest = microproto.WireAttr[uint32](b, "dccp.highest")
	d.seen = microproto.WireAttr[uint64](b, "dccp.seen")
	d.elapsed = microproto.WireAttr[uint32](b, "dccp.elapsed")
	d.shared.window = microproto.DeclareCell(b, cellPackets, 1)
	d.shared.inFlight = microproto.DeclareCell(b, cellInFlight, 0)
	d.shared.ratio = microproto.DeclareCell(b, cellAckRatio, d.ratio.value)
	d.shared.rto = microproto.DeclareCell(b, cellPacketRTO, d.rto)
	d.estimate.rtt = microproto.DeclareCell(b, microproto.CellRTT, time.Duration(0))
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) {
		*d.shared.rto = d.conservativeTimeout()
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(_ *microproto.Exec, m *microproto.Message) {
		d.flags.Set(m, flagData)
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, d.fillHeader)
	microproto.Bind(b, microproto.SegmentLost, microproto.Normal, d.refused)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, d.receive)
	microproto.Bind(b, dccpAckFlush, microproto.Normal, func(x *microproto.Exec, _ *DCCPAck) { d.flush(x) })
	microproto.Bind(b, dccpAckTimer, microproto.Normal, func(x *microproto.Exec, _ *DCCPAck) {
		d.timer = 0
		d.flush(x)
	})
	microproto.Bind(b, dccpExpiryTimer, microproto.Normal, d.expire)
	return nil
}

// fillHeader numbers an outgoing segment and writes the latest acknowledgement to it.
func (d *DCCPAck) fillHeader(x *microproto.Exec, m *microproto.Message) {
	d.ratio.clamp(*d.shared.window)
	*d.shared.ratio = d.ratio.value
	flags := d.flags.Get(m) & flagData
	if flags == 0 {
		d.number.Set(m, d.acksOut)
		d.acksOut++
	} else {
		d.number.Set(m, d.flight.send(x.Now()))
		d.arm(x, false)
		*d.shared.inFlight = d.flight.inFlight
		microproto.Raise(x, PacketSent, d.number.Get(m))
	}
	d.ratioAttr.Set(m, uint8(d.ratio.value))
	if d.arrivals.any {
		flags |= flagAcknowledges
		d.highest.Set(m, d.arrivals.Highest)
		d.seen.Set(m, d.arrivals.Seen)
		d.elapsed.Set(m, d.arrivals.elapsed(x.Now()))
	}
	d.flags.Set(m, flags)
	d.pending, d.due = 0, false
	if d.timer != 0 {
		x.Cancel(d.timer)
		d.timer = 0
	}
}

// refused takes back the number of a segment for which there was no room below.
func (d *DCCPAck) refused(_ *microproto.Exec, m *microproto.Message) {
	if d.flags.Get(m)&flagData != 0 {
		d.flight.unsend(d.number.Get(m))
		*d.shared.inFlight = d.flight.inFlight
	} else {
		d.acksOut--
	}
}

func (d *DCCPAck) receive(x *microproto.Exec, m *microproto.Message) {
	flags := d.flags.Get(m)
	data := flags&flagData != 0
	r := Received{Highest: d.highest.Get(m), Seen: d.seen.Get(m)}
	switch {
	case flags&^(flagData|flagAcknowledges) != 0 || flags == 0 || !data && len(m.Payload) > 0:
		x.Drop(m, "malformed acknowledgement")
		return
	case flags&flagAcknowledges != 0 && !before(r.Highest, d.flight.next()):
		x.Drop(m, "acknowledgement of a segment not sent")
		return
	}
	kind, lossy := arrivalNewest, false
	if data {
		kind = d.arrive(x, m)
	} else {
		lossy = d.acks.take(d.number.Get(m), x.Now())
	}
	if kind == arrivalInvalid {
		x.Drop(m, "beyond the window")
		return
	}
	if flags&flagAcknowledges != 0 {
		d.acknowledged(x, r, time.Duration(d.elapsed.Get(m))*time.Microsecond, lossy)
	}
	switch {
	case !data:
		x.Done(m)
	case kind == arrivalDuplicate:
		x.Drop(m, "duplicate")
	}
}

// arrive records a packet of the other end and schedules its acknowledgement.
func (d *DCCPAck) arrive(x *microproto.Exec, m *microproto.Message) arrivalKind {
	kind := d.arrivals.take(d.number.Get(m), x.Now())
	if kind == arrivalInvalid {
		return kind
	}
	if kind == arrivalNewest {
		d.peerRatio = min(max(int(d.ratioAttr.Get(m)), 1), maxRatio)
	}
	d.pending++
	switch {
	case d.due:
	case d.pending >= d.peerRatio:
		d.due = true
		microproto.Enqueue(x, dccpAckFlush, d)
	case d.timer == 0:
		d.timer = microproto.RaiseAfter(x, dccpAckTimer, d.delay, d)
	}
	return kind
}

// acknowledged processes an acknowledgement of the other end.
func (d *DCCPAck) acknowledged(x *microproto.Exec, r Received, waited time.Duration, lossy bool) {
	report, sampled, ok := d.flight.acknowledge(r)
	if ok {
		if rtt := x.Now().Sub(sampled); waited < rtt {
			d.estimate.update(rtt - waited)
			*d.estimate.rtt = d.estimate.srtt
			*d.shared.rto = d.conservativeTimeout()
		}
	}
	report.Next, report.RTT = d.flight.next(), d.estimate.srtt
	*d.shared.inFlight = d.flight.inFlight
	if report.Acked > 0 {
		d.timedOut = false
		d.arm(x, true)
	}
	if report.Acked > 0 || report.Lost > 0 {
		microproto.Raise(x, PacketsAcked, report)
	}
	d.ratio.progress(d.flight.first, d.flight.next(), *d.shared.window, lossy)
	*d.shared.ratio = d.ratio.value
}

// flush sends an acknowledgement alone, unless a packet has carried it.
func (d *DCCPAck) flush(x *microproto.Exec) {
	d.due = false
	if d.pending == 0 {
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if d.timer == 0 {
			d.timer = microproto.RaiseAfter(x, dccpAckTimer, d.delay+time.Millisecond, d)
		}
		return
	}
	x.Forward(m)
}

// arm sets the deadline of the time-out; restart moves an existing one. The timer is set again
// only when it fires before the deadline, so an acknowledgement costs no cancellation.
func (d *DCCPAck) arm(x *microproto.Exec, restart bool) {
	if d.flight.inFlight == 0 {
		d.deadline = 0
		return
	}
	if restart || d.deadline == 0 {
		d.deadline = x.Now().Add(d.timeout())
		if d.flight.inFlight < d.ratio.value {
			d.deadline = d.deadline.Add(d.delay) // the acknowledgement may be delayed
		}
	}
	if d.expiry != 0 && d.fires > d.deadline {
		x.Cancel(d.expiry) // set when the time-out was longer
		d.expiry = 0
	}
	if d.expiry == 0 {
		d.fires = d.deadline
		d.expiry = microproto.RaiseAfter(x, dccpExpiryTimer, d.deadline.Sub(x.Now()), d)
	}
}

// smallWindow is the largest window in which three packets cannot follow a lost one.
const smallWindow = 3

// timeout returns the time-out for the present window. In a small window only the time-out
// detects a loss, values age until then, and nothing is sent twice if it is too short: so its
// floor is lower there (RFC 4341 §5 requires none). A larger window must not be reset because a
// host answers slowly.
func (d *DCCPAck) timeout() time.Duration {
	if *d.shared.window <= smallWindow {
		return d.rto
	}
	return d.conservativeTimeout()
}

// conservativeTimeout returns the time-out of windows that are not small: SRTT + max(margin,
// 4·RTTVAR), at least the floor and at most the maximum.
func (d *DCCPAck) conservativeTimeout() time.Duration {
	return min(max(d.rto, d.floor, d.estimate.srtt+d.margin), d.estimate.max)
}

func (d *DCCPAck) expire(x *microproto.Exec, _ *DCCPAck) {
	d.expiry = 0
	if d.flight.inFlight == 0 {
		d.deadline = 0
		return
	}
	if x.Now() < d.deadline {
		d.arm(x, false)
		return
	}
	report := PacketReport{InFlight: d.flight.inFlight, Again: d.timedOut, RTT: d.estimate.srtt,
		LastLost: d.flight.next() - 1}
	report.Lost = d.flight.abandon()
	report.First, report.Next = d.flight.first, d.flight.first
	d.timedOut, d.deadline = true, 0
	d.rto = min(2*d.rto, d.estimate.max) // RFC 6298 §5.5
	*d.shared.rto, *d.shared.inFlight = d.conservativeTimeout(), 0
	microproto.Raise(x, PacketsTimedOut, report)
}

// ExportState implements microproto.StateExporter: the round trip of the path.
func (d *DCCPAck) ExportState() microproto.State { return d.estimate.rttState }

// ImportState implements microproto.StateExporter.
func (d *DCCPAck) ImportState(state microproto.State) error {
	if err := d.estimate.ImportState(state); err != nil {
		return err
	}
	if d.estimate.sampled {
		d.rto = d.estimate.timeout()
	}
	return nil
}
