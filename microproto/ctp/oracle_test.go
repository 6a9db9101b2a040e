package ctp

import (
	"math"
	"math/bits"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// An oracle is a sender of one message by RFC 6298 (time-outs), RFC 5681 with RFC 3465 (windows),
// RFC 3042 (limited transmit) and RFC 6582 (fast recovery, Impatient). It was written from the
// RFCs, independently of the code under test. It is given the acknowledgements and returns the
// transmissions. Segments are numbered from 0 and have one size, unit; windows are in bytes.
type oracle struct {
	unit, total int
	out         []transmission
	timeouts    int

	// RFC 6298.
	granularity, floor, most time.Duration
	srtt, rttvar, rto        time.Duration
	timer                    microproto.Instant // 0: off

	una, nxt  int // the first segment that is not acknowledged, and the first that was never sent
	sent      []microproto.Instant
	copies    []int
	selective []bool // acknowledged in a bitmap

	cwnd, ssthresh, counted int
	cautious                bool // L is 1: slow start after a time-out
	duplicates              int
	told                    uint64 // union of the bitmaps of acknowledgements of una
	credit                  uint64
	limited                 int  // nxt before limited transmit
	recovering              bool // fast recovery
	partial                 bool // has had a partial acknowledgement
	lossy                   bool // recover means something
	recover                 int
	inflation               int
	lastTimeout             int // una at the last one; -1: none

	again, until int    // what was in flight at a time-out and is still to be sent again
	resent       []bool // since that time-out
}

type transmission struct {
	At      microproto.Instant
	Segment int
}

func newOracle(unit, total, initial int, first, floor, granularity, most time.Duration) *oracle {
	return &oracle{
		unit: unit, total: total, cwnd: initial * unit, ssthresh: math.MaxInt, rto: first,
		floor: floor, granularity: granularity, most: most, lastTimeout: -1,
		sent: make([]microproto.Instant, total), copies: make([]int, total),
		selective: make([]bool, total+65), resent: make([]bool, total),
	}
}

func (o *oracle) transmit(now microproto.Instant, n int) {
	o.out = append(o.out, transmission{now, n})
	o.sent[n], o.resent[n] = now, true
	o.copies[n]++
	if o.timer == 0 { // RFC 6298 §5.1
		o.timer = now.Add(o.rto)
	}
}

func (o *oracle) window() int { return max(o.cwnd+o.inflation, o.unit) }

// fill sends as the window allows: first the segments left by a time-out, then new ones.
func (o *oracle) fill(now microproto.Instant) {
	fits := func(n int) bool { return (n+1-o.una)*o.unit <= o.window() }
	for o.again = max(o.again, o.una); o.again < o.until; o.again++ {
		if o.selective[o.again] || o.resent[o.again] {
			continue
		}
		if !fits(o.again) {
			break
		}
		o.transmit(now, o.again)
	}
	for ; o.nxt < o.total && fits(o.nxt); o.nxt++ {
		o.transmit(now, o.nxt)
	}
}

// measure adds a round trip (RFC 6298 §2.2, §2.3).
func (o *oracle) measure(r time.Duration) {
	if o.srtt == 0 {
		o.srtt, o.rttvar = r, r/2
	} else {
		o.rttvar = (3*o.rttvar + (o.srtt - r).Abs()) / 4
		o.srtt = (7*o.srtt + r) / 8
	}
	o.rto = min(max(o.srtt+max(o.granularity, 4*o.rttvar), o.floor), o.most)
}

// pass lets time pass: all time-outs before now happen (RFC 6298 §5.4 to §5.6, RFC 5681 §3.1, RFC
// 6582 §3.2 step 4).
func (o *oracle) pass(now microproto.Instant) {
	for o.timer != 0 && o.timer < now {
		at := o.timer
		o.timeouts++
		flight := (o.nxt - o.una) * o.unit
		if !o.recovering && o.lossy && o.una < o.recover {
			flight = min(flight, o.window()) // the rest was sent before the last time-out
		}
		if !o.recovering && o.lastTimeout != o.una {
			o.ssthresh = max(flight/2, 2*o.unit)
		}
		o.lastTimeout, o.recover = o.una, o.nxt
		o.cwnd = o.unit
		o.counted, o.inflation = 0, 0
		o.cautious, o.lossy = true, true
		o.recovering = false
		o.rto = min(2*o.rto, o.most)
		o.timer = at.Add(o.rto)
		clear(o.resent)
		o.again, o.until = o.una, o.nxt
		o.transmit(at, o.una)
	}
}

// ack processes an acknowledgement of all segments before next, and of next+1+i where bit i of
// seen is set.
func (o *oracle) ack(now microproto.Instant, next int, seen, credit uint64, alone bool) {
	o.pass(now)
	if next < o.una {
		return
	}
	o.sample(now, next, seen)
	for b := seen; b != 0; b &= b - 1 {
		o.selective[min(next+1+bits.TrailingZeros64(b), len(o.selective)-1)] = true
	}
	if next == o.una {
		o.duplicate(now, seen, credit == o.credit && alone)
	} else {
		o.progress(now, next, seen)
	}
	o.credit = credit
	o.fill(now)
}

// sample measures the round trip of the newest segment that an acknowledgement is the first to
// acknowledge, if it was sent once (Karn's rule) and could be acknowledged when it arrived: an earlier bitmap
// had room for it, or no segment before it was sent again.
func (o *oracle) sample(now microproto.Instant, next int, seen uint64) {
	newest := next - 1
	if high := next + bits.Len64(seen); seen != 0 && high < o.nxt && !o.selective[high] && high <= o.una+64 {
		newest = high
	}
	late := newest < next && o.copies[min(o.una, o.total-1)] > 1
	if newest >= o.una && !o.selective[newest] && o.copies[newest] == 1 && !late {
		o.measure(now.Sub(o.sent[newest]))
	}
}

// duplicate processes an acknowledgement of nothing new in order. It counts while something is in
// flight, if it came without data and changes nothing (RFC 5681 §2) or reports another segment
// (RFC 6675 §2). It never restarts the timer.
func (o *oracle) duplicate(now microproto.Instant, seen uint64, same bool) {
	news := seen&^o.told != 0
	o.told |= seen
	if o.nxt == o.una || !news && !same {
		return
	}
	o.duplicates++
	switch {
	case o.recovering:
		o.inflation += o.unit
	case o.lossy && o.una <= o.recover:
	case o.duplicates < 3:
		if o.duplicates == 1 {
			o.limited = o.nxt
		}
		o.inflation = o.duplicates * o.unit
	default:
		o.ssthresh = max((o.limited-o.una)*o.unit/2, 2*o.unit)
		o.cwnd, o.counted = o.ssthresh, 0
		o.cautious, o.partial = false, false
		o.recovering, o.lossy = true, true
		o.recover = o.nxt
		o.inflation = 3 * o.unit
		o.transmit(now, o.una)
	}
}

// progress processes an acknowledgement of new segments in order.
func (o *oracle) progress(now microproto.Instant, next int, seen uint64) {
	acked, flight := (next-o.una)*o.unit, (o.nxt-o.una)*o.unit
	o.una, o.duplicates = next, 0
	o.told = seen
	restart := true // RFC 6298 §5.3
	switch {
	case !o.recovering:
		o.inflation = 0
		o.open(acked, flight)
	case o.una >= o.recover:
		o.recovering, o.inflation = false, 0
		o.cwnd = min(o.ssthresh, max((o.nxt-o.una)*o.unit, o.unit)+o.unit)
	default:
		restart, o.partial = !o.partial, true
		o.inflation += o.unit - acked
		defer o.transmit(now, o.una)
	}
	switch {
	case o.una == o.nxt:
		o.timer = 0
	case restart:
		o.timer = now.Add(o.rto)
	}
}

// open increases the window (RFC 5681 §3.1 with RFC 3465) if it was full: used up to a segment, or
// by half in slow start.
func (o *oracle) open(acked, flight int) {
	slow := o.cwnd < o.ssthresh
	if flight+o.unit <= o.cwnd && (!slow || 2*flight <= o.cwnd) {
		return
	}
	if slow {
		most := 2 * o.unit
		if o.cautious {
			most = o.unit
		}
		gain := min(acked, most)
		for gain-o.unit >= o.ssthresh-o.cwnd { // no more segments than end it
			gain -= o.unit
		}
		o.cwnd += gain
		if acked -= gain; o.cwnd < o.ssthresh {
			return
		}
	}
	o.cautious = false
	if o.counted += acked; o.counted >= o.cwnd {
		o.counted -= o.cwnd
		o.cwnd += o.unit
		o.counted = min(o.counted, o.cwnd)
	}
}
