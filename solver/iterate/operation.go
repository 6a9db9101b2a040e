package iterate

import (
	"slices"
	"time"
)

// Rank numbers the peers of a run from 0.
type Rank int

// Iteration numbers the iterates of one peer. The starting vector is iterate 0.
type Iteration uint64

// Peer computes one peer's part of a run. It is pure reverse communication: the caller carries out the
// operations that Next returns and passes in arrivals by Halo and Agree. The package documentation states
// the caller's duties. A Peer is not safe for concurrent use.
type Peer interface {
	// Next returns the next operation. now is the time since the start of the run and must not
	// decrease. Next repeats OpRelax until Relax is called, and OpDone for ever.
	Next(now time.Duration) Op
	// Relax carries out an OpRelax that Next returned; it ignores other operations.
	Relax(op Op)
	// Pack writes the halo of an OpSend to dst, which has op.Bytes bytes.
	Pack(op Op, dst []byte)
	// Halo reports that the slot (q, tag) now holds data with a label, in pieces of whole values. data is
	// read until the next call of Halo for the same slot has returned. An error names q and ends the run.
	Halo(now time.Duration, q Rank, tag uint32, label uint64, data ...[]byte) error
	// Agree passes in an agreement message from q; msg is not kept. An error names q and ends the run.
	Agree(now time.Duration, q Rank, msg []byte) error
	// Stop requests an early end. The request travels to the root, which ends the run with the best
	// iterate; a run that is about to end anyway may end for its own reason.
	Stop(now time.Duration, why Reason)
	// Outcome returns the result of the run, or its state so far with the reason Running.
	Outcome() Outcome
	// Progress returns the state of the run for display.
	Progress() Progress
	// Solution writes this peer's values to dst: the agreed ones after OpDone, the newest complete
	// iterate before. On a grid they are those of the peer's box, [z][y][x].
	Solution(dst []float64)
	// Links returns the peers that this one exchanges messages with. It equals the list that the
	// method returns without a Peer.
	Links() []Link
}

// Link describes the messages between a peer and another one.
type Link struct {
	Rank Rank
	// Slots holds the lengths in bytes of received halos by tag. It is empty if there is no halo session.
	Slots []int
	// Sent holds the lengths in bytes of sent halos by tag. They may differ from Slots.
	Sent []int
	// Agreement is the length in bytes of the longest agreement message, 0 if there is no agreement session.
	Agreement int
	// Asynchronous is the initial communication mode of the halo session.
	Asynchronous bool
}

// MessageBytes returns the length of the longest message in either direction.
func (l Link) MessageBytes() int {
	return slices.Max(slices.Concat([]int{l.Agreement}, l.Slots, l.Sent))
}

// OpKind is the kind of an operation.
type OpKind int

// The operations.
const (
	// OpRelax: call Relax with the operation, before any slot of an asynchronous session changes.
	OpRelax OpKind = iota + 1
	// OpSend: call Pack with a buffer of Bytes bytes, before the next call of Next or Relax. Send the buffer
	// on the halo session to To with Tag and Label.
	OpSend
	// OpAgree: send Message on the agreement session to To with Label, which increases. The slice
	// belongs to the caller.
	OpAgree
	// OpWait: wait for an arrival, at most until Until unless that is 0.
	OpWait
	// OpAdapt: change the halo sessions that the scheme declares asynchronous to the mode Asynchronous,
	// each together with its other end.
	OpAdapt
	// OpStep: time step Step is complete. Solution returns its end until the next call of Next.
	OpStep
	// OpKeep: store a copy of the values of iterate Label, and of the state Message, with another peer. Next is called
	// when the copy is stored there. Until OpKept, the iterate that was kept before is needed, too.
	OpKeep
	// OpKept: every peer has stored its copy of iterate Label, whose values Solution returns until the next call of
	// Next. Older copies are not needed any more.
	OpKept
	// OpFail: the run cannot continue, because of Err. If that is a *Refusal, another peer is to blame.
	OpFail
	// OpDone: the run has ended; see Outcome.
	OpDone
)

// Op is one operation. The comment of its kind names the fields that are set.
type Op struct {
	Kind    OpKind
	Part    int // OpRelax: which part of the sweep
	Points  int // OpRelax: points in the part, for models of cost
	To      Rank
	Tag     uint32
	Label   uint64
	Bytes   int
	Message []byte
	Until   time.Duration // since the start of the run

	Asynchronous bool
	Step         *StepResult
	Err          error
}
