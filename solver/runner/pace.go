package runner

import "time"

// pace keeps what the loop does beside relaxing small, and knows how long a sweep
// takes.
type pace struct {
	pollAt   time.Duration
	reportAt time.Duration
	longest  time.Duration // sweep so far
	began    time.Duration // the sweep in progress
	done     int           // points of it
}

// pollShare bounds polling between parts to one part in this many of the time. A poll
// that took longer than longPoll has not worked so long: it stood behind others for a
// processor, and to poll as much more seldom would only let news grow old.
const (
	pollShare = 8
	longPoll  = 50 * time.Microsecond
)

// polled notes that a poll took from begin to end.
func (p *pace) polled(begin, end time.Duration) {
	p.pollAt = end + pollShare*min(end-begin, longPoll)
}

// relaxed counts points; points of the whole box make a sweep. It tells whether one is
// complete.
func (p *pace) relaxed(now time.Duration, points, box int) bool {
	if p.done += points; p.done < box {
		return false
	}
	p.longest = max(p.longest, now-p.began)
	p.done, p.began = 0, now
	return true
}
