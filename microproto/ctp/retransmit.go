package ctp

import (
	"math"
	"math/bits"
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// Retransmit retains segments until they are acknowledged, and sends lost ones again: at once
// when three later ones have arrived (the threshold of RFC 5681 §3.2, counted in the bitmap as
// in RFC 6675), otherwise after the time-out of RTTEstimation (RFC 6298 §5). After a time-out
// it sends the outstanding segments again as acknowledgements arrive, two for each. It never
// gives up: the heartbeat of the control channel decides that a peer is lost.
//
// With DuplicateAck in the composite, duplicates are counted instead of the bitmap; with a
// congestion window, retransmissions obey it. The bitmap then only prevents retransmission of
// segments that have arrived, unless OptionSelective asks for selective recovery.
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

	hold                       microproto.HoldBit
	retained, flags            microproto.Attr[uint8]
	probe                      microproto.Attr[uint8]
	number                     microproto.Attr[uint32]
	sent                       microproto.Attr[uint64]
	copies                     microproto.Attr[uint32]
	end                        microproto.Attr[uint64]
	sentNext                   *uint32
	grant                      *uint64
	rto, probeTimeout          *time.Duration
	smoothed                   *time.Duration
	pause                      *bool
	ackedTo, sentTo, limit     *uint64
	sentAt                     *microproto.Instant
	countDuplicates, timerKept *bool
	ackedTrain                 *int

	position          uint64 // after the last entry
	timerWasKept      bool   // value of timerKept when the window last moved
	maxEntries        int    // at which Resize pauses; also bounds messages
	messages          int    // of the entries
	entries           fifo.Queue[entry]
	una               uint32             // number of the first entry (SND.UNA)
	prompt            uint32             // segments before it were reported when they arrived
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
	sacked     bool
	state      lossState
	order      uint32 // of its last transmission, see selective
	round      uint32 // Retransmit.round when it was last sent again
	sentBefore uint32 // sentNext when it was last sent
	previous   uint32 // microseconds (modulo 2³²) of the transmission before the last
}

var retransmitTimer = microproto.NewEvent[*Retransmit]("ctp.retransmit.timer")

const (
	reorderThreshold = 3
	maxProbeDelay    = time.Second
	maxWaiting       = 64 // segments that wait for the window
)

