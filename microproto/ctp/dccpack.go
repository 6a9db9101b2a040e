package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Keys of microproto.Options that DCCPAck reads beside those of PositiveAck and
// RTTEstimation.
const (
	OptionAckRatioMax    = "ack.ratio.max"       // the largest ack ratio that is asked for (1 to 16, default 16)
	OptionPacketRTOFloor = "packet.rto.floor.ns" // of the time-out of small windows (default 2 ms, or the RTO floor if that is less)
)

// DCCPAck numbers the packets of an asynchronous channel, tells the other end which
// of its packets have come, and finds out the fate of those that went out: the
// acknowledgements of CCID 2 (RFC 4341 §6, RFC 4340 §11). A packet is a segment that
// carries data; acknowledgements that travel alone have numbers of their own, so that
// their loss is seen too. Nothing is sent again.
//
// Every frame carries the highest number that has come, a bitmap of the 64 before it,
// how long ago that was, and the ack ratio that this end asks for. One acknowledgement
// in R packets goes alone, the last after OptionAckDelay; a packet the other way
// saves it. Each gives at most one measurement of the round trip. It also keeps the
// time-out of RFC 6298, since nobody else knows what is in flight; the wait for
// company at the other end is allowed for beside it.
type DCCPAck struct {
	delay    time.Duration
	estimate *RTTEstimation // of this end's own; not attached
	rto      time.Duration  // with the floor and the granularity of small windows
	floor    time.Duration  // of others
	margin   time.Duration  // granularity of others

	flags, asked microproto.Attr[uint8]
	number       microproto.Attr[uint32]
	highest      microproto.Attr[uint32]
	seen         microproto.Attr[uint64]
	elapsed      microproto.Attr[uint32]

	shared struct { // cells
		window, inFlight, ratio *int
		rto                     *time.Duration
	}
	flight  packetFlight
	came    packetArrivals
	acks    ackArrivals
	ratio   ackRatio
	acksOut uint32 // number of the next acknowledgement that goes alone
	pending int    // packets that came and were not told of
	theirs  int    // ack ratio that the other end asks for
	timed   bool   // a time-out has passed and nothing has come since

	timer    microproto.TimerID // of the acknowledgement
	expiry   microproto.TimerID // of the time-out
	fires    microproto.Instant // when expiry does
	deadline microproto.Instant
	due      bool
}

// PacketReport is what one acknowledgement, or a time-out, tells of the packets of an
// asynchronous channel.
type PacketReport struct {
	First    uint32 // the fate of every packet before it is known
	Next     uint32 // number of the next packet
	Acked    int    // packets acknowledged for the first time
	Lost     int    // packets now taken for lost, of which LastLost has the highest number
	LastLost uint32
	InFlight int           // packets before that
	RTT      time.Duration // smoothed; 0: not known
	Again    bool          // PacketsTimedOut: nothing was acknowledged since the last one
}

// Events of an asynchronous channel with congestion control.
var (
	// PacketSent: the packet of that number leaves.
	PacketSent = microproto.NewEvent[uint32]("ctp.packet.sent")
	// PacketsAcked: an acknowledgement told something new.
	PacketsAcked = microproto.NewEvent[PacketReport]("ctp.packets.acked")
	// PacketsTimedOut: nothing was heard of any packet in flight for the time-out;
	// all are taken for lost.
	PacketsTimedOut = microproto.NewEvent[PacketReport]("ctp.packets.timed.out")

	dccpAckTimer    = microproto.NewEvent[*DCCPAck]("ctp.dccp.ack.timer")
	dccpAckFlush    = microproto.NewEvent[*DCCPAck]("ctp.dccp.ack.flush")
	dccpExpiryTimer = microproto.NewEvent[*DCCPAck]("ctp.dccp.expiry.timer")
)

// flagAcknowledges: something has come, and the fields tell what.
const flagAcknowledges = 2

