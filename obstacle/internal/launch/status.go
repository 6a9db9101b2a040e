package launch

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Status holds the current state of a run. The launcher updates it; State is safe from any goroutine.
type Status struct {
	mu    sync.Mutex
	state State
}

// Enter sets the phase.
func (s *Status) Enter(p Phase) { s.update(func(s *State) { s.Phase = p }) }

// update changes the state. It does nothing on a nil Status.
func (s *Status) update(set func(s *State)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	set(&s.state)
}

// begin prepares a zero Status. The lock is held.
func (s *Status) begin() {
	if s.state.Sweeps == nil {
		s.state.Sweeps, s.state.Lost = map[int]uint64{}, map[int]bool{}
		s.state.Severed = map[int]string{}
		s.state.Sessions, s.state.Accounts = map[int][]rendezvous.Session{}, map[int]Account{}
		s.state.Former = map[int]rendezvous.Traffic{}
		s.state.Progress.Residual = math.NaN()
	}
}

// State returns a copy of the current state. The caller must not write to the sessions.
func (s *Status) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	out := s.state
	out.Sweeps, out.Lost, out.Sessions = maps.Clone(out.Sweeps), maps.Clone(out.Lost), maps.Clone(out.Sessions)
	out.Accounts, out.Former = maps.Clone(out.Accounts), maps.Clone(out.Former)
	out.Severed = maps.Clone(out.Severed)
	return out
}

// StatusEvery is the interval at which a peer reports its sessions if Spec.Reports is set.
const StatusEvery = 200 * time.Millisecond
