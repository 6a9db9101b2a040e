package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// change is a change of the status of a run.
type change interface{ apply(s *State) }

type (
	rankLost int // the process or connection of a peer ended early, or it timed out; −1: none in particular
	rankLeft int // another process runs the part of the rank from now on
	rankBack int // a peer of the rank relaxes again

	// severed states with which peer one exchanges nothing, and why; "": it exchanges values with all.
	severed struct {
		rank int
		why  string
	}

	// swept is what a peer reports of its sweeps.
	swept struct {
		rank  int
		sweep uint64
	}

	// accounted is what a peer reports of its sessions.
	accounted struct {
		rank     int
		sessions *rendezvous.Sessions
	}

	// composed is the composition of an epoch, with all losses and moves so far.
	composed struct {
		spec    rendezvous.Spec
		term    register.Term
		epoch   int
		losses  []Loss
		moves   []Moved
		members []rendezvous.Member // by rank; nil: not known yet
		boxes   []problem.Box       // by rank, as assigned
	}
)

func (p Phase) apply(s *State)     { s.Phase = p }
func (p Progress) apply(s *State)  { s.Progress = p }
func (l rankLost) apply(s *State)  { s.lose(int(l)) }
func (l rankLeft) apply(s *State)  { s.leave(int(l)) }
func (b rankBack) apply(s *State)  { delete(s.Lost, int(b)) }
func (w swept) apply(s *State)     { s.Sweeps[w.rank] = w.sweep }
func (a accounted) apply(s *State) { s.report(a.rank, a.sessions) }
func (c *composed) apply(s *State) {
	s.Spec, s.Term, s.Epoch, s.Losses, s.Moves, s.Members, s.Boxes = c.spec, c.term, c.epoch, c.losses, c.moves, c.members, c.boxes
}

func (c severed) apply(s *State) {
	if delete(s.Severed, c.rank); c.why != "" {
		s.Severed[c.rank] = c.why
	}
}

// reportEpoch sets the epoch, its peers, and all losses and moves so far in the status.
func (r *run) reportEpoch() {
	c := &composed{spec: r.Spec, term: r.term, epoch: r.epoch, moves: slices.Clone(r.moves)}
	for _, l := range r.losses {
		c.losses = append(c.losses, *l)
	}
	if !r.returning { // else who runs which rank is not known yet
		for _, m := range r.members {
			c.members, c.boxes = append(c.members, m.entry()), append(c.boxes, m.box)
		}
	}
	r.change(c)
}
