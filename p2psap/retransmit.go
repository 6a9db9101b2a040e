package p2psap

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// retransmitBuffer is a ring of the synchronous transfers that are not known to be accepted, oldest
// first: those that a new composition may have to send again, and behind them those that were
// started while the composition changes. It keeps its memory.
type retransmitBuffer struct {
	fifo.Queue[unackedTransfer]
	base      uint64 // number of the transfer before the first
	submitted int    // number of transfers that the present endpoint has
}

// unackedTransfer holds the arguments of a Send; data is the caller's, or was reserved at link.
type unackedTransfer struct {
	tag   uint32
	label uint64
	data  []byte
	link  microproto.Reserver // nil: data is the caller's
}

// drop removes the transfers up to and including number to.
func (b *retransmitBuffer) drop(to uint64) {
	for b.Len() > 0 && b.base < to {
		if t := b.Front(); t.link != nil {
			t.link.Unreserve(t.data)
		}
		b.Drop()
		b.base++
		b.submitted = max(b.submitted-1, 0)
	}
}

// reset removes all transfers. The next one that is pushed has the number after base.
func (b *retransmitBuffer) reset(base uint64) {
	b.drop(math.MaxUint64)
	b.base, b.submitted = base, 0
}

// cost returns the bytes that the transfers take in the other end's queue.
func (b *retransmitBuffer) cost() (sum uint64) {
	for i := range b.Len() {
		sum += queueCost(len(b.At(i).data))
	}
	return sum
}

// queueCost returns the bytes that a message takes in the receiver's queue.
func queueCost(length int) uint64 { return uint64(length) + messageCost }

// maxPending bounds the transfers that are started during one change of composition.
const maxPending = 1 << 14

// enqueuePending starts a transfer that the next composition will send. It starts only what that
// composition is sure to take: within the bytes that the other end has granted.
func (s *session) enqueuePending(tag Tag, label Label, data []byte, link microproto.Reserver) error {
	granted := s.granted
	if e, ok := s.channel.endpoint.(microproto.Migratable); ok && !s.channel.held {
		granted = e.Granted()
	}
	r := &s.renegotiation
	to := r.Mine.Mode
	if was := r.suspended; was != nil && was.Mine.Mode == microproto.ModeAsynchronous {
		to = was.Mine.Mode // the suspended proposal may turn out to be agreed
	}
	b := &s.unacked
	if to == microproto.ModeAsynchronous || b.Len()-b.submitted >= maxPending || s.queued+queueCost(len(data)) > granted {
		return ErrBusy
	}
	b.Push(unackedTransfer{uint32(tag), uint64(label), data, link})
	return nil
}
