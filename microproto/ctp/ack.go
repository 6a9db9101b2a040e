package ctp

import (
	"encoding/binary"
	"math/bits"
)

// Ack is an acknowledgement.
type Ack struct {
	Next   uint32 // every number before it has arrived
	Seen   uint64 // bit i: number Next+1+i has arrived
	First  uint32 // of Beyond
	Beyond []byte // bit i of byte k: number First+8·k+i has arrived; valid during the event
	More   bool   // more has arrived than Seen and Beyond report
	Credit uint64 // bytes granted in all (compare MAX_DATA, RFC 9000 §4.1)
	Alone  bool   // it did not travel with a segment of a message

	// Copy is 0 if the segment that arrived last was sent for the first time, and 1, 2, 3, 1, … if it was sent again.
	Copy uint8
}

// reported returns the number up to which the acknowledgement says what has arrived.
func (a *Ack) reported() uint32 {
	if !a.More {
		return a.Next + fifoWindow
	}
	end := a.Next + 1 + seenNumbers
	if next := a.First + 8*uint32(len(a.Beyond)); a.First == end {
		end = next
	}
	return end
}

// word returns up to eight bytes of Beyond, from byte i on.
func (a *Ack) word(i int) (w uint64) {
	if len(a.Beyond)-i >= 8 {
		return binary.LittleEndian.Uint64(a.Beyond[i:])
	}
	for k, b := range a.Beyond[i:] {
		w |= uint64(b) << (8 * k)
	}
	return w
}

// single reports whether one segment has arrived besides those that are known to have arrived, from una on.
func (a *Ack) single(known *arrivals, una uint32) bool {
	if a.More {
		return false
	}
	count := 0
	for n := known.missing(una); before(n, a.Next) && count < 2; n = known.missing(n + 1) {
		count++
	}
	count += bits.OnesCount64(a.Seen &^ known.from(a.Next+1))
	for i := 0; i < len(a.Beyond) && count < 2; i += 8 {
		count += bits.OnesCount64(a.word(i) &^ known.from(a.First+8*uint32(i)))
	}
	return count == 1
}

// has reports whether a number behind Next has arrived.
func (a *Ack) has(number uint32) bool {
	if i := number - a.Next - 1; i < seenNumbers {
		return a.Seen>>i&1 != 0
	}
	i := number - a.First
	return i < 8*uint32(len(a.Beyond)) && a.Beyond[i/8]>>(i%8)&1 != 0
}

// highest returns the highest number behind Next that has arrived.
func (a *Ack) highest() (number uint32, ok bool) {
	for i := len(a.Beyond) - 1; i >= 0; i-- {
		if b := a.Beyond[i]; b != 0 {
			return a.First + uint32(8*i+bits.Len8(b)-1), true
		}
	}
	return a.Next + uint32(bits.Len64(a.Seen)), a.Seen != 0
}
