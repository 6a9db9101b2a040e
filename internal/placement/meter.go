package placement

import (
	"slices"
	"time"
)

// Meter measures the speed of a process from what it reports. Its zero value knows none.
type Meter struct {
	began  time.Duration // the window in progress
	points uint64        // of the report that began it
	busy   time.Duration // the same
	speeds []float64     // of the newest windows
}

// Bounds of a Meter. A window lasts until leastWindow has been spent relaxing. A process that waits for others most of
// the time takes long to get there. For it leastBusy is enough, longWindow after the beginning. Interruptions may then make
// it look several times slower, but they have lasted less than longWindow too: it never seems to take longer for a sweep
// than the sweeps of the window took with waiting.
const (
	windows     = 3
	leastWindow = 100 * time.Millisecond
	longWindow  = 500 * time.Millisecond
	leastBusy   = time.Millisecond
)

// Add adds a report at the time now since the start of the run: the number of points that the process has relaxed in the
// time busy, in all its parts since they were created. A report of nothing, or of less than the one before, begins anew, as
// after the process has got or lost a part.
func (m *Meter) Add(now time.Duration, points uint64, busy time.Duration) {
	took := busy - m.busy
	switch {
	case points == 0, points < m.points, took < 0:
	case points == m.points, took < leastBusy, took < leastWindow && now-m.began < longWindow:
		return
	default:
		m.speeds = append(m.speeds, float64(points-m.points)/took.Seconds())
		if len(m.speeds) > windows {
			m.speeds = m.speeds[1:]
		}
	}
	m.began, m.points, m.busy = now, points, busy
}

// Speed returns the median of the newest three windows, in points a second, and 0 before there are that many.
func (m *Meter) Speed() float64 {
	if len(m.speeds) < windows {
		return 0
	}
	s := slices.Sorted(slices.Values(m.speeds))
	return s[windows/2]
}
