package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// Retransmit retains segments until they are acknowledged, and sends lost ones again: selectively, by what
// has arrived and by the times of transmission (see selective), otherwise after the time-out of RTTEstimation
// (RFC 6298 §5). A segment that is sent again carries the number of its copy, which acknowledgements return. Retransmit
// never gives up: the heartbeat of the control channel decides that a peer is lost.
//
// With DuplicateAck in the composite, duplicates are counted instead, unless OptionSelective is 1. The
// bitmap then only prevents retransmission of segments that have arrived, and after a time-out the
// outstanding segments are sent again as acknowledgements arrive. With a congestion window,
// retransmissions obey it.
//
// When RTTEstimation gives a time-out for probes, the oldest missing segment is sent again that
// long after the last transmission: no later segment can show that one of the last is lost (tail-loss
// probe, RFC 8985 §7). TailLost is raised if the segment was lost.
//
// The columns within a cluster have no congestion window, so Retransmit bounds the bytes in
// flight: OptionInFlight, such that a burst fits the kernel's socket buffers. When a Send found
// no credit and nothing is in flight, it probes the other end, with back-off, because a grant
// may be lost.
type Retransmit struct {
	named
	maxBytes, maxCount int

	hold                   microproto.HoldBit
	retained, flags        microproto.Attr[uint8]
	copyOf                 microproto.Attr[uint8]
	number                 microproto.Attr[uint32]
	sent                   microproto.Attr[uint64]
	copies                 microproto.Attr[uint32]
	end                    microproto.Attr[uint64]
	sentNext               *uint32
	grant                  *uint64
	rto, probeTimeout      *time.Duration
	smoothed               *time.Duration
	pause                  *bool
	ackedTo, sentTo, limit *uint64
	sentAt                 *microproto.Instant
	timerKept              *bool
	ackedTrain             *int

	position          uint64 // after the last entry
	timerWasKept      bool   // value of timerKept when the window last moved
	maxEntries        int    // at which Resize pauses; also bounds messages
	messages          int    // of the entries
	entries           fifo.Queue[entry]
	una               uint32             // number of the first entry (SND.UNA)
	arrived           arrivals           // behind the first entry
	reported          uint32             // the last acknowledgement reports the segments before it
	prompt            uint32             // segments before it were reported when they arrived
	copy              uint8              // Copy of the last acknowledgement
	single            bool               // it reports one arrival, so that is the copy
	passed            int                // entries within the window; it holds the others
	inFlight, inCount int                // unacknowledged payload bytes and segments within the window
	expiry                               // at timeoutAt, tail.due or selective.due
	timeoutAt         microproto.Instant // of the oldest segment, 0: none
	tail              tail
	selective         selective

	// The recovery after a time-out: its count, the number at its end, the next to send again.
	round, recover, nextRetry uint32

	blocked    bool   // a Send waits for credit
	blockedAt  uint64 // the grant when it was refused
	probing    bool   // the next acknowledgement carries a probe
	probeDelay time.Duration
	resent     *uint64 // segments sent again
}

// entry is a segment that is not yet acknowledged in order. The segments of a train have the
// same message until it is split.
type entry struct {
	m          *microproto.Message
	length     int32
	state      lossState
	order      uint32 // of its last transmission, see selective
	round      uint32 // Retransmit.round when it was last sent again
	sentBefore uint32 // sentNext when it was last sent
	previous   uint32 // microseconds (modulo 2³²) of the transmission before the last
}

var retransmitTimer = microproto.NewEvent[*Retransmit]("ctp.retransmit.timer")

const (
	againForEach  = 2 // segments that may be sent again for each that arrives
	maxProbeDelay = time.Second
	maxWaiting    = 64 // segments that wait for the window
)

func newRetransmit(s *settings) microproto.MicroProtocol {
	return &Retransmit{named: s.named, maxBytes: option(s, OptionInFlight, 2<<20, 1, 1<<40),
		maxCount: option(s, OptionInFlightCount, 1024, 1, fifoWindow)}
}

