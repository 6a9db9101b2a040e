package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// selective is the state of selective recovery: Retransmit judges every segment by what has arrived and by the
// times of transmission (RACK, RFC 8985 §6.2), and sends what is lost again as the bytes in the network
// allow (RFC 6675 §4). It repairs all losses of a window in a round trip, also those of retransmissions,
// where NewReno repairs one.
type selective struct {
	on   *bool
	left *uint64 // bytes of the window that are out of the network: arrived, or lost and not sent again

	order  uint32 // transmissions so far; a train is one
	lost   int    // entries that are lost and not sent again
	first  uint32 // no entry before this number is lost
	beyond uint32 // entries before this number are judged, or known to be out of the network

	// The segment sent last of those known to have arrived.
	newest uint32        // order of its transmission; 0: none is known
	rtt    time.Duration // its round trip

	least     time.Duration // the smallest round trip of a segment sent once
	highest   uint32        // after the highest number known to have arrived
	reordered bool          // a segment sent once has arrived after a later one
	late      time.Duration // by how much such segments are later than those sent after them
	needless  int           // round trips in which a retransmission was found needless
	counted   uint32        // number at the end of the last of them
	since     int           // reductions since then

	reduction                    // the last one
	undone    reduction          // the one before the last time-out
	due       microproto.Instant // when the next segment counts as lost; 0: none
	must      bool               // the first retransmission of a recovery does not wait for the window

	most int // segments that may be sent again now, where no congestion window bounds them

	// What this recovery has sent again, and how much of that was needless.
	again, arrived int
}

// reduction is a reduction of the window.
type reduction struct {
	reduced uint32 // order of the first transmission after it
	end     uint32 // number at the end of the recovery
}

// lossState is the state of a segment that is not known to have arrived.
type lossState uint8

const (
	inNetwork lossState = iota
	repairing           // in the network again: it was lost
	unknown             // out of the network, lost or not: beyond the bitmap, and its acknowledgement is overdue
	detected            // lost
	timedOut            // outstanding at a time-out
)

const (
	reorderBy  = 4 // the reordering window is a multiple of a quarter of a round trip
	manyBefore = 3 // segments that have arrived after a missing one show that it is lost
	// persistence is the number of reductions after which the reordering window is small again.
	persistence = 16
)

func (e *entry) isLost() bool { return e.state >= detected }

// bytes returns what an entry takes of the window.
func (e *entry) bytes(x *microproto.Exec) uint64 { return uint64(int(e.length) + x.HeaderBytes()) }

// setState changes the state of an entry, and counts its bytes and losses accordingly.
func (r *Retransmit) setState(x *microproto.Exec, e *entry, to lossState) {
	s := &r.selective
	if e.state < unknown && to >= unknown {
		*s.left += e.bytes(x)
	}
	if e.state >= unknown && to < unknown {
		*s.left -= e.bytes(x)
	}
	if e.isLost() {
		s.lost--
	}
	if e.state = to; e.isLost() {
		s.lost++
	}
}

// arrive counts an entry as arrived.
func (r *Retransmit) arrive(x *microproto.Exec, e *entry, number uint32) {
	if r.arrived.has(number) {
		return
	}
	r.delivered(x, e, number)
	r.setState(x, e, inNetwork)
	*r.selective.left += e.bytes(x)
}

