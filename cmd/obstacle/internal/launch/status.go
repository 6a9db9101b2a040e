package launch

import (
	"slices"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/rendezvous"
)

// Status is what a run is doing now. The launcher writes it, anybody may read it.
type Status struct {
	mu       sync.Mutex
	progress Progress
	sessions map[int][]rendezvous.Session
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
