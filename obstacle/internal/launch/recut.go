package launch

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// moved reports whether the boxes of the survivors of a loss are known from them only, since planes move. A time step
// begins again with the boxes of the partition.
func (r *run) moved() bool { return r.Balance && !r.inTime }

// recut decides the boxes of an epoch, once all survivors have told which they have. Planes whose values nobody has are
// repaired: those of lost peers, and those that were on their way between two peers.
func (r *run) recut() {
	r.cut = r.epoch
	known := newOwnership(&r.Plan)
	held := make([]problem.Box, len(r.members))
	for i, m := range r.members {
		if !m.valued {
			continue
		}
		if err := known.declare(i, m.held); err != nil {
			r.add(disconnect{m})
			r.lose(m, failure{closed, m.rank, fmt.Sprintf("%s claims a box that it cannot have: %v", m, err)})
			return
		}
		held[i] = m.held
	}
	next, missing := repair.Recut(r.Partition, held)
	r.Partition = next
	r.add(declareAnew{next})
	r.unvalued = nil
	for i, m := range r.members {
		m.box, m.hole = next.Box(iterate.Rank(i)), missing[i]
		m.final = m.box
		if !m.hole.Empty() {
			r.unvalued = append(r.unvalued, m.hole)
		}
	}
	r.askForFaces()
}

// askForFaces asks the survivors for the values that they have beside the holes.
func (r *run) askForFaces() {
	for _, m := range r.members {
		if !m.valued {
			continue
		}
		if shell := repair.Shell(r.Problem, r.unvalued, r.heldBy(m)); len(shell) > 0 {
			r.faces = append(r.faces, m)
			r.send(m, rendezvous.Capture{Number: -r.epoch, Boxes: shell})
		}
	}
}

// heldBy returns the box of which a survivor has values.
func (r *run) heldBy(m *member) problem.Box {
	if r.moved() {
		return m.held
	}
	return m.box
}
