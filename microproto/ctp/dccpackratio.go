package ctp

// ackRatio is R of RFC 4340 §11.3: the other end sends an acknowledgement for every R packets of
// this end. It changes by RFC 4341 §6.1.2: it doubles in a window of data in which
// acknowledgements were lost, and decreases by one after cwnd/(R²−R) windows without a loss. It
// is at most half the window, rounded up, and at least 2 for windows of four packets or more.
// The RFC allows 2 for all windows; with a window of one packet the sender would then wait for a
// delayed acknowledgement.
type ackRatio struct {
	value int
	clean int // windows without a loss since value changed
	lossy bool
	mark  uint32 // number after the present window of data
}

const (
	defaultRatio = 2
	// maxRatio lets four acknowledgements, of 64 numbers each, cover each packet.
	maxRatio = 16
)

// clamp keeps the ratio within its bounds when the window has changed.
func (r *ackRatio) clamp(window int) {
	least := 1
	if window >= 4 {
		least = 2
	}
	r.value = min(max(r.value, least), max((window+1)/2, 1), maxRatio)
}

// progress updates the ratio. All packets before first have arrived or are lost; next is the
// number of the next packet.
func (r *ackRatio) progress(first, next uint32, window int, lossy bool) {
	r.lossy = r.lossy || lossy
	if before(first, r.mark) {
		return
	}
	r.mark = next
	switch {
	case r.lossy:
		r.value, r.clean = 2*r.value, 0
	case r.value > 1:
		if r.clean++; r.clean*(r.value*r.value-r.value) >= window {
			r.value--
			r.clean = 0
		}
	}
	r.lossy = false
	r.clamp(window)
}
