package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// OptionPacketRTOFloor is read by DCCPAck in addition to the options of PositiveAck and
// RTTEstimation: the floor of small windows (default 2 ms, at most the RTO floor).
const OptionPacketRTOFloor = "packet.rto.floor.ns"

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
	named
	ackSchedule
	expiry
	estimate *RTTEstimation // not attached
	rto      time.Duration  // with the floor and the granularity of small windows
	floor    time.Duration  // of other windows
	margin   time.Duration  // granularity of other windows

	flags, ratioAttr microproto.Attr[uint8]
	number           microproto.Attr[uint32]
	highest          microproto.Attr[uint32]
	seen             microproto.Attr[uint64]
	elapsed          microproto.Attr[uint32]

	window, inFlight, sharedRatio *int           // cells
	sharedRTO                     *time.Duration // a cell
	flight                        packetFlight
	arrivals                      packetArrivals
	acks                          ackArrivals
	ratio                         ackRatio
	acksOut                       uint32 // number of the next acknowledgement without data
	peerRatio                     int    // ack ratio that the other end requests
	timedOut                      bool   // by a time-out since the last acknowledgement
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

	dccpAckTimer    = microproto.NewEvent[*ackSchedule]("ctp.dccp.ack.timer")
	dccpAckFlush    = microproto.NewEvent[*ackSchedule]("ctp.dccp.ack.flush")
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

	attrPacketFlags = "dccp.flags" // wire
)

func newDCCPAck(s *settings) microproto.MicroProtocol {
	e := s.rttEstimation()
	first := option[uint32](s, OptionFirst, 1, 0, math.MaxUint32)
	d := &DCCPAck{named: s.named, ackSchedule: ackSchedule{delay: s.ackDelay()}, estimate: e,
		rto: e.initial, floor: e.floor, margin: e.granularity, flight: packetFlight{first: first},
		ratio: ackRatio{value: defaultRatio, mark: first}, peerRatio: 1}
	e.floor = option(s, OptionPacketRTOFloor, min(e.floor, defaultRTOFloor), 1, e.max)
	e.granularity = min(e.granularity, e.floor)
	e.rto, e.smoothed = &d.rto, new(time.Duration)
	return d
}

// Attach implements microproto.MicroProtocol.
func (d *DCCPAck) Attach(b *microproto.Binder) error {
	wireAttr(b, attrPacketFlags, &d.flags)
	wireAttr(b, "dccp.ratio", &d.ratioAttr)
	wireAttr(b, "dccp.number", &d.number)
	microproto.Numbers(b, d.number)
	wireAttr(b, "dccp.highest", &d.highest)
	wireAttr(b, "dccp.seen", &d.seen)
	wireAttr(b, "dccp.elapsed", &d.elapsed)
	declareCell(b, cellPackets, &d.window, 1)
	declareCell(b, cellInFlight, &d.inFlight, 0)
	declareCell(b, cellAckRatio, &d.sharedRatio, d.ratio.value)
	declareCell(b, cellPacketRTO, &d.sharedRTO, d.rto)
	declareCell(b, microproto.CellRTT, &d.estimate.rtt, 0)
	bind(b, microproto.OpenSession, func(*microproto.Exec, struct{}) {
		*d.sharedRTO = d.conservativeTimeout()
	})
	bind(b, microproto.SegmentFromUser, func(_ *microproto.Exec, m *microproto.Message) {
		d.flags.Set(m, flagData)
	})
	bind(b, microproto.SegmentToNet, d.fillHeader)
	bind(b, microproto.SegmentLost, d.refused)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, d.receive)
	d.bind(b, dccpAckTimer, dccpAckFlush)
	bind(b, dccpExpiryTimer, d.expire)
	bind(b, microproto.PathSilent, func(x *microproto.Exec, _ struct{}) {
		if d.timedOut && d.flight.inFlight > 0 {
			d.giveUp(x)
		}
	})
	bind(b, microproto.PathMoved, func(x *microproto.Exec, _ struct{}) {
		d.rto = d.estimate.measured()
		if d.flight.inFlight > 0 {
			d.giveUp(x)
		}
	})
	return nil
}