// Attach implements microproto.MicroProtocol.
func (r *Retransmit) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrRetained, &r.retained)
	lookupAttr(b, attrFlags, &r.flags)
	lookupAttr(b, attrNumber, &r.number)
	lookupCell(b, cellSentNext, &r.sentNext)
	lookupCell(b, cellGrant, &r.grant)
	lookupCell(b, cellPause, &r.pause)
	// Half of the pool is reserved for incoming segments.
	r.maxEntries = max(1, b.Limits().Messages/2)
	wireAttr(b, attrCopy, &r.copyOf)
	r.sent = microproto.LocalAttr[uint64](b, attrSent)
	r.copies = microproto.LocalAttr[uint32](b, attrCopies)
	r.end = microproto.LocalAttr[uint64](b, attrEnd)
	declareCell(b, cellRTO, &r.rto, time.Second)
	declareCell(b, cellProbe, &r.probeTimeout, 0)
	declareCell(b, cellSmoothed, &r.smoothed, 0)
	declareCell(b, cellAckedTo, &r.ackedTo, 0)
	declareCell(b, cellSentTo, &r.sentTo, 0)
	declareCell(b, cellLimit, &r.limit, math.MaxUint64)
	declareCell(b, cellSentAt, &r.sentAt, 0)
	declareCell(b, cellKeepTimer, &r.timerKept, false)
	declareCell(b, cellAckedTrain, &r.ackedTrain, 1)
	declareCell(b, cellSelective, &r.selective.on, true)
	declareCell(b, cellLeft, &r.selective.left, 0)
	declareCell(b, microproto.CellRetransmitted, &r.resent, 0)
	r.hold = b.HoldBit("Retransmit.window")
	b.Common(microproto.CommonCase{
		Send: r.sendsAlone, Sent: r.sentAlone, Retains: true, Expect: r.expectsAlone, Priority: probePriority,
	})
	b.Flow(r.flow)
	microproto.Bind(b, microproto.OpenSession, microproto.Early, func(*microproto.Exec, struct{}) {
		r.una, r.position = *r.sentNext, *r.sentTo
		r.recover, r.nextRetry = r.una, r.una
		r.reported = r.una + fifoWindow
		s := &r.selective
		s.first, s.beyond, s.highest, s.end, s.counted = r.una, r.una, r.una, r.una, r.una
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Last, r.retain)
	microproto.Bind(b, microproto.SegmentToNet, microproto.Early, r.transmitting)
	microproto.Bind(b, microproto.SegmentFromNet, probePriority, r.answerProbe)
	bind(b, AckArrived, r.acked)
	bind(b, microproto.DrainSession, r.drain)
	bind(b, CreditBlocked, r.block)
	bind(b, retransmitTimer, r.expire)
	bind(b, RetransmitOldest, r.retransmitOldest)
	bind(b, microproto.PathSilent, r.pathSilent)
	bind(b, microproto.PathMoved, r.pathMoved)
	bind(b, WindowMoved, r.windowMoved)
	bind(b, segmentNamed, r.retransmitNamed)
	bind(b, trainSplit, func(x *microproto.Exec, c *splitRequest) {
		if r.messages < r.maxEntries {
			c.rest = r.split(x, c.m, c.k)
		}
	})
	return nil
}

// retain adds every new segment, and holds it if the window is full.
func (r *Retransmit) retain(x *microproto.Exec, m *microproto.Message) {
	k, n := m.Segments(), m.Length()
	fits := r.fits(m, k, n)
	if r.add(x, m, k, n); fits {
		r.admit(k, n)
	} else {
		x.Hold(m, r.hold)
		if w := x.RecordFlow(trace.WindowFull); w != nil {
			w.Number, w.Count, w.Bytes = uint64(r.number.Get(m)), uint16(k), trace.Clamp(n)
		}
	}
	r.updatePause()
}

// bounded reports whether the composite has a congestion window.
func (r *Retransmit) bounded() bool { return *r.limit != math.MaxUint64 }

// fits reports whether a new segment or train may be sent now.
func (r *Retransmit) fits(m *microproto.Message, k, n int) bool {
	// Segments released by an acknowledgement may not be transmitted yet. A congestion window
	// keeps the order itself.
	first := *r.sentNext == r.number.Get(m) || r.bounded()
	return r.passed == r.entries.Len() && r.room(k, n) && first
}

// add retains a new segment, or a train of k, with n bytes in all.
func (r *Retransmit) add(x *microproto.Exec, m *microproto.Message, k, n int) {
	r.retained.Set(m, 1)
	r.messages++
	r.position += uint64(k*x.HeaderBytes() + n)
	r.end.Set(m, r.position)
	for i := range k {
		r.entries.Push(entry{m: m, length: int32(min(m.Unit(), n-i*m.Unit()))})
	}
}

// The header of Retransmit: a request for an acknowledgement, because a Send waits for credit, and behind that bit the
// number of the copy.
const (
	probeRequest = 1
	maskCopy     = 3
)

// copyNumber returns 0 for a segment that is sent for the first time, and 1, 2, 3, 1, … for the transmissions after it.
func copyNumber(copies uint32) uint8 {
	if copies == 0 {
		return 0
	}
	return uint8(1 + (copies-1)%maskCopy)
}

