package iterate

import "time"

// Rank numbers the peers of a run from 0.
type Rank int

// Iteration numbers the iterates of one peer: u⁰ is 0.
type Iteration uint64

// Peer is what one peer of a run computes, whatever the method: pure reverse
// communication. The shell asks Next what to do, does it, and tells what arrives by
// Halo and Agree. Not safe for concurrent use.
type Peer interface {
	// Next says what to do now; now is the time since the run's start and must not
	// decrease. An OpRelax is repeated until Relax was called for it. After OpDone it
	// answers OpDone.
	Next(now time.Duration) Op
	// Relax does the part that Next asked for; any other op is ignored.
	Relax(op Op)
	// Pack writes what op, an OpSend, asks for: op.Bytes bytes.
	Pack(op Op, dst []byte)
	// Halo tells that the slot of (rank, tag) now holds data, of age label. data is only
	// read before the next call of Halo for the same slot. The error names q; the run
	// cannot go on after one.
	Halo(now time.Duration, q Rank, tag uint32, label uint64, data []byte) error
	// Agree tells that an agreement message came from q; msg is not kept. The error
	// names q; the run cannot go on after one.
	Agree(now time.Duration, q Rank, msg []byte) error
	// Stop asks for an early end.
	Stop(now time.Duration, why Reason)
	// Outcome tells how the run ended, or how far it has come.
	Outcome() Outcome
	Progress() Progress
	// Solution writes the agreed block [z][y][x] of the box after OpDone, and the newest
	// complete iterate before. dst has as many values as the box has points.
	Solution(dst []float64)
	// Links are the peers that this one exchanges anything with; the same list as
	// the method's Links gives.
	Links() []Link
}

// Link is what travels between a peer and another one.
type Link struct {
	Rank Rank
	// Slots are the lengths in bytes of what arrives on the halo session, by tag; empty:
	// there is no halo session. What is sent there may be of other lengths (Op.Bytes).
	Slots []int
	// Sent are the lengths of what is sent, by tag.
	Sent []int
	// Agreement is the length in bytes of the longest agreement message; 0: there is no
	// agreement session.
	Agreement int
	// Asynchronous is the communication mode that the halo session wants.
	Asynchronous bool
}

// MessageBytes is the length of the longest message that the link carries, either way.
func (l Link) MessageBytes() int {
	longest := l.Agreement
	for _, n := range l.Slots {
		longest = max(longest, n)
	}
	for _, n := range l.Sent {
		longest = max(longest, n)
	}
	return longest
}

// OpKind is what the shell has to do next.
type OpKind int

// The operations.
const (
	OpRelax OpKind = iota + 1 // call w.Relax(op), before what the slots hold changes
	OpSend                    // w.Pack(op, buf) into a buffer of op.Bytes bytes, before the next call of Next or Relax; send it on the halo session of op.To with op.Tag, op.Label
	OpAgree                   // send op.Message on the agreement session of op.To (op.Label grows); the slice is the shell's to keep
	OpWait                    // nothing to do before an arrival, or before op.Until (time since start; 0: no limit)
	OpAdapt                   // bring the halo sessions that are asynchronous by the scheme to op.Asynchronous, all at once, each together with its other end; then go on
	OpStep                    // time step op.Step is complete: Solution gives its end until Next is called again
	OpFail                    // the run cannot go on: op.Err
	OpDone                    // finished: see Outcome
)

// Op is one operation.
type Op struct {
	Kind    OpKind
	Part    int
	Points  int // OpRelax: points in the part (cost models)
	To      Rank
	Tag     uint32
	Label   uint64
	Bytes   int
	Message []byte
	Until   time.Duration

	Asynchronous bool
	Step         *StepResult
	Err          error
}
