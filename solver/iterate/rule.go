package iterate

import "github.com/p2pdc/p2pdc/internal/kernel"

// TerminationRule decides when a run ends and which iterate is the answer. It is part of a Coordination.
// Repeated calls of Next without other calls in between return the same action.
type TerminationRule interface {
	// Over reports whether the answer is known, so that work in progress need not be finished.
	Over() bool
	// Next returns what to do between two passes over the block.
	Next() Action
	// Measured passes in the exact sum of squares measured by a pass.
	Measured(residual *kernel.Sum)
	// receive handles a message from a neighbour.
	receive(c *Channel, m *Message) error
	// stopRequested reports to the root that an early end was requested.
	stopRequested()
	// SkipSend reports whether no peer needs the halos of an iterate.
	SkipSend(label Iteration) bool
	// FreeSweeps returns the number of sweeps that may be made before the next call of Next.
	FreeSweeps() Iteration
	// Accepted returns the iterate that met the tolerance. It returns false if there is none or if the
	// answer is the captured block.
	Accepted() (Iteration, bool)
	// Outcome sets the fields of o that the rule knows.
	Outcome(o *Outcome)
	// progress returns the last relative residual, NaN if there is none.
	progress() float64
}

// Action is the next action of a peer.
type Action int

// The actions.
const (
	ActionWait            Action = iota // for a message
	ActionSweep                         // make the next iterate
	ActionSweepMeasure                  // make the next iterate and measure the residual of the current one
	ActionMeasure                       // measure the residual of the current iterate
	ActionMeasureCaptured               // measure the residual of the captured block with the captured faces
	ActionDone                          // the run, or the time step, has ended
)

// NewTerminationRule returns the rule of the scheme, for a run or a time step.
func NewTerminationRule(p *Coordination) TerminationRule {
	if p.Config.Scheme.Lockstep() {
		return newLockstepRule(p)
	}
	return newSnapshotRule(p)
}