func newRetransmit(s *settings) microproto.MicroProtocol {
	return &Retransmit{named: s.named, maxBytes: option(s, OptionInFlight, 2<<20, 1, 1<<40),
		maxCount:  option(s, OptionInFlightCount, 1024, 1, fifoWindow),
		selective: selective{option: option(s, OptionSelective, 0, 0, 1) == 1}}
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
	wireAttr(b, "retransmit.probe", &r.probe)
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
	declareCell(b, cellCountDuplicates, &r.countDuplicates, false)
	declareCell(b, cellKeepTimer, &r.timerKept, false)
	declareCell(b, cellAckedTrain, &r.ackedTrain, 1)
	declareCell(b, cellSelective, &r.selective.on, r.selective.option)
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

// fits reports whether a new segment or train may be sent now.
func (r *Retransmit) fits(m *microproto.Message, k, n int) bool {
	// Segments released by an acknowledgement may not be transmitted yet. A congestion window
	// keeps the order itself.
	first := *r.sentNext == r.number.Get(m) || *r.limit != math.MaxUint64
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
	return r.probe.Get(m) == 0
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
	return r.inCount == 0 || r.inCount+k <= r.maxCount && r.inFlight+n <= r.maxBytes
}

func (r *Retransmit) admit(k, n int) {
	r.passed += k
	r.inCount += k
	r.inFlight += n
}

func (r *Retransmit) transmitting(x *microproto.Exec, m *microproto.Message) {
	if r.flags.Get(m)&flagData == 0 {
		r.probe.Set(m, 0)
		if r.probing {
			r.probe.Set(m, 1)
			r.probing = false
		}
		return
	}
	n, k := r.number.Get(m), m.Segments()
	if r.sent.Has(m) {
		r.copies.Set(m, r.copies.Get(m)+1)
		*r.resent++
	} else if !before(n, *r.sentNext) {
		*r.sentNext = n + uint32(k)
		*r.sentTo = r.end.Get(m)
	}
	previous := microseconds(microproto.Instant(r.sent.Get(m)))
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
	r.arm(x, false)
}

func (r *Retransmit) answerProbe(x *microproto.Exec, m *microproto.Message) {
	if r.probe.Get(m) != 0 {
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
	r.prompt = r.una + maxJudged
	if r.entries.Len() == 0 && !r.blocked && !*r.selective.on {
		*r.ackedTrain, r.timeoutAt, r.tail.due = 1, 0, 0
		return // this end only receives
	}
	if n > maxJudged && r.copies.Get(r.entries.Front().m) == 0 {
		r.prompt = r.una + uint32(n)
	}
	r.sample(x, n, a.Seen)
	r.judgeProbe(x, n, a.Seen)
	r.tail.off = r.tail.off && n == 0
	n = r.splitAtAck(x, n)
	*r.ackedTrain = 1
	for i := 0; i < n; {
		m := r.entries.Front().m
		*r.ackedTrain = max(*r.ackedTrain, m.Segments())
		for range m.Segments() {
			e := r.entries.Front()
			if *r.selective.on {
				r.arrive(x, e, r.una)
				*r.selective.left -= e.bytes(x)
			}
			r.leaveFlight(e)
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
	r.markReceived(x, a.Seen)
	if n > 0 {
		if before(r.recover, r.una) { // keep it close, numbers wrap
			r.recover, r.nextRetry = r.una, r.una
		}
		r.planProbe(x)
		if r.inCount > 0 {
			r.arm(x, !*r.timerKept)
		}
		if *r.limit == math.MaxUint64 {
			r.resumeRecovery(x, 2*n)
		}
	}
	switch {
	case *r.selective.on:
		if r.judgeLosses(x, bits.OnesCount64(a.Seen)); r.selective.due != 0 {
			r.arm(x, false)
		}
	case !*r.countDuplicates:
		r.detectLosses(x, a.Seen)
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

// sample raises SegmentSampled for the newest segment that this acknowledgement is the first to
// acknowledge. A segment that arrived earlier and could not be reported is none: either it was beyond the bitmap, or
// the oldest segment is acknowledged only now because it had to be sent again.
func (r *Retransmit) sample(x *microproto.Exec, n int, seen uint64) {
	newest := -1
	if seen != 0 {
		newest = n + 64 - bits.LeadingZeros64(seen) // bit i is entry n+1+i
	}
	reported := newest >= 0 && newest < r.transmitted() && before(r.una+uint32(newest), r.prompt)
	if !reported || r.entries.At(newest).sacked {
		newest = n - 1
	}
	if newest < 0 || newest >= r.entries.Len() || r.entries.At(newest).sacked {
		return
	}
	if newest < n && r.copies.Get(r.entries.Front().m) > 0 {
		newest = 0
	}
	microproto.Raise(x, SegmentSampled, r.entries.At(newest).m)
}

func (r *Retransmit) transmitted() int { return int(*r.sentNext - r.una) }

func (r *Retransmit) leaveFlight(e *entry) {
	if !e.sacked {
		e.sacked = true
		r.inCount--
		r.inFlight -= int(e.length)
	}
}

func (r *Retransmit) markReceived(x *microproto.Exec, seen uint64) {
	for sent := r.transmitted(); seen != 0; seen &= seen - 1 {
		i := 1 + bits.TrailingZeros64(seen)
		if i >= sent {
			return // beyond the segments sent
		}
		e := r.entries.At(i)
		if *r.selective.on {
			r.arrive(x, e, r.una+uint32(i))
		}
		r.leaveFlight(e)
	}
}

// detectLosses sends segments again after which three sent later have arrived.
func (r *Retransmit) detectLosses(x *microproto.Exec, seen uint64) {
	last := min(64-bits.LeadingZeros64(seen), r.transmitted()-1)
	for i := 0; i < last && bits.OnesCount64(seen>>max(i-1, 0)) >= reorderThreshold; i++ {
		e := r.entries.At(i)
		if e.sacked || x.Held(e.m) != 0 {
			continue
		}
		from := i
		if r.copies.Get(e.m) > 0 {
			from = max(i, int(int32(e.sentBefore-r.una))-1) // only segments sent after its last copy count
		}
		if from >= 64 || bits.OnesCount64(seen>>from) < reorderThreshold {
			continue
		}
		r.resendLost(x, i, trace.ByDuplicates)
	}
}

// resumeRecovery sends again up to n of the segments that were outstanding at a time-out, as far
// as the congestion window allows.
func (r *Retransmit) resumeRecovery(x *microproto.Exec, n int) {
	if before(r.nextRetry, r.una) {
		r.nextRetry = r.una
	}
	for ; n > 0 && before(r.nextRetry, r.recover); r.nextRetry++ {
		i := int(r.nextRetry - r.una)
		e := r.entries.At(i)
		if e.sacked || e.round == r.round {
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
	if e := r.entries.At(i); !e.sacked && r.copies.Get(e.m) == 0 {
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
