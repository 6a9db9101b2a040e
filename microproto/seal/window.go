package seal

// WindowFrames is how far behind the newest number a frame may still come.
const WindowFrames = (windowWords - 1) * wordBits

const (
	wordBits    = 64
	windowWords = 64 // a power of two
)

// window remembers which numbers have come: the sliding window of RFC 4303 §3.4.3,
// kept as a ring of words as in RFC 6479, so that moving it shifts nothing. Its zero
// value has seen none.
type window struct {
	next uint64 // one above the newest number that has come
	bits [windowWords]uint64
}

// fresh tells whether a number has not come and is not too old to tell.
func (w *window) fresh(n uint64) (fresh, old bool) {
	if n >= w.next {
		return true, false
	}
	if w.next-n > WindowFrames {
		return false, true
	}
	return w.bits[n/wordBits%windowWords]&(1<<(n%wordBits)) == 0, false
}

// accept marks a number that is fresh.
func (w *window) accept(n uint64) {
	if n >= w.next {
		// Words that the window moves over are free again.
		last := int64(-1)
		if w.next > 0 {
			last = int64((w.next - 1) / wordBits)
		}
		word := int64(n / wordBits)
		for i := max(last+1, word-windowWords+1); i <= word; i++ {
			w.bits[i%windowWords] = 0
		}
		w.next = n + 1
	}
	w.bits[n/wordBits%windowWords] |= 1 << (n % wordBits)
}
