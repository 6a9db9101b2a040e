package ctp

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// packetArrivals knows which of the other end's packets have come: the highest
// number and the 64 before it. Older ones can no longer be told of.
type packetArrivals struct {
	Received
	any  bool // one has come
	when microproto.Instant
}

// maxJump is how far ahead of the highest a number may be. It bounds what a stray
// number can do (compare the sequence window of RFC 4340 §7.5), and leaves room for
// all that a sender can have sent in vain before the heartbeat gives it up.
const maxJump = 1 << 20

type arrivalKind uint8

const (
	arrivalNewest arrivalKind = iota // higher than all before
	arrivalLate                      // fills a gap, or is too old to be told of
	arrivalAgain                     // has come before
	arrivalAbsurd                    // no sender can be there
)

// take notes a packet that has come.
func (a *packetArrivals) take(number uint32, now microproto.Instant) arrivalKind {
	d := int32(number - a.Highest)
	switch {
	case !a.any:
		a.any, a.Highest, a.when = true, number, now
		return arrivalNewest
	case d > maxJump || d < -maxJump:
		return arrivalAbsurd
	case d > 0:
		a.Seen = a.Seen<<d | 1<<(d-1)
		a.Highest, a.when = number, now
		return arrivalNewest
	case a.has(number):
		return arrivalAgain
	}
	if d >= -64 {
		a.Seen |= 1 << (-d - 1)
	}
	return arrivalLate
}

// elapsed is how long ago the highest came, in microseconds (Elapsed Time of RFC
// 4340 §13.2), so that its round trip can be told from the wait for company.
func (a *packetArrivals) elapsed(now microproto.Instant) uint32 {
	return uint32(min(max(now.Sub(a.when)/time.Microsecond, 0), math.MaxUint32))
}

// ackArrivals counts what was lost of the other end's acknowledgements: one is lost
// when the third number after it has come and it has not (NUMDUPACK again).
type ackArrivals struct {
	packetArrivals
	judge uint32 // the next number to judge
	lost  uint64
}

// take notes an acknowledgement with a number of its own and tells whether by it
// some are known to be lost.
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
