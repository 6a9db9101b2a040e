package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// State is the state of a run at one time. The maps are by rank.
type State struct {
	Phase    Phase
	Progress Progress
	Sweeps   map[int]uint64               // as each peer has last reported for the time step in progress
	Lost     map[int]bool                 // peers whose process or connection ended early, or that timed out
	Severed  map[int]string               // with which peer each of them exchanges nothing at present, and why
	Sessions map[int][]rendezvous.Session // as each peer has reported them last
	Former   map[int]rendezvous.Traffic   // of former epochs, likewise
	Gone     rendezvous.Traffic           // of processes that ran a part before
	Accounts map[int]Account              // as each rank has reported them last, with former epochs

	Spec    rendezvous.Spec
	Term    register.Term // that of the leader; zero: no other process can lead the run
	Epoch   int
	Losses  []Loss
	Moves   []Moved
	Members []rendezvous.Member // by rank
	Boxes   []problem.Box       // by rank, as assigned
}

// Account is that of a rank in all epochs. Processes that had its place before count, too.
type Account struct {
	rendezvous.Account
	carried rendezvous.Account // of former epochs
	newest  rendezvous.Account
}

// add adds what a newer account of the same rank says.
func (a *Account) add(n *rendezvous.Account) {
	if n.Epoch != a.newest.Epoch {
		a.carried = a.Account
	}
	a.newest, a.Account = *n, *n
	a.Seconds, a.Relaxing, a.Waiting = n.Seconds+a.carried.Seconds, n.Relaxing+a.carried.Relaxing, n.Waiting+a.carried.Waiting
	a.Reads = nil
	for _, r := range n.Reads {
		for _, o := range a.carried.Reads {
			if o.Rank == r.Rank && len(o.Ages) == len(r.Ages) {
				r.Faces, r.Sum, r.Ages = r.Faces+o.Faces, r.Sum+o.Sum, slices.Clone(r.Ages)
				for i, n := range o.Ages {
					r.Ages[i] += n
				}
			}
		}
		a.Reads = append(a.Reads, r)
	}
}

// report records the sessions and the account of a rank.
func (s *State) report(rank int, m *rendezvous.Sessions) {
	if m.Sessions != nil {
		s.Sessions[rank], s.Former[rank] = m.Sessions, m.Former
	}
	if m.Account != nil {
		a := s.Accounts[rank]
		a.add(m.Account)
		s.Accounts[rank] = a
	}
}

// Phase is a phase of a run.
type Phase int

// The phases of a run, in their order.
const (
	Joining    Phase = iota // the peers join and receive their work
	Solving                 // the peers relax
	Recovering              // a peer was lost, and not all relax again
	Judging                 // the answer is evaluated, written and printed
)

func (p Phase) String() string { return [...]string{"joining", "solving", "recovering", "judging"}[p] }

// Phases returns all phases.
func Phases() []Phase { return []Phase{Joining, Solving, Recovering, Judging} }

// lose marks a peer as lost; it ignores rank −1, none in particular.
func (s *State) lose(rank int) {
	if rank >= 0 {
		s.Lost[rank] = true
		s.leave(rank)
	}
}

// leave counts what the process of a rank has sent, when another one runs that part from now on.
func (s *State) leave(rank int) {
	s.Gone.Add(s.Former[rank])
	for i := range s.Sessions[rank] {
		s.Gone.AddSession(&s.Sessions[rank][i])
	}
	delete(s.Sessions, rank)
	delete(s.Former, rank)
}
