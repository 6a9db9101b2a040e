package launch

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Captures receives iterates of the whole grid during a stationary run. The blocks of an iterate may have different
// numbers of sweeps.
type Captures interface {
	// Due reports whether the next iterate is wanted. The launcher calls it often.
	Due() bool
	// Take accepts an iterate [z][y][x], which it may keep. It must return at once.
	Take(u []float64, at Progress)
}

// capture is an iterate that peers were asked for.
type capture struct {
	number  int // of the newest, from 1
	epoch   int // in which it began
	u       []float64
	owned   *ownership
	awaited map[*member]bool // whose blocks have not arrived; empty: none is being captured
}

// capturable reports whether peers can be asked for an iterate.
func (r *run) capturable() bool {
	c := &r.capture
	return r.Captures != nil && !r.inTime && !r.active && !r.stopping && r.failure == nil &&
		!(len(c.awaited) > 0 && c.epoch == r.epoch) &&
		!slices.ContainsFunc(r.members, (*member).done) // if one is done, the others end, too
}

// checkCapture asks the peers for their blocks, at every tick, if an iterate is wanted.
func (r *run) checkCapture(wanted bool) {
	if !wanted || !r.capturable() {
		return
	}
	c := &r.capture
	*c = capture{
		number: c.number + 1, epoch: r.epoch, u: make([]float64, r.Problem.Points()), owned: newOwnership(&r.Plan),
		awaited: map[*member]bool{},
	}
	whole := []problem.Box{{Hi: r.Problem.N}}
	for _, m := range r.members {
		c.awaited[m] = true
		r.send(m, rendezvous.Capture{Number: c.number, Boxes: whole})
	}
}

// receiveCapture places a peer's block. The last one completes the iterate. If planes have moved between the blocks of
// two peers, the iterate is dropped, and the next tick begins another.
func (r *run) receiveCapture(m *member, msg *rendezvous.Captured, values []float64) {
	c := &r.capture
	if msg.Number != c.number || !c.awaited[m] {
		return
	}
	var err error
	if r.Balance {
		err = c.owned.declare(m.rank, msg.Box)
	}
	if err != nil || msg.Box != c.owned.box(m.rank) || len(values) != msg.Box.Points() {
		c.awaited = nil
		return
	}
	blocks.Copy(c.u, r.Problem.N, msg.Box, values)
	if delete(c.awaited, m); len(c.awaited) > 0 {
		return
	}
	if !r.Balance || len(c.owned.unowned(func(int) bool { return true })) == 0 {
		r.add(captured{c.u, r.beat})
	}
	c.u = nil
}
