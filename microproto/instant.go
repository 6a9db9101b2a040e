package microproto

import "time"

// Instant is a point in time: monotonic nanoseconds since an origin that the caller chose.
type Instant int64

// Never is later than every instant.
const Never = Instant(1<<63 - 1)

// Add returns the instant d after t, at most Never.
func (t Instant) Add(d time.Duration) Instant {
	u := t + Instant(d)
	if d > 0 && u < t {
		return Never
	}
	return u
}

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }
