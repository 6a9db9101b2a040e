package richardson

import (
	"slices"
	"time"
)

// speedSampler measures the time to relax a point: the time from the return of an OpRelax to the next call of
// Next, so that waits for neighbours do not count. The median of the last windows is robust against one
// window in which the machine was busy. A window has several sweeps and a minimum duration in which a thread that
// shares its processor runs several times.
type speedSampler struct {
	minWindow     time.Duration // smallest duration of a window, waits included
	now           time.Duration
	windowBegan   time.Duration
	requestedAt   time.Duration // when Next returned the part in progress
	pendingPoints int           // points of that part; 0 before it is relaxed
	sweep         relaxTime     // in progress
	window        relaxTime
	sweeps        int
	recent        [sampledWindows]float64 // seconds a point
	windows       int
	updated       bool // a window has ended since updated was last cleared
}

// relaxTime is a number of relaxed points and the time they took.
type relaxTime struct {
	points  int
	elapsed time.Duration
}

const (
	sampledWindows = 3
	windowSweeps   = 4 // of a window
)

// observe is called by every call of Next.
func (m *speedSampler) observe(now time.Duration) {
	m.now = now
	if m.pendingPoints > 0 {
		m.sweep.points += m.pendingPoints
		m.sweep.elapsed += now - m.requestedAt
		m.pendingPoints = 0
	}
}

// begin begins a sweep.
func (m *speedSampler) begin() { m.sweep = relaxTime{} }

// end ends a sweep. Sweeps that also measured are not counted.
func (m *speedSampler) end(counts bool) {
	if !counts {
		return
	}
	m.window.points += m.sweep.points
	m.window.elapsed += m.sweep.elapsed
	if m.sweeps++; m.sweeps < windowSweeps || m.now-m.windowBegan < m.minWindow {
		return
	}
	if m.window.elapsed > 0 {
		m.recent[m.windows%sampledWindows] = m.window.elapsed.Seconds() / float64(m.window.points)
		m.windows++
		m.updated = true
	}
	m.window, m.sweeps, m.windowBegan = relaxTime{}, 0, m.now
}

// point returns the seconds per point, 0 before all windows are complete.
func (m *speedSampler) point() float64 {
	if m.windows < sampledWindows {
		return 0
	}
	s := m.recent
	slices.Sort(s[:])
	return s[sampledWindows/2]
}
