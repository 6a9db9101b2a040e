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
type meter struct {
	least   time.Duration // of a window, waits included
	now     time.Duration
	began   time.Duration // the window
	asked   time.Duration // when the part in progress was asked for
	relaxed int           // points of it; 0: not yet
	sweep   stint         // in progress
	window  stint
	sweeps  int
	recent  [meterWindows]float64 // seconds a point
	known   int
	news    bool // a window has ended since news was last false
}

// stint is points relaxed and the time that they took.
type stint struct {
	points int
	took   time.Duration
}

const (
	meterWindows = 3
	meterSweeps  = 4 // of a window
)

// tick is called with every question of the shell's.
func (m *meter) tick(now time.Duration) {
	m.now = now
	if m.relaxed > 0 {
		m.sweep.points += m.relaxed
		m.sweep.took += now - m.asked
		m.relaxed = 0
	}
}

// begin begins a sweep.
func (m *meter) begin() { m.sweep = stint{} }

// end ends a sweep; one that did more than relax does not count.
func (m *meter) end(counts bool) {
	if !counts {
		return
	}
	m.window.points += m.sweep.points
	m.window.took += m.sweep.took
	if m.sweeps++; m.sweeps < meterSweeps || m.now-m.began < m.least {
		return
	}
	if m.window.took > 0 {
		m.recent[m.known%meterWindows] = m.window.took.Seconds() / float64(m.window.points)
		m.known++
		m.news = true
	}
	m.window, m.sweeps, m.began = stint{}, 0, m.now
}

// point is the seconds that a point takes, 0 until all windows have been filled.
func (m *meter) point() float64 {
	if m.known < meterWindows {
		return 0
	}
	s := m.recent
	slices.Sort(s[:])
	return s[meterWindows/2]
}
