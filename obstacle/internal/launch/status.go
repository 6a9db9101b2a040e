package launch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Status is the current state of a run. The launcher updates it; reads are safe from any goroutine.
type Status struct {
	mu       sync.Mutex
	phase    Phase
	progress Progress
	sweeps   map[int]uint64
	lost     map[int]bool
	sessions map[int][]rendezvous.Session
}

// Phase is a phase of a run.
type Phase int

// The phases of a run, in their order.
const (
	Joining Phase = iota // the peers join and receive their work
	Solving              // the peers relax
	Judging              // the answer is evaluated, written and printed
)

func (p Phase) String() string { return [...]string{"joining", "solving", "judging"}[p] }

// Phases returns all phases.
func Phases() []Phase { return []Phase{Joining, Solving, Judging} }

// Enter sets the phase. Like the setters, it does nothing on a nil Status.
func (s *Status) Enter(p Phase) { s.update(func() { s.phase = p }) }

func (s *Status) update(set func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeps == nil {
		s.sweeps, s.lost = map[int]uint64{}, map[int]bool{}
		s.sessions = map[int][]rendezvous.Session{}
	}
	set()
}

func (s *Status) setProgress(p Progress) { s.update(func() { s.progress = p }) }

func (s *Status) setSweeps(rank int, sweeps uint64) { s.update(func() { s.sweeps[rank] = sweeps }) }

func (s *Status) setSessions(rank int, all []rendezvous.Session) {
	s.update(func() { s.sessions[rank] = all })
}

// setLost notes a lost peer; it ignores rank −1, none in particular.
func (s *Status) setLost(rank int) {
	if rank >= 0 {
		s.update(func() { s.lost[rank] = true })
	}
}

// Phase returns the current phase.
func (s *Status) Phase() Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// Sweeps returns the last number of sweeps that each peer has reported for the time step in progress, by rank.
func (s *Status) Sweeps() map[int]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sweeps)
}

// Lost returns the number of lost peers: their process or connection ended early, or they timed out.
func (s *Status) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lost)
}

// Progress returns the progress of the run.
func (s *Status) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// Sessions returns the sessions that a peer has reported last, nil before the first report.
func (s *Status) Sessions(rank int) []rendezvous.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions[rank])
}

// StatusEvery is the interval at which a peer reports its sessions if Assign.Status is set.
const StatusEvery = 200 * time.Millisecond
