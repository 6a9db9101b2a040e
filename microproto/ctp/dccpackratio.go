package ctp

// ackRatio is R of RFC 4340 §11.3: the other end sends one acknowledgement for R
// packets of ours. The sender chooses it as RFC 4341 §6.1.2 says: it doubles in a
// window of data in which acknowledgements were lost and falls by one after
// cwnd/(R²−R) windows without; it is at most half the window, rounded up, and at
// least 2 where the window has four packets. The RFC always allows 2: with a window
// of one packet the sender would wait for an acknowledgement that waits for company.
type ackRatio struct {
	value int
	most  int // bound of ours: each packet must be told of more than once
	clean int // windows without a loss since value changed
	lossy bool
	mark  uint32 // number behind the present window of data
}

const (
	defaultRatio = 2
	// maxRatio lets the 64 numbers of an acknowledgement tell of each packet in four.
	maxRatio = 16
)

// clamp keeps the ratio within its bounds when the window has changed.
func (r *ackRatio) clamp(window int) {
	least := 1
	if window >= 4 {
		least = 2
	}
	r.value = min(max(r.value, least), max((window+1)/2, 1), r.most)
}

// progress is called when the fate of all packets before first is known; next is the
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
