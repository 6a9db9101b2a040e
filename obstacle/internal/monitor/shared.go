package monitor

import (
	"sync"
	"time"
)

// Shared is a Monitor that several goroutines use.
type Shared struct {
	mu    sync.Mutex
	all   *Monitor
	start time.Time
}

// NewShared returns a monitor without runs, whose time begins now.
func NewShared() *Shared { return &Shared{all: New(), start: time.Now()} }

// Begin adds a run and returns its ID.
func (s *Shared) Begin(i Info) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Begin(time.Since(s.start), i)
}

// Add applies events of a run.
func (s *Shared) Add(id int, events ...Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.all.Add(id, e)
	}
}

// Next returns the changes since the last call with the same cursor.
func (s *Shared) Next(c *Cursor) Increment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Next(c)
}

// Snapshot returns a copy of all runs.
func (s *Shared) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Snapshot()
}

// Newest calls f with the run that began last, if there is one. f must not keep it.
func (s *Shared) Newest(f func(*Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, any := s.all.Newest(); any {
		f(r)
	}
}
