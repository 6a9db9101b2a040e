package ctp

import "math/bits"

// arrivals is the set of the numbers that have arrived behind the first missing one. They are less than fifoWindow
// ahead of it.
type arrivals struct {
	words []uint64 // bits by number modulo fifoWindow; nil before the first
	end   uint32   // after the highest, if there is one
	count int

	copy uint8 // copyNumber of the segment that arrived last
}

// bitOf returns the word and the bit of a number.
func bitOf(number uint32) (word, bit uint32) { return number % fifoWindow / 64, number % 64 }

func (a *arrivals) has(number uint32) bool {
	w, bit := bitOf(number)
	return a.count > 0 && a.words[w]>>bit&1 != 0
}

// add adds a number that is not in the set.
func (a *arrivals) add(number uint32) {
	if a.words == nil { // most sessions never receive a segment out of order
		a.words = make([]uint64, fifoWindow/64)
	}
	if a.count == 0 || before(a.end, number+1) {
		a.end = number + 1
	}
	w, bit := bitOf(number)
	a.words[w] |= 1 << bit
	a.count++
}

// remove removes a number if it is in the set.
func (a *arrivals) remove(number uint32) {
	if a.has(number) {
		w, bit := bitOf(number)
		a.words[w] &^= 1 << bit
		a.count--
	}
}

// from returns the numbers from first on: bit i stands for first + i.
func (a *arrivals) from(first uint32) uint64 {
	if a.count == 0 {
		return 0
	}
	w, bit := bitOf(first)
	return a.words[w]>>bit | a.words[(w+1)%(fifoWindow/64)]<<(64-bit)
}

// behind returns how many numbers, from first to the highest, the set says something about.
func (a *arrivals) behind(first uint32) int {
	if a.count == 0 {
		return 0
	}
	return max(0, int(int32(a.end-first)))
}

// missing returns the first number from n on that is not in the set.
func (a *arrivals) missing(n uint32) uint32 {
	for range fifoWindow / 64 {
		w := ^a.from(n)
		if w != 0 {
			return n + uint32(bits.TrailingZeros64(w))
		}
		n += 64
	}
	return n
}