// probePriority lets Retransmit answer a probe before the acknowledgement in the same segment is processed.
const probePriority = -200

// sendsAlone, sentAlone and expectsAlone are the common case: a segment that fits the window, and no probe.
func (r *Retransmit) sendsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	return r.fits(m, 1, len(m.Payload))
}

func (r *Retransmit) sentAlone(x *microproto.Exec, m *microproto.Message) {
	n := len(m.Payload)
	r.add(x, m, 1, n)
	r.admit(1, n)
	r.updatePause()
	r.transmitting(x, m)
}

func (r *Retransmit) expectsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	return r.copyOf.Get(m)&probeRequest == 0
}

// flow reports the fixed window. WindowCongestionControl replaces what it knows better.
func (r *Retransmit) flow(f *microproto.FlowState) {
	f.Window, f.InFlight, f.Waiting = r.maxBytes, r.inFlight, int(r.position-*r.sentTo)
}

func (r *Retransmit) recordLoss(x *microproto.Exec, number uint32, cause trace.Cause) {
	if l := x.Record(trace.Loss); l != nil {
		l.Number, l.Count, l.Cause = uint64(number), 1, cause
	}
}

func (r *Retransmit) updatePause() {
	*r.pause = r.entries.Len()-r.passed >= maxWaiting || r.entries.Len() >= r.maxEntries
}

// room reports whether k segments of n bytes fit the window, admit counts them as in flight.
func (r *Retransmit) room(k, n int) bool {
	return r.inCount == 0 ||
		r.passed+k <= fifoWindow && r.inCount+k <= r.maxCount && r.inFlight+n <= r.maxBytes
}

func (r *Retransmit) admit(k, n int) {
	r.passed += k
	r.inCount += k
	r.inFlight += n
}

func (r *Retransmit) transmitting(x *microproto.Exec, m *microproto.Message) {
	if r.flags.Get(m)&flagData == 0 {
		r.copyOf.Set(m, 0)
		if r.probing {
			r.copyOf.Set(m, probeRequest)
			r.probing = false
		}
		return
	}
	n, k := r.number.Get(m), m.Segments()
	if r.sent.Has(m) {
		r.copies.Set(m, r.copies.Get(m)+1)
		r.copyOf.Set(m, copyNumber(r.copies.Get(m))<<1)
		*r.resent++
	} else if !before(n, *r.sentNext) {
		*r.sentNext = n + uint32(k)
		*r.sentTo = r.end.Get(m)
	}
	previous := microseconds(microproto.Instant(r.sent.Get(m)))
	oldest := *r.selective.on && n == r.una && r.sent.Has(m)
	r.sent.Set(m, uint64(x.Now()))
	*r.sentAt = x.Now()
	if r.tail.at == 0 && r.tail.probes > 0 && n == r.tail.number {
		r.tail.at = x.Now()
	}
	r.planProbe(x)
	r.selective.order++
	for i := range k {
		e := r.entries.At(int(n-r.una) + i)
		e.sentBefore, e.order, e.previous = *r.sentNext, r.selective.order, previous
	}
	r.arm(x, oldest)
}

func (r *Retransmit) answerProbe(x *microproto.Exec, m *microproto.Message) {
	if r.copyOf.Get(m)&probeRequest != 0 {
		microproto.Raise(x, AckRequested, Now)
	}
}