// fillHeader numbers an outgoing segment and writes the latest acknowledgement to it.
func (d *DCCPAck) fillHeader(x *microproto.Exec, m *microproto.Message) {
	d.ratio.clamp(*d.window)
	*d.sharedRatio = d.ratio.value
	flags := d.flags.Get(m) & flagData
	if flags == 0 {
		d.number.Set(m, d.acksOut)
		d.acksOut++
	} else {
		d.number.Set(m, d.flight.send(x.Now()))
		d.arm(x, false)
		*d.inFlight = d.flight.inFlight
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
	d.carried(x)
}

// refused takes back the number of a segment for which there was no room below.
func (d *DCCPAck) refused(_ *microproto.Exec, m *microproto.Message) {
	if d.flags.Get(m)&flagData != 0 {
		d.flight.unsend(d.number.Get(m))
		*d.inFlight = d.flight.inFlight
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
	d.schedule(x, d.pending >= d.peerRatio)
	return kind
}

func (d *DCCPAck) acknowledged(x *microproto.Exec, r Received, waited time.Duration, lossy bool) {
	report, sampled, ok := d.flight.acknowledge(r)
	if ok {
		if rtt := x.Now().Sub(sampled); waited < rtt {
			d.estimate.update(rtt - waited)
			*d.estimate.rtt = d.estimate.srtt
			*d.sharedRTO = d.conservativeTimeout()
		}
	}
	d.recordLoss(x, &report, trace.ByDuplicates)
	report.Next, report.RTT = d.flight.next(), d.estimate.srtt
	*d.inFlight = d.flight.inFlight
	if report.Acked > 0 {
		d.timedOut = false
		d.arm(x, true)
	}
	if report.Acked > 0 || report.Lost > 0 {
		microproto.Raise(x, PacketsAcked, report)
	}
	d.ratio.progress(d.flight.first, d.flight.next(), *d.window, lossy)
	*d.sharedRatio = d.ratio.value
}

// arm sets the deadline of the time-out; restart moves an existing one.
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
	setExpiry(x, &d.expiry, dccpExpiryTimer, d)
}

// smallWindow is the largest window in which three packets cannot follow a lost one.
const smallWindow = 3

// timeout returns the time-out for the present window. In a small window only the time-out
// detects a loss, values age until then, and nothing is sent twice if it is too short: so its
// floor is lower there (RFC 4341 §5 requires none). A larger window must not be reset because a
// host answers slowly.
func (d *DCCPAck) timeout() time.Duration {
	if *d.window <= smallWindow {
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
	d.running = 0
	if d.flight.inFlight == 0 || x.Now() < d.deadline {
		d.arm(x, false)
		return
	}
	d.rto = min(2*d.rto, d.estimate.max) // RFC 6298 §5.5
	d.giveUp(x)
}

// giveUp declares all packets in flight lost.
func (d *DCCPAck) giveUp(x *microproto.Exec) {
	report := PacketReport{InFlight: d.flight.inFlight, Again: d.timedOut, RTT: d.estimate.srtt,
		LastLost: d.flight.next() - 1}
	report.Lost = d.flight.abandon()
	d.recordLoss(x, &report, trace.ByTimeout)
	report.First, report.Next = d.flight.first, d.flight.first
	d.timedOut, d.deadline = true, 0
	*d.sharedRTO, *d.inFlight = d.conservativeTimeout(), 0
	microproto.Raise(x, PacketsTimedOut, report)
}

// recordLoss records the packets that a report counts as lost.
func (d *DCCPAck) recordLoss(x *microproto.Exec, report *PacketReport, cause trace.Cause) {
	if report.Lost == 0 {
		return
	}
	if l := x.Record(trace.Loss); l != nil {
		l.Number, l.Count, l.Cause = uint64(report.LastLost), uint16(report.Lost), cause
	}
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
