package path

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// MaxRTT bounds a sample; longer round trips count as that.
const MaxRTT = time.Hour

// Numbers of round trips that a Measurement takes. A process may be scheduled late on a busy
// host, so the smallest sample counts, and a path that looks far is sampled more often than
// one that looks near. Where round trips are long, fewer samples are enough.
const (
	minSamples     = 4
	maxSamples     = 16
	sampleTime     = 250 * time.Millisecond // after it, minSamples are enough
	longSampleTime = time.Second            // after it, two samples are enough; after twice as long, one
)

// Measurement measures the round trip of a control channel with pings, one at a time. Each end
// has its own. Where the round trip decides on the locality, the ends exchange their smallest
// samples and both take the smaller one, so that they agree.
type Measurement struct {
	number   uint64             // of the last ping
	sent     microproto.Instant // of that ping; 0: it was answered
	began    microproto.Instant
	samples  int
	min      time.Duration // 0: no sample yet
	estimate time.Duration // before there is a sample; 0: none
}

// Ping starts a round trip at now and returns its number.
func (m *Measurement) Ping(now microproto.Instant) uint64 {
	if m.number == 0 {
		m.began = now
	}
	m.number++
	m.sent = now
	return m.number
}

// Pong ends the round trip of that number. It reports false for one that is not under way.
func (m *Measurement) Pong(now microproto.Instant, number uint64) bool {
	if m.sent == 0 || number != m.number {
		return false
	}
	rtt := min(max(now.Sub(m.sent), 1), MaxRTT)
	m.sent = 0
	m.samples++
	if m.min == 0 || rtt < m.min {
		m.min = rtt
	}
	return true
}

// Pending returns the number of the ping under way; false: there is none.
func (m *Measurement) Pending() (uint64, bool) { return m.number, m.sent != 0 }

// Min returns the smallest sample; 0: none yet.
func (m *Measurement) Min() time.Duration { return m.min }

// Done reports whether enough samples were taken.
func (m *Measurement) Done(now microproto.Instant) bool {
	took := now.Sub(m.began)
	return m.samples >= minSamples && (m.min <= NearRTT || m.samples >= maxSamples || took >= sampleTime) ||
		m.samples > 1 && took >= longSampleTime || m.samples > 0 && took >= 2*longSampleTime
}

// Estimate notes how long another exchange took, for InitialTimeout before the first sample.
func (m *Measurement) Estimate(rtt time.Duration) { m.estimate = max(m.estimate, rtt) }

// EstimatePending notes how long the ping under way has taken so far.
func (m *Measurement) EstimatePending(now microproto.Instant) {
	if m.sent != 0 {
		m.Estimate(now.Sub(m.sent))
	}
}

// InitialTimeout returns the retransmission time-out before the first measurement of a session
// between clusters, at most limit; 0: the default of a second. As RFC 6298 §2.2 does with the
// round trip of TCP's SYN, it is three times the round trip of the control channel. A first
// flight that timed out before its acknowledgement could arrive would leave the slow-start
// threshold at two segments (RFC 5681 §3.1).
func (m *Measurement) InitialTimeout(limit time.Duration) time.Duration {
	rtt := m.min
	if rtt == 0 {
		rtt = m.estimate
	}
	if 3*rtt <= time.Second {
		return 0
	}
	return min(3*rtt, limit)
}

// Metrics are what open sessions measured on the way to a peer. Loss and rate are
// exponentially weighted averages; a new sample counts a quarter.
type Metrics struct {
	RTT  time.Duration // from segments and their acknowledgements, smallest of the last second; 0: none
	Loss float64       // share of segments that were retransmitted
	Rate float64       // bytes of messages per second, both ways
}

// rttWindow is how long a round trip counts. A session's own segments may wait in queues, and
// within a second a queue is empty once. A longer window would be late to notice a longer path
// (compare RFC 8985, min_RTT).
const rttWindow = time.Second

// MinRTT is the smallest round trip of the last second: a windowed minimum of two halves.
type MinRTT struct {
	began             microproto.Instant // of the current half
	current, previous time.Duration      // 0: no sample
}

// Add takes a sample and returns the minimum.
func (l *MinRTT) Add(now microproto.Instant, rtt time.Duration) time.Duration {
	age := now.Sub(l.began)
	if age >= rttWindow/2 {
		l.previous = l.current
		if age >= rttWindow {
			l.previous = 0
		}
		l.began, l.current = now, 0
	}
	if l.current == 0 || rtt < l.current {
		l.current = rtt
	}
	if l.previous != 0 {
		return min(l.current, l.previous)
	}
	return l.current
}
