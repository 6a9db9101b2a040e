package ether

import "time"

// The kernel's send queue holds about a millisecond of what the device takes: what waits there can be neither
// replaced by a newer value nor overtaken. It holds at least two trains, so that the device is not idle while the
// next train is made. The kernel doubles the size that it is asked for, as an allowance for its overhead.
const (
	minSendBytes  = 56 << 10 // room for two trains of 61 KB, but not for a third
	sendQueueTime = time.Millisecond / 2
	// rateTime is the least time over which a rate is measured, rateLimit the longest: a link that is full so
	// seldom was idle in between.
	rateTime  = 2 * time.Millisecond
	rateLimit = 100 * time.Millisecond
	// shrinkAfter is the number of successive rates that justify a smaller queue.
	shrinkAfter = 16
)

// sendQueue chooses the size of the kernel's send queue. It measures the rate of the device: the bytes sent between
// two times at which the queue is full are those that the device took meanwhile.
type sendQueue struct {
	bytes, least, most int // size, and its bounds
	measuring          bool
	at                 time.Duration // begin of the measurement
	sent               uint64        // bytes sent before it
	low                int           // successive rates that need less than half of the queue
}

// full records that the queue is full after sent bytes in all. It reports whether bytes has changed.
func (q *sendQueue) full(now time.Duration, sent uint64) bool {
	took := now - q.at
	if q.measuring && took < rateTime {
		return false
	}
	known := q.measuring && took <= rateLimit
	more := sent - q.sent
	q.at, q.sent = now, sent
	q.measuring = true
	if !known {
		return false
	}
	want := max(q.least, min(q.most, int(float64(more)/float64(took)*float64(sendQueueTime))))
	switch {
	case want > q.bytes+q.bytes/4:
		q.low = 0
	case want < q.bytes/2:
		if q.low++; q.low < shrinkAfter {
			return false
		}
		q.low = 0
	default:
		q.low = 0
		return false
	}
	q.bytes = want
	return true
}
