package solver

import "github.com/p2pdc/p2pdc/internal/kernel"

// ending is a rule of termination. Asked twice without anything in between, gate
// answers the same.
type ending interface {
	over() bool                         // the answer is known, nothing need be finished
	gate() gate                         // what to do between two passes
	measured(residual *kernel.Sum)      // a pass that measured has ended
	agree(c *channel, m *message) error // a message from a neighbour
	wished()                            // at the root: an early end is wished for
	skipSend(label Iteration) bool      // faces of that iterate are of no use to anybody
	outcome(o *Outcome)
	progress() float64
}

// gate is what comes next.
type gate int

const (
	gateWait gate = iota
	gateSweep
	gateSweepMeasure   // a sweep that measures the residual of the old iterate
	gateMeasureCurrent // measure only
	gateMeasureFrozen
	gateDone
)

// newEnding is the rule of the party's scheme, for a run or a time step.
func newEnding(p *party) ending {
	if inLockstep(p.run.Scheme) {
		return newLockstepEnd(p)
	}
	return newSnapshotEnd(p)
}