// delivered learns from a segment that is acknowledged for the first time.
func (r *Retransmit) delivered(x *microproto.Exec, e *entry, number uint32) {
	s := &r.selective
	if x.Held(e.m) != 0 { // acknowledged before it is sent again
		r.refuted(x, e)
		return
	}
	rtt := x.Now().Sub(microproto.Instant(r.sent.Get(e.m)))
	again, prompt := r.copies.Get(e.m) > 0, before(number, r.prompt)
	switch {
	case !again && before(number, s.highest):
		s.reordered = true
		if prompt {
			r.arrivedLate(rtt)
		}
	case !again:
	case r.single && r.copy == copyNumber(r.copies.Get(e.m)):
	case r.single || rtt < s.least && r.elapsed(x, e) <= *r.rto:
		// An earlier transmission has arrived. Several arrivals in one acknowledgement show that only if it is sooner
		// than a round trip.
		if e.state == repairing { // after a time-out it is an outage
			r.arrivedLate(r.elapsed(x, e))
		}
		r.refuted(x, e)
		return
	default:
		return // an earlier transmission may have arrived
	}
	// The round trip may have become shorter since it was first measured.
	if prompt && (s.least == 0 || rtt < s.least) {
		s.least = max(rtt, 1)
	}
	if before(s.highest, number+1) {
		s.highest = number + 1
	}
	if s.newest == 0 || before(s.newest, e.order) {
		if s.newest = e.order; prompt {
			s.rtt = rtt
		}
	}
}

// elapsed returns the time since the transmission before the last.
func (r *Retransmit) elapsed(x *microproto.Exec, e *entry) time.Duration {
	return time.Duration(microseconds(x.Now())-e.previous) * time.Microsecond
}

// arrivedLate learns from a round trip of a segment that later ones have overtaken.
func (r *Retransmit) arrivedLate(rtt time.Duration) {
	s := &r.selective
	if late := rtt - s.rtt; late > s.late/2 && !r.bounded() {
		s.late, s.since = max(s.late, late), 0
	}
}

// refuted notes that a segment was sent again needlessly. If that holds for all that the recovery has
// sent again, nothing was lost.
func (r *Retransmit) refuted(x *microproto.Exec, e *entry) {
	s := &r.selective
	s.reordered = true
	if !before(r.una, s.counted) {
		s.needless++
		s.counted, s.since = *r.sentNext, 0
	}
	if e.state != repairing {
		return
	}
	if s.arrived++; s.arrived == s.again && s.lost == 0 {
		s.again, s.arrived = 0, 0
		microproto.Raise(x, LossesRefuted, struct{}{})
	}
}

// reorderWindow returns how much later than a round trip an acknowledgement may arrive (RFC 8985 §6.2,
// step 4).
func (r *Retransmit) reorderWindow() time.Duration {
	s := &r.selective
	if !s.reordered && (before(r.una, s.end) || r.arrived.count >= manyBefore) {
		return 0
	}
	quarters := time.Duration(1 + s.needless)
	if r.bounded() {
		return min(quarters*s.least/reorderBy, *r.smoothed)
	}
	return min(max(quarters**r.smoothed/reorderBy, s.late), *r.rto)
}

// mayLose reports whether losses can be found: segments have arrived after a missing one, or the oldest was sent
// before one that has arrived.
func (r *Retransmit) mayLose() bool {
	s := &r.selective
	return r.arrived.count > 0 || s.lost > 0 || s.due != 0 ||
		r.transmitted() > 0 && before(r.entries.Front().order, s.newest)
}

// judgeLosses marks the segments that are lost: a later transmission has arrived, and their own
// acknowledgement is overdue. The window is reduced once for all losses of a round trip, and again if a
// retransmission is lost (RFC 5681 §4.3).
func (r *Retransmit) judgeLosses(x *microproto.Exec) {
	s := &r.selective
	s.due = 0
	if s.newest == 0 {
		return
	}
	wait := s.rtt + r.reorderWindow()
	some, reduce := false, false
	end := r.reported
	if before(*r.sentNext, end) {
		end = *r.sentNext
	}
	for n := r.una; before(n, end); n = r.arrived.missing(n + 1) {
		e := r.entries.At(int(n - r.una))
		if e.isLost() || x.Held(e.m) != 0 {
			continue // a held segment is not sent again yet
		}
		at := microproto.Instant(r.sent.Get(e.m)).Add(wait)
		overtaken := before(e.order, s.newest)
		if overtaken && x.Now() < at && (s.due == 0 || at < s.due) {
			s.due = at
		}
		if !overtaken || x.Now() < at {
			if !before(n, s.highest) && r.copies.Get(e.m) == 0 {
				break // those behind were sent later
			}
			continue
		}
		r.setState(x, e, detected)
		r.recordLoss(x, n, trace.ByDuplicates)
		if before(n, s.first) {
			s.first = n
		}
		some = true
		reduce = reduce || !before(e.order, s.reduced)
	}
	if r.bounded() {
		r.judgeBeyond(x, wait)
	}
	if reduce {
		if !before(r.una, s.end) {
			s.again, s.arrived = 0, 0
		}
		r.reduce()
		s.must = true
	}
	if some {
		microproto.Raise(x, LossesDetected, reduce)
	}
}

