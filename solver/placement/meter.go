package placement

import (
	"slices"
	"time"
)

// Meter measures the speed of a process from what it reports. Its zero value knows none.
type Meter struct {
	points uint64        // of the newest report that ended a window
	busy   time.Duration // the same
	speeds []float64     // of the newest windows
}

// Bounds of a Meter.
const (
	windows     = 3
	leastWindow = 100 * time.Millisecond
)

// Add adds a report: the number of points that the process has relaxed in the time busy, in all its parts since they
// were created. A report with less than the one before begins anew, as after the process has got or lost a part.
func (m *Meter) Add(points uint64, busy time.Duration) {
	if points < m.points || busy < m.busy {
		m.points, m.busy = points, busy
		return
	}
	took := busy - m.busy
	if took < leastWindow || points == m.points {
		return
	}
	m.speeds = append(m.speeds, float64(points-m.points)/took.Seconds())
	if len(m.speeds) > windows {
		m.speeds = m.speeds[1:]
	}
	m.points, m.busy = points, busy
}

// Speed returns the median of the newest three windows, in points a second, and 0 before there are that many.
func (m *Meter) Speed() float64 {
	if len(m.speeds) < windows {
		return 0
	}
	s := slices.Sorted(slices.Values(m.speeds))
	return s[windows/2]
}
