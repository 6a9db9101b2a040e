package runner

import "time"

// pace bounds the time that the loop spends beside relaxing, and measures sweeps.
type pace struct {
	pollAt   time.Duration
	reportAt time.Duration
	longest  time.Duration // longest sweep so far
	began    time.Duration // when the sweep in progress began
	done     int           // points relaxed of it
}

// Polling between parts takes at most one part in pollShare of the time. A poll that took longer than longPoll was
// waiting for a processor, and polling less often in proportion would only delay messages.
const (
	pollShare = 8
	longPoll  = 50 * time.Microsecond
)

// polled records that a poll took from begin to end.
func (p *pace) polled(begin, end time.Duration) {
	p.pollAt = end + pollShare*min(end-begin, longPoll)
}

// relaxed counts points, and reports whether a sweep is complete.
func (p *pace) relaxed(now time.Duration, points, box int) bool {
	if p.done += points; p.done < box {
		return false
	}
	p.longest = max(p.longest, now-p.began)
	p.done, p.began = 0, now
	return true
}