// Cells that DCCPAck declares, and the attribute by which it tells packets.
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
	floor, err := option(o, OptionPacketRTOFloor, int64(min(d.estimate.floor, defaultRTOFloor)), 1, int64(d.estimate.most))
	if err != nil {
		return nil, err
	}
	d.estimate.floor, d.estimate.granularity = time.Duration(floor), min(d.margin, time.Duration(floor))
	most, err := option(o, OptionAckRatioMax, maxRatio, 1, maxRatio)
	d.estimate.rto, d.estimate.smoothed = &d.rto, new(time.Duration)
	d.rto = d.estimate.initial
	d.flight.first = uint32(first)
	d.ratio = ackRatio{value: min(defaultRatio, int(most)), most: int(most), mark: uint32(first)}
	d.theirs = 1
	return d, err
}

// ackDelay is how long an acknowledgement may wait for company.
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

// AckRatio is the ack ratio that this end asks for now.
func (d *DCCPAck) AckRatio() int { return d.ratio.value }

// AcksLost is the number of the other end's acknowledgements that did not come.
func (d *DCCPAck) AcksLost() uint64 { return d.acks.lost }

// Attach implements microproto.MicroProtocol.
func (d *DCCPAck) Attach(b *microproto.Binder) error {
	d.flags = microproto.WireAttr[uint8](b, attrPacketFlags)
	d.asked = microproto.WireAttr[uint8](b, "dccp.ratio")
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
		*d.shared.rto = d.patient()
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(_ *microproto.Exec, m *microproto.Message) {
		d.flags.Set(m, flagData)
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, d.stamp)
	microproto.Bind(b, microproto.SegmentLost, microproto.Normal, d.refused)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, d.take)
	microproto.Bind(b, dccpAckFlush, microproto.Normal, func(x *microproto.Exec, _ *DCCPAck) { d.flush(x) })
	microproto.Bind(b, dccpAckTimer, microproto.Normal, func(x *microproto.Exec, _ *DCCPAck) {
		d.timer = 0
		d.flush(x)
	})
	microproto.Bind(b, dccpExpiryTimer, microproto.Normal, d.expire)
	return nil
}

// stamp numbers a segment at the last moment and puts in what has come.
func (d *DCCPAck) stamp(x *microproto.Exec, m *microproto.Message) {
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
	d.asked.Set(m, uint8(d.ratio.value))
	if d.came.any {
		flags |= flagAcknowledges
		d.highest.Set(m, d.came.Highest)
		d.seen.Set(m, d.came.Seen)
		d.elapsed.Set(m, d.came.elapsed(x.Now()))
	}
	d.flags.Set(m, flags)
	d.pending, d.due = 0, false
	if d.timer != 0 {
		x.Cancel(d.timer)
		d.timer = 0
	}
}

// refused: there was no room below for a segment; its number is free again.
func (d *DCCPAck) refused(_ *microproto.Exec, m *microproto.Message) {
	if d.flags.Get(m)&flagData != 0 {
		d.flight.unsend(d.number.Get(m))
		*d.shared.inFlight = d.flight.inFlight
	} else {
		d.acksOut--
	}
}

func (d *DCCPAck) take(x *microproto.Exec, m *microproto.Message) {
	flags := d.flags.Get(m)
	data := flags&flagData != 0
	r := Received{Highest: d.highest.Get(m), Seen: d.seen.Get(m)}
	switch {
	case flags&^(flagData|flagAcknowledges) != 0 || flags == 0 || !data && len(m.Payload) > 0:
		x.Drop(m, "malformed acknowledgement")
		return
	case flags&flagAcknowledges != 0 && !before(r.Highest, d.flight.next()):
		x.Drop(m, "acknowledgement of what was never sent")
		return
	}
	kind, lossy := arrivalNewest, false
	if data {
		kind = d.arrive(x, m)
	} else {
		lossy = d.acks.take(d.number.Get(m), x.Now())
	}
	if kind == arrivalAbsurd {
		x.Drop(m, "beyond the window")
		return
	}
	if flags&flagAcknowledges != 0 {
		d.acknowledged(x, r, time.Duration(d.elapsed.Get(m))*time.Microsecond, lossy)
	}
	switch {
	case !data:
		x.Done(m)
	case kind == arrivalAgain:
		x.Drop(m, "duplicate")
	}
}

// arrive notes a packet of the other end's and plans its acknowledgement.
func (d *DCCPAck) arrive(x *microproto.Exec, m *microproto.Message) arrivalKind {
	kind := d.came.take(d.number.Get(m), x.Now())
	if kind == arrivalAbsurd {
		return kind
	}
	if kind == arrivalNewest {
		d.theirs = min(max(int(d.asked.Get(m)), 1), maxRatio)
	}
	d.pending++
	switch {
	case d.due:
	case d.pending >= d.theirs:
		d.due = true
		microproto.Enqueue(x, dccpAckFlush, d)
	case d.timer == 0:
		d.timer = microproto.RaiseAfter(x, dccpAckTimer, d.delay, d)
	}
	return kind
}

// acknowledged takes what the other end says has come.
func (d *DCCPAck) acknowledged(x *microproto.Exec, r Received, waited time.Duration, lossy bool) {
	report, sampled, ok := d.flight.acknowledge(r)
	if ok {
		if rtt := x.Now().Sub(sampled); waited < rtt {
			d.estimate.update(rtt - waited)
			*d.estimate.rtt = d.estimate.srtt
			*d.shared.rto = d.patient()
		}
	}
	report.Next, report.RTT = d.flight.next(), d.estimate.srtt
	*d.shared.inFlight = d.flight.inFlight
	if report.Acked > 0 {
		d.timed = false
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

// arm keeps one timer for the time-out; anew starts it afresh. One that fires too
// early only sets itself again, so that no acknowledgement costs a cancellation.
func (d *DCCPAck) arm(x *microproto.Exec, anew bool) {
	if d.flight.inFlight == 0 {
		d.deadline = 0
		return
	}
	if anew || d.deadline == 0 {
		d.deadline = x.Now().Add(d.timeout())
		if d.flight.inFlight < d.ratio.value {
			d.deadline = d.deadline.Add(d.delay) // they may wait for company
		}
	}
	if d.expiry != 0 && d.fires > d.deadline {
		x.Cancel(d.expiry) // it was set when the time-out was longer
		d.expiry = 0
	}
	if d.expiry == 0 {
		d.fires = d.deadline
		d.expiry = microproto.RaiseAfter(x, dccpExpiryTimer, d.deadline.Sub(x.Now()), d)
	}
}

// smallWindow is a window too small for three packets to come after a lost one.
const smallWindow = 3

// timeout is how long nothing may be heard. In a small window it is the only thing
// that tells of a loss, and while it runs values grow old; and it sends nothing twice
// when it comes too early. So its floor is lower there (RFC 4341 §5 asks for none). A
// larger window would be thrown away for every host that was slow to answer.
func (d *DCCPAck) timeout() time.Duration {
	if *d.shared.window <= smallWindow {
		return d.rto
	}
	return d.patient()
}

// patient is the time-out of windows that are not small: SRTT + max(margin, 4·RTTVAR), at
// least the floor and at most the cap.
func (d *DCCPAck) patient() time.Duration {
	return min(max(d.rto, d.floor, d.estimate.srtt+d.margin), d.estimate.most)
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
	report := PacketReport{InFlight: d.flight.inFlight, Again: d.timed, RTT: d.estimate.srtt, LastLost: d.flight.next() - 1}
	report.Lost = d.flight.abandon()
	report.First, report.Next = d.flight.first, d.flight.first
	d.timed, d.deadline = true, 0
	d.rto = min(2*d.rto, d.estimate.most) // RFC 6298 §5.5
	*d.shared.rto, *d.shared.inFlight = d.patient(), 0
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
