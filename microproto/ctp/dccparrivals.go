package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// packetArrivals records which packets of the other end have arrived: the highest number and the
// 64 before it. Older ones can no longer be acknowledged.
type packetArrivals struct {
	Received
	any  bool // a packet has arrived
	when microproto.Instant
}

// maxJump bounds how far a number may be ahead of the highest. It limits the effect of a stray
// number (compare the sequence window of RFC 4340 §7.5), and exceeds the packets that can be
// lost in a row before the heartbeat declares the peer lost.
const maxJump = 1 << 20

type arrivalKind uint8

const (
	arrivalNewest    arrivalKind = iota // higher than all before
	arrivalLate                         // fills a gap, or is too old to be acknowledged
	arrivalDuplicate                    // has arrived before
	arrivalInvalid                      // beyond maxJump
)

func (a *packetArrivals) take(number uint32, now microproto.Instant) arrivalKind {
	d := int32(number - a.Highest)
	switch {
	case !a.any:
		a.any = true
		a.Highest, a.when = number, now
		return arrivalNewest
	case d > maxJump || d < -maxJump:
		return arrivalInvalid
	case d > 0:
		a.Seen = a.Seen<<d | 1<<(d-1)
		a.Highest, a.when = number, now
		return arrivalNewest
	case a.has(number):
		return arrivalDuplicate
	}
	if d >= -64 {
		a.Seen |= 1 << (-d - 1)
	}
	return arrivalLate
}

// elapsed returns the time since the highest arrived, in microseconds (Elapsed Time of RFC 4340
// §13.2): the delay of the acknowledgement is no part of the round trip.
func (a *packetArrivals) elapsed(now microproto.Instant) uint32 {
	return uint32(min(max(now.Sub(a.when)/time.Microsecond, 0), math.MaxUint32))
}

// ackArrivals counts the lost acknowledgements of the other end: one is lost if it has not arrived
// when the third number after it has (NUMDUPACK).
type ackArrivals struct {
	packetArrivals
	judge uint32 // the next number to decide
	lost  uint64
}

// take records an acknowledgement that has a number of its own. It reports whether others are now
// known to be lost.
func (a *ackArrivals) take(number uint32, now microproto.Instant) bool {
	first, before := !a.any, a.lost
	if a.packetArrivals.take(number, now) != arrivalNewest {
		return false
	}
	if first {
		a.judge = number
	}
	if behind := a.Highest - a.judge; behind > 64 {
		a.lost += uint64(behind - 64)
		a.judge = a.Highest - 64
	}
	for ; a.Highest-a.judge >= 3; a.judge++ {
		if !a.has(a.judge) {
			a.lost++
		}
	}
	return a.lost > before
}
