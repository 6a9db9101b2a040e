package launch

import (
	"maps"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Status holds the current state of a run. The launcher updates it; State is safe from any goroutine.
type Status struct {
	mu    sync.Mutex
	state State
}

// State is the state of a run at one time. The maps are by rank.
type State struct {
	Phase    Phase
	Progress Progress
	Sweeps   map[int]uint64               // as each peer has last reported for the time step in progress
	Lost     map[int]bool                 // peers whose process or connection ended early, or that timed out
	Sessions map[int][]rendezvous.Session // as each peer has reported them last
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

// Enter sets the phase.
func (s *Status) Enter(p Phase) { s.update(func(s *State) { s.Phase = p }) }

// update changes the state. It does nothing on a nil Status.
func (s *Status) update(set func(s *State)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Sweeps == nil {
		s.state.Sweeps, s.state.Lost = map[int]uint64{}, map[int]bool{}
		s.state.Sessions = map[int][]rendezvous.Session{}
	}
	set(&s.state)
}

// lose marks a peer as lost; it ignores rank −1, none in particular.
func (s *State) lose(rank int) {
	if rank >= 0 {
		s.Lost[rank] = true
	}
}

// State returns a copy of the current state. The caller must not write to the sessions.
func (s *Status) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state
	out.Sweeps, out.Lost, out.Sessions = maps.Clone(out.Sweeps), maps.Clone(out.Lost), maps.Clone(out.Sessions)
	return out
}

// StatusEvery is the interval at which a peer reports its sessions if Assign.Status is set.
const StatusEvery = 200 * time.Millisecond