// judgeBeyond marks the segments beyond the bitmap that are out of the network: whether they have arrived is
// known later.
func (r *Retransmit) judgeBeyond(x *microproto.Exec, wait time.Duration) {
	s := &r.selective
	if before(s.beyond, r.reported) {
		s.beyond = r.reported
	}
	for ; before(s.beyond, *r.sentNext); s.beyond++ {
		i := int(s.beyond - r.una)
		e := r.entries.At(i)
		if r.has(i) || e.state >= unknown {
			continue
		}
		if !before(e.order, s.newest) || x.Now() < microproto.Instant(r.sent.Get(e.m)).Add(wait) {
			return
		}
		r.setState(x, e, unknown)
	}
}

// keepClose keeps numbers that have passed close to the oldest one in flight: numbers wrap.
func (s *selective) keepClose(una uint32) {
	if before(s.end, una) {
		s.end = una
	}
	if before(s.counted, una) {
		s.counted = una
	}
}

// reduce records that the window is being reduced. Losses of segments sent until now do not reduce it again.
func (r *Retransmit) reduce() {
	s := &r.selective
	s.reduced, s.end = s.order+1, *r.sentNext
	if s.since++; s.since > persistence {
		s.needless, s.since = 0, 0
		s.late /= 2
	}
}

// sendLost sends lost segments again, the oldest first, as far as the window allows.
func (r *Retransmit) sendLost(x *microproto.Exec) {
	s := &r.selective
	if before(s.first, r.una) {
		s.first = r.una
	}
	room := int64(math.MaxInt64)
	if r.bounded() {
		room = int64(*r.limit) - int64(*r.sentTo)
	}
	most := math.MaxInt
	if !r.bounded() {
		most = s.most
	}
	for ; s.lost > 0 && most > 0 && before(s.first, *r.sentNext); s.first++ {
		i := int(s.first - r.una)
		e := r.entries.At(i)
		if !e.isLost() {
			continue
		}
		if room -= int64(e.bytes(x)); room < 0 && !s.must || !r.isolate(x, i) {
			return
		}
		s.must = false
		most--
		if e.state == detected {
			s.again++
			microproto.Raise(x, microproto.SegmentLost, e.m)
		}
		r.resend(x, e)
	}
}

// loseAll marks everything in flight as lost: the time-out has passed.
func (r *Retransmit) loseAll(x *microproto.Exec) {
	for i := range r.transmitted() {
		if e := r.entries.At(i); !r.has(i) {
			r.setState(x, e, timedOut)
		}
	}
	s := &r.selective
	s.first, s.beyond, s.due, s.must = r.una, r.una, 0, false
	s.again, s.arrived = 0, 0
	s.undone = s.reduction
	r.reduce()
}

// keepAll undoes loseAll: what was in flight at the time-out is in the network.
func (r *Retransmit) keepAll(x *microproto.Exec) {
	for i := range r.transmitted() {
		if e := r.entries.At(i); !r.has(i) && e.state == timedOut {
			r.setState(x, e, inNetwork)
		}
	}
	r.selective.reduction = r.selective.undone
	r.selective.keepClose(r.una)
}

// microseconds returns a time modulo 2³² microseconds, 71 minutes.
func microseconds(t microproto.Instant) uint32 { return uint32(time.Duration(t).Microseconds()) }
