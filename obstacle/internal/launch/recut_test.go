package launch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// planes returns the box of some planes of a grid of 4³.
func planes(lo, hi int) problem.Box { return problem.Box{Lo: [3]int{0, 0, lo}, Hi: [3]int{4, 4, hi}} }

// moving returns the run of resuming with moving planes and repairs.
func balancing(t *testing.T) *run {
	r := resuming(t)
	r.Recover, r.Balance = rendezvous.RecoverLocal, true
	return r
}

// enterWith simulates that all peers enter the epoch, with values of some boxes.
func (r *run) enterWith(boxes ...problem.Box) {
	for rank, b := range boxes {
		r.receiveRecovery(r.members[rank], rendezvous.Listen{Epoch: r.epoch, Idle: true, Box: b})
	}
}

// The boxes of the epoch are those that the survivors have. The rest belongs to the peer that was lost.
func TestBoxesAfterPlanesHaveMoved(t *testing.T) {
	r := balancing(t)
	r.enterWith(planes(0, 1), planes(1, 3), problem.Box{})
	require.Equal(t, []int{0, 1, 3, 4}, r.Partition.Cuts[2])
	hole := planes(3, 4)
	require.Equal(t, []problem.Box{hole}, r.unvalued)
	c := rendezvous.Capture{Number: -1, Boxes: repair.Shell(r.Problem, []problem.Box{hole}, planes(1, 3))}
	require.Equal(t, c, r.next(r.members[1]))
	require.Nil(t, r.next(r.members[0]), "it has no values beside the hole")
	require.Contains(t, r.effects, declareAnew{r.Partition}, "former declarations do not count")

	r.receiveFaces(r.members[1], -1, make([]float64, 16))
	for rank, m := range r.members {
		a := r.next(m).(*workload).assign
		require.Equal(t, r.Partition.Cuts, a.Cuts)
		require.Equal(t, rank == 2, a.Repair != nil)
	}
}

// Planes that were on their way between two survivors are repaired by one of them.
func TestPlanesOnTheirWay(t *testing.T) {
	r := balancing(t)
	r.members[2].valued = true
	r.enterWith(planes(0, 1), planes(1, 2), planes(3, 4))
	require.Equal(t, []problem.Box{planes(2, 3)}, r.unvalued)
	require.Equal(t, r.members[1:], r.faces)
	for _, m := range r.members[1:] {
		r.next(m)
		r.receiveFaces(m, -1, make([]float64, 16))
	}
	for rank, m := range r.members {
		a := r.next(m).(*workload).assign
		require.Equal(t, rank == 1, a.Repair != nil, "the lower one")
		require.Equal(t, []int{0, 1, 3, 4}, a.Cuts[2])
	}
}

// A peer that claims a box which another one has counts as lost.
func TestClaimedBoxes(t *testing.T) {
	r := balancing(t)
	r.Recover = rendezvous.RecoverOff // the loss is reported as a failure
	r.enterWith(planes(0, 2), planes(1, 3), problem.Box{})
	require.Contains(t, r.failure.text, "claims a box that it cannot have: planes 1 to 3 overlap those of peer 0")
}
