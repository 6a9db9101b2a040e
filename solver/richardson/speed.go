package richardson

import (
	"slices"
	"time"
)

// meter measures how long this peer takes to relax a point: the time between asking
// the shell to relax and its next question, so waits for neighbours do not count. The
// median of the last windows is not misled by one in which the machine did something
// else. A window is some sweeps, and so long that a thread which shares its processor
// with others has had it several times.
type speedSampler struct {
	minWindow     time.Duration // of a window, waits included
	now           time.Duration
	windowBegan   time.Duration // the window
	requestedAt   time.Duration // when the part in progress was asked for
	pendingPoints int           // points of it; 0: not yet
	sweep         relaxTime     // in progress
	window        relaxTime
	sweeps        int
	recent        [sampledWindows]float64 // seconds a point
	windows       int
	updated       bool // a window has ended since news was last false
}

// stint is points relaxed and the time that they took.
type relaxTime struct {
	points  int
	elapsed time.Duration
}

const (
	sampledWindows = 3
	windowSweeps   = 4 // of a window
)

// tick is called with every question of the shell's.
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

// end ends a sweep; one that did more than relax does not count.
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

// point is the seconds that a point takes, 0 until all windows have been filled.
func (m *speedSampler) point() float64 {
	if m.windows < sampledWindows {
		return 0
	}
	s := m.recent
	slices.Sort(s[:])
	return s[sampledWindows/2]
}
