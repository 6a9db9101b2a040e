package launch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Status is what a run is doing now. The launcher writes it, anybody may read it.
type Status struct {
	mu       sync.Mutex
	phase    Phase
	progress Progress
	sweeps   map[int]uint64
	lost     map[int]bool
	sessions map[int][]rendezvous.Session
}

// Phase is what a run is at.
type Phase int

// The phases of a run, in their order.
const (
	Joining Phase = iota // the peers join and are made ready
	Solving              // they relax
	Judging              // the answer is evaluated, written and printed
)

func (p Phase) String() string { return [...]string{"joining", "solving", "judging"}[p] }

// Phases lists all phases.
func Phases() []Phase { return []Phase{Joining, Solving, Judging} }

// Enter sets the phase. It does nothing on a nil Status.
func (s *Status) Enter(p Phase) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

// Phase returns what the run is at.
func (s *Status) Phase() Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// Sweeps returns the sweeps that each peer has reported last, of the time step in progress.
// Ranks that have reported none are missing.
func (s *Status) Sweeps() map[int]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sweeps)
}

// Lost returns how many peers the launcher has lost: their process or connection ended too
// early, or they were silent.
func (s *Status) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lost)
}

func (s *Status) setSweeps(rank int, sweeps uint64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeps == nil {
		s.sweeps = map[int]uint64{}
	}
	s.sweeps[rank] = sweeps
}

// setLost notes that a peer was lost; rank -1 stands for none in particular.
func (s *Status) setLost(rank int) {
	if s == nil || rank < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = map[int]bool{}
	}
	s.lost[rank] = true
}

// Progress is how far the run is.
func (s *Status) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// Sessions are those that a peer has told of last; nil: none yet.
func (s *Status) Sessions(rank int) []rendezvous.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions[rank])
}

// setProgress does nothing when nobody wants a status.
func (s *Status) setProgress(p Progress) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = p
}

func (s *Status) setSessions(rank int, all []rendezvous.Session) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[int][]rendezvous.Session{}
	}
	s.sessions[rank] = all
}

// StatusEvery is how often a peer tells of its sessions, when somebody wants to know.
const StatusEvery = 200 * time.Millisecond
