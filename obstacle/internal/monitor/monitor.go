// Package monitor is the data model of what a program's runs have done: residuals, the times of the peers, the ages of
// the values that they read, sessions, losses. Real and simulated runs fill it with events; the live page, the report,
// the metrics and the time left of the progress bars are read from it.
//
// Its memory is bounded, however long a run lasts: samples are thinned by halving, and every list has a largest length.
// A reader that has a snapshot gets increments, and has the next snapshot when it applies them.
//
// The model is pure: the caller supplies the time. It is not safe for concurrent use; Shared is.
package monitor

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/progress"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Bounds of the model.
const (
	MaxRuns     = 64   // the oldest are forgotten
	MaxSamples  = 2048 // of a run
	MaxMarks    = 1024 // of a run; later ones are counted
	MaxSessions = 1024 // of a run; the others are counted
	MaxKeepers  = 9    // of a run
	MaxBins     = 256  // of ranks, for the ages of values
)

// Monitor holds the runs of a program.
type Monitor struct {
	runs    []*entry // by ID, which increases
	next    int
	version uint64 // grows with every change
}

// entry is a run and the versions of its sections.
type entry struct {
	Run
	estimator progress.Estimator
	skipped   int // observations since the newest sample

	state, places, peers, reads, sessions uint64
	marks                                 []uint64
}

// New returns a monitor without runs.
func New() *Monitor { return &Monitor{} }

// Begin adds a run and returns its ID.
func (m *Monitor) Begin(now time.Duration, i Info) int {
	if len(m.runs) == MaxRuns {
		m.runs = slices.Delete(m.runs, 0, 1)
	}
	e := &entry{estimator: progress.Estimator{Tolerance: i.Tolerance}}
	e.ID, e.Info, e.Stride = m.next, i, 1
	e.Info.Began = now.Seconds()
	e.State = State{Phase: Joining, Residual: nullable.NaN(), LeftLeast: nullable.NaN(), LeftMost: nullable.NaN()}
	e.state = m.change()
	m.runs = append(m.runs, e)
	m.next++
	return e.ID
}

// change returns the version of a change.
func (m *Monitor) change() uint64 {
	m.version++
	return m.version
}

// find returns a run, nil if it is forgotten.
func (m *Monitor) find(id int) *entry {
	for _, e := range m.runs {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// Add applies an event of a run. Events of forgotten runs are ignored.
func (m *Monitor) Add(id int, event Event) {
	if e := m.find(id); e != nil {
		event.apply(m, e)
	}
}

// Newest returns the run that began last, or false if there is none. The caller must not write to it, nor use it after
// the next event.
func (m *Monitor) Newest() (*Run, bool) {
	if len(m.runs) == 0 {
		return nil, false
	}
	return &m.runs[len(m.runs)-1].Run, true
}

// Snapshot returns a copy of all runs.
func (m *Monitor) Snapshot() Snapshot {
	var s Snapshot
	s.Apply(m.Next(&Cursor{}))
	return s
}
