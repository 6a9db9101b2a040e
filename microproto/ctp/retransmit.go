package ctp

import (
	"math"
	"math/bits"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Retransmit keeps segments until they are acknowledged and sends them again when
// they are lost: at once when three later ones have come (the threshold of RFC 5681
// §3.2, counted in the bitmap as RFC 6675 does), otherwise when the time-out of
// RTTEstimation has passed (RFC 6298 §5). After a time-out what was outstanding is
// sent again as acknowledgements come back, two for one. It never gives up: the
// heartbeat of the control channel decides that a peer is lost.
//
// Where DuplicateAck stands below, it counts duplicates instead of judging the
// bitmap, and where a congestion window does, what is sent again obeys it; the
// bitmap then only keeps from being sent again what has come.
//
// It also bounds what is in flight, since the intra-cluster columns have no
// congestion window: OptionInFlight bytes, so that a burst fits the kernel's socket
// buffers. And when a Send found no credit and nothing is in flight it asks the
// other end, with back-off, so that a lost grant stops nobody.
type Retransmit struct {
	maxBytes, maxCount int

	hold                      microproto.HoldBit
	kept, flags               microproto.Attr[uint8]
	probe                     microproto.Attr[uint8]
	number                    microproto.Attr[uint32]
	sent                      microproto.Attr[uint64]
	copies                    microproto.Attr[uint32]
	end                       microproto.Attr[uint64]
	sentNext                  *uint32
	grant                     *uint64
	rto                       *time.Duration
	pause                     *bool // Resize cuts no more
	ackedTo, sentTo, limit    *uint64
	sentAt                    *microproto.Instant
	byCount, timerKept        *bool
	together                  *int
	position                  uint64 // behind the last entry
	wasKept                   bool   // the timer was, when the window moved last
	most                      int    // entries at which it does, and messages that they are
	messages                  int    // that the entries are
	entries                   fifo[entry]
	una                       uint32 // number of entries' first
	passed                    int    // entries that may go: behind them the window holds
	inFlight, inCount         int    // payload bytes and segments passed and not acknowledged
	deadline                  microproto.Instant
	timer                     microproto.TimerID
	fires                     microproto.Instant // when the timer does
	round, recover, nextRetry uint32             // a time-out's recovery: its count, its end, where it stands

	blocked    bool
	blockedAt  uint64 // the grant then
	probing    bool   // the next acknowledgement asks
	probeDelay time.Duration
	resent     *uint64 // segments sent again
}

// entry is a segment that is not yet acknowledged in order; those of a train have the
// same message until it is cut.
type entry struct {
	m      *microproto.Message
	length int32
	sacked bool
	round  uint32 // of the time-out after which it was last sent again
	mark   uint32 // sentNext when it was last sent
}

var retransmitTimer = microproto.NewEvent[*Retransmit]("ctp.retransmit.timer")

const (
	reorderThreshold = 3
	maxProbeDelay    = time.Second
	maxWaiting       = 64 // segments cut and waiting behind the window
)

func newRetransmit(o microproto.Options) (microproto.MicroProtocol, error) {
	b, err := option(o, OptionInFlight, 2<<20, 1, 1<<40)
	if err != nil {
		return nil, err
	}
	n, err := option(o, OptionInFlightCount, 1024, 1, fifoWindow)
	return &Retransmit{maxBytes: int(b), maxCount: int(n)}, err
}

// Name implements microproto.MicroProtocol.
func (r *Retransmit) Name() string { return "Retransmit" }

// Attach implements microproto.MicroProtocol.
func (r *Retransmit) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	r.kept = microproto.LookupAttr[uint8](b, attrKept)
	r.flags = microproto.LookupAttr[uint8](b, attrFlags)
	r.number = microproto.LookupAttr[uint32](b, attrNumber)
	r.sentNext = microproto.LookupCell[uint32](b, cellSentNext)
	r.grant = microproto.LookupCell[uint64](b, cellGrant)
	r.pause = microproto.LookupCell[bool](b, cellPause)
	// Half of the pool is left for what comes in.
	r.most = max(1, b.Limits().Messages/2)
	r.probe = microproto.WireAttr[uint8](b, "retransmit.probe")
	r.sent = microproto.LocalAttr[uint64](b, attrSent)
	r.copies = microproto.LocalAttr[uint32](b, attrCopies)
	r.end = microproto.LocalAttr[uint64](b, attrEnd)
	r.rto = microproto.DeclareCell(b, cellRTO, time.Second)
	r.ackedTo = microproto.DeclareCell(b, cellAckedTo, uint64(0))
	r.sentTo = microproto.DeclareCell(b, cellSentTo, uint64(0))
	r.limit = microproto.DeclareCell(b, cellLimit, uint64(math.MaxUint64))
	r.sentAt = microproto.DeclareCell(b, cellSentAt, microproto.Instant(0))
	r.byCount = microproto.DeclareCell(b, cellByCount, false)
	r.timerKept = microproto.DeclareCell(b, cellTimer, false)
	r.together = microproto.DeclareCell(b, cellTogether, 1)
	r.resent = microproto.DeclareCell(b, microproto.CellRetransmitted, uint64(0))
	r.hold = b.HoldBit("Retransmit.window")
	microproto.Bind(b, microproto.OpenSession, microproto.Early, func(*microproto.Exec, struct{}) {
		r.una, r.position = *r.sentNext, *r.sentTo
		r.recover, r.nextRetry = r.una, r.una
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Last, r.keep)
	microproto.Bind(b, microproto.SegmentToNet, microproto.Early, r.note)
	microproto.Bind(b, microproto.SegmentFromNet, -200, r.answer)
	microproto.Bind(b, AckArrived, microproto.Normal, r.acked)
	microproto.Bind(b, microproto.DrainSession, microproto.Normal, r.drain)
	microproto.Bind(b, CreditBlocked, microproto.Normal, r.block)
	microproto.Bind(b, retransmitTimer, microproto.Normal, r.expire)
	microproto.Bind(b, RetransmitOldest, microproto.Normal, r.again)
	microproto.Bind(b, WindowMoved, microproto.Normal, r.moved)
	microproto.Bind(b, segmentNamed, microproto.Normal, r.named)
	microproto.Bind(b, trainCut, microproto.Normal, func(x *microproto.Exec, c *cutting) {
		if r.messages < r.most {
			c.rest = r.split(x, c.m, c.k)
		}
	})
	return nil
}

// keep takes every new segment and holds it if the window is full.
func (r *Retransmit) keep(x *microproto.Exec, m *microproto.Message) {
	r.kept.Set(m, 1)
	r.messages++
	k, n := m.Segments(), m.Length()
	r.position += uint64(k*x.HeaderBytes() + n)
	r.end.Set(m, r.position)
	for i := range k {
		r.entries.push(entry{m: m, length: int32(min(m.Unit(), n-i*m.Unit()))})
	}
	// Those let go by an acknowledgement may still be on their way; a congestion window
	// keeps the order itself.
	first := *r.sentNext == r.number.Get(m) || *r.limit != math.MaxUint64
	if r.passed == r.entries.n-k && r.room(k, n) && first {
		r.pass(k, n)
	} else {
		x.Hold(m, r.hold)
	}
	r.level()
}

// level pauses Resize while enough segments wait behind the window.
func (r *Retransmit) level() {
	*r.pause = r.entries.n-r.passed >= maxWaiting || r.entries.n >= r.most
}

// room tells whether k segments of n bytes may go, pass lets them.
func (r *Retransmit) room(k, n int) bool {
	return r.inCount == 0 || r.inCount+k <= r.maxCount && r.inFlight+n <= r.maxBytes
}

func (r *Retransmit) pass(k, n int) {
	r.passed += k
	r.inCount += k
	r.inFlight += n
}

// note marks a segment that is about to be transmitted.
func (r *Retransmit) note(x *microproto.Exec, m *microproto.Message) {
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
	r.sent.Set(m, uint64(x.Now()))
	*r.sentAt = x.Now()
	for i := range k {
		r.entries.at(int(n-r.una) + i).mark = *r.sentNext
	}
	r.arm(x, false)
}

// answer: the other end wants to know its credit.
func (r *Retransmit) answer(x *microproto.Exec, m *microproto.Message) {
	if r.probe.Get(m) != 0 {
		microproto.Raise(x, AckWanted, Now)
	}
}

// acked takes an acknowledgement: PositiveAck has seen that it is of what was sent.
func (r *Retransmit) acked(x *microproto.Exec, a Ack) {
	if r.blocked && a.Credit > r.blockedAt {
		r.blocked, r.probeDelay = false, 0
	}
	n := int(int32(a.Next - r.una))
	if n < 0 {
		return // older than one that came before
	}
	r.sample(x, n, a.Seen)
	n = r.whole(x, n)
	*r.together = 1
	for i := 0; i < n; {
		m := r.entries.front().m
		*r.together = max(*r.together, m.Segments())
		for range m.Segments() {
			r.settle(r.entries.front())
			r.entries.pop()
			r.una++
			r.passed--
			i++
		}
		r.messages--
		*r.ackedTo = r.end.Get(m)
		microproto.Raise(x, microproto.SegmentAcked, m)
		x.Done(m)
	}
	r.mark(a.Seen)
	if n > 0 {
		if before(r.recover, r.una) { // or it would seem to lie ahead 2³¹ segments later
			r.recover, r.nextRetry = r.una, r.una
		}
		if r.inCount > 0 && !*r.timerKept {
			r.arm(x, true)
		}
		if *r.limit == math.MaxUint64 {
			r.goOn(x, 2*n)
		}
	}
	if !*r.byCount {
		r.lost(x, a.Seen)
	}
	for r.passed < r.entries.n {
		m := r.entries.at(r.passed).m
		if !r.room(m.Segments(), m.Length()) {
			break
		}
		r.pass(m.Segments(), m.Length())
		x.Release(m, r.hold)
	}
	r.level()
	if r.inCount == 0 {
		r.deadline = 0
		if r.blocked {
			r.arm(x, true)
		}
	}
}

// sample offers the newest segment that this acknowledgement is the first to
// acknowledge, for a measurement of the round trip.
func (r *Retransmit) sample(x *microproto.Exec, n int, seen uint64) {
	newest := -1
	if seen != 0 {
		newest = n + 64 - bits.LeadingZeros64(seen) // bit i is entry n+1+i
	}
	if newest < 0 || newest >= r.transmitted() || r.entries.at(newest).sacked {
		newest = n - 1
	}
	if newest >= 0 && newest < r.entries.n && !r.entries.at(newest).sacked {
		microproto.Raise(x, SegmentSampled, r.entries.at(newest).m)
	}
}

// transmitted is the number of entries that have been transmitted.
func (r *Retransmit) transmitted() int { return int(*r.sentNext - r.una) }

// settle takes a segment out of flight, once.
func (r *Retransmit) settle(e *entry) {
	if !e.sacked {
		e.sacked = true
		r.inCount--
		r.inFlight -= int(e.length)
	}
}

// mark notes what the bitmap says has come.
func (r *Retransmit) mark(seen uint64) {
	for sent := r.transmitted(); seen != 0; seen &= seen - 1 {
		i := 1 + bits.TrailingZeros64(seen)
		if i >= sent {
			return // of what was never sent
		}
		r.settle(r.entries.at(i))
	}
}

// lost sends again what three segments sent later have overtaken.
func (r *Retransmit) lost(x *microproto.Exec, seen uint64) {
	last := min(64-bits.LeadingZeros64(seen), r.transmitted()-1)
	for i := 0; i < last && bits.OnesCount64(seen>>max(i-1, 0)) >= reorderThreshold; i++ {
		e := r.entries.at(i)
		if e.sacked {
			continue
		}
		from := i
		if e.m != nil && r.copies.Get(e.m) > 0 {
			from = max(i, int(int32(e.mark-r.una))-1) // only what was sent after its last copy counts
		}
		if from >= 64 || bits.OnesCount64(seen>>from) < reorderThreshold || !r.alone(x, i) {
			continue
		}
		microproto.Raise(x, microproto.SegmentLost, e.m)
		r.resend(x, e)
	}
}

// goOn sends again up to n segments of those that were outstanding at a time-out,
// as far as a congestion window allows.
func (r *Retransmit) goOn(x *microproto.Exec, n int) {
	if before(r.nextRetry, r.una) {
		r.nextRetry = r.una
	}
	for ; n > 0 && before(r.nextRetry, r.recover); r.nextRetry++ {
		i := int(r.nextRetry - r.una)
		e := r.entries.at(i)
		if e.sacked || e.round == r.round {
			continue
		}
		if !r.alone(x, i) {
			return
		}
		if r.end.Get(e.m) > *r.limit {
			return
		}
		r.resend(x, e)
		n--
	}
}

// again: who counts duplicates takes the oldest segment for lost.
func (r *Retransmit) again(x *microproto.Exec, _ struct{}) {
	if r.transmitted() == 0 {
		return
	}
	if e := r.entries.front(); r.alone(x, 0) {
		microproto.Raise(x, microproto.SegmentLost, e.m)
		r.resend(x, e)
	}
}

// named: the other end misses a segment. What was sent again already is left to
// acknowledgements: the name may be older than the copy.
func (r *Retransmit) named(x *microproto.Exec, number uint32) {
	i := int(int32(number - r.una))
	if i < 0 || i >= r.transmitted() {
		return
	}
	e := r.entries.at(i)
	if e.sacked || r.copies.Get(e.m) > 0 || !r.alone(x, i) {
		return
	}
	microproto.Raise(x, microproto.SegmentLost, e.m)
	r.resend(x, e)
}

// moved: the congestion window allows more, or its recovery has ended and with it
// the timer that it kept.
func (r *Retransmit) moved(x *microproto.Exec, _ struct{}) {
	if r.wasKept && !*r.timerKept && r.inCount > 0 {
		r.arm(x, true)
	}
	r.wasKept = *r.timerKept
	r.goOn(x, math.MaxInt)
}

func (r *Retransmit) resend(x *microproto.Exec, e *entry) {
	e.round = r.round
	microproto.Raise(x, microproto.SegmentToNet, e.m)
}