// acked processes an acknowledgement; PositiveAck has checked that it is of segments sent.
func (r *Retransmit) acked(x *microproto.Exec, a Ack) {
	if r.blocked && a.Credit > r.blockedAt {
		r.blocked, r.probeDelay = false, 0
	}
	n := int(int32(a.Next - r.una))
	if n < 0 {
		return // older than one that arrived before
	}
	r.prompt, r.reported, r.copy = r.reported, a.reported(), a.Copy
	r.single = *r.selective.on && a.single(&r.arrived, r.una)
	if r.entries.Len() == 0 && !r.blocked {
		*r.ackedTrain, r.timeoutAt, r.tail.due = 1, 0, 0
		return // this end only receives
	}
	if before(r.prompt, a.Next) && r.copies.Get(r.entries.Front().m) == 0 {
		r.prompt = a.Next
	}
	r.sample(x, n, a)
	r.judgeTimeout(x, n, a)
	r.judgeProbe(x, n, a)
	r.tail.off = r.tail.off && n == 0
	n = r.splitAtAck(x, n)
	*r.ackedTrain = 1
	inFlight := r.inCount
	for i := 0; i < n; {
		m := r.entries.Front().m
		*r.ackedTrain = max(*r.ackedTrain, m.Segments())
		for range m.Segments() {
			e := r.entries.Front()
			if *r.selective.on {
				r.arrive(x, e, r.una)
				*r.selective.left -= e.bytes(x)
			}
			r.leaveFlight(e, r.una)
			r.arrived.remove(r.una)
			r.entries.Drop()
			r.una++
			r.passed--
			i++
		}
		r.messages--
		*r.ackedTo = r.end.Get(m)
		microproto.Raise(x, microproto.SegmentAcked, m)
		x.Done(m)
	}
	r.markReceived(x, a.Next+1, a.Seen)
	for i := 0; i < len(a.Beyond); i += 8 {
		r.markReceived(x, a.First+8*uint32(i), a.word(i))
	}
	if n > 0 {
		if before(r.recover, r.una) { // keep it close, numbers wrap
			r.recover, r.nextRetry = r.una, r.una
		}
		r.selective.keepClose(r.una)
		r.planProbe(x)
		if r.inCount > 0 {
			r.arm(x, !*r.timerKept)
		} else {
			r.timeoutAt = 0 // those that wait for the window are sent now
		}
	}
	if *r.selective.on && r.mayLose() {
		if r.judgeLosses(x); r.selective.due != 0 {
			r.arm(x, false)
		}
		if r.selective.most = againForEach * max(1, inFlight-r.inCount); !r.bounded() {
			r.sendLost(x)
		}
	}
	for r.passed < r.entries.Len() {
		m := r.entries.At(r.passed).m
		if !r.room(m.Segments(), m.Length()) {
			break
		}
		r.admit(m.Segments(), m.Length())
		x.Release(m, r.hold)
	}
	r.updatePause()
	if r.inCount == 0 {
		r.timeoutAt, r.tail.due, r.selective.due = 0, 0, 0
		if r.blocked {
			r.arm(x, true)
		}
	}
}

func (r *Retransmit) transmitted() int { return int(*r.sentNext - r.una) }

// resumeRecovery sends again up to n of the segments that were outstanding at a time-out, as far
// as the congestion window allows.
func (r *Retransmit) resumeRecovery(x *microproto.Exec, n int) {
	if before(r.nextRetry, r.una) {
		r.nextRetry = r.una
	}
	for ; n > 0 && before(r.nextRetry, r.recover); r.nextRetry++ {
		i := int(r.nextRetry - r.una)
		e := r.entries.At(i)
		if r.has(i) || e.round == r.round {
			continue
		}
		if !r.isolate(x, i) || r.end.Get(e.m) > *r.limit {
			return
		}
		r.resend(x, e)
		n--
	}
}

// retransmitOldest sends the oldest segment again: duplicates show that it is lost.
func (r *Retransmit) retransmitOldest(x *microproto.Exec, _ struct{}) {
	if r.transmitted() > 0 {
		r.resendLost(x, 0, trace.ByDuplicates)
	}
}

// retransmitNamed sends a segment again that the other end reports as missing, unless it was
// sent again before: the report may be older than that copy.
func (r *Retransmit) retransmitNamed(x *microproto.Exec, number uint32) {
	i := int(int32(number - r.una))
	if i < 0 || i >= r.transmitted() {
		return
	}
	if e := r.entries.At(i); !r.has(i) && r.copies.Get(e.m) == 0 {
		r.resendLost(x, i, trace.ByName)
	}
}

// windowMoved continues a recovery as far as the window allows, and restarts the timer if it was
// not restarted because of a recovery that has ended.
func (r *Retransmit) windowMoved(x *microproto.Exec, _ struct{}) {
	if r.timerWasKept && !*r.timerKept && r.inCount > 0 {
		r.arm(x, true)
	}
	r.timerWasKept = *r.timerKept
	if *r.selective.on {
		r.sendLost(x)
	} else {
		r.resumeRecovery(x, math.MaxInt)
	}
}

// resendLost sends lost segment i again, if the pool has messages to isolate it.
func (r *Retransmit) resendLost(x *microproto.Exec, i int, cause trace.Cause) {
	if r.isolate(x, i) {
		r.recordLoss(x, r.una+uint32(i), cause)
		e := r.entries.At(i)
		microproto.Raise(x, microproto.SegmentLost, e.m)
		r.resend(x, e)
	}
}

func (r *Retransmit) resend(x *microproto.Exec, e *entry) {
	e.round = r.round
	if to := repairing; *r.selective.on {
		if e.state != detected {
			to = inNetwork
		}
		r.setState(x, e, to)
	}
	x.Resend(e.m)
}
