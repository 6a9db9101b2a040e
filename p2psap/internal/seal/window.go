package seal

// WindowFrames is how far below the newest number the number of a frame may be.
const WindowFrames = (windowWords - 1) * wordBits

const (
	wordBits    = 64
	windowWords = 64 // a power of two
)

// window records the numbers that have arrived: the sliding window of RFC 4303 §3.4.3, as a ring
// of words (RFC 6479), so that moving it shifts nothing. The zero value has recorded none.
type window struct {
	next uint64 // the newest number plus one
	bits [windowWords]uint64
}

// fresh reports whether a number is new, and whether it is below the window.
func (w *window) fresh(n uint64) (fresh, old bool) {
	if n >= w.next {
		return true, false
	}
	if w.next-n > WindowFrames {
		return false, true
	}
	return w.bits[n/wordBits%windowWords]&(1<<(n%wordBits)) == 0, false
}

func (w *window) accept(n uint64) {
	if n >= w.next {
		// Clear the words that the window has moved to.
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
