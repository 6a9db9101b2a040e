package exchange

import (
	"errors"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
)

// buffer holds a face that is being sent; the memory is the session's until the face is accepted.
type buffer struct {
	number   int    // among those of the exchange
	own      []byte // nil: none was needed yet
	data     []byte // part of own, the network's or lent by Config.Memory; nil: there is no face
	held     bool   // the face is packed and not sent yet
	tag      p2psap.Tag
	label    p2psap.Label
	transfer p2psap.Transfer // 0 if the face was not sent in the present mode
}

// beginFace begins to send a face, in the buffer that was used first.
func (x *Exchange) beginFace() Action {
	n := x.byRank[x.op.To]
	n.newest = 1 - n.newest
	x.pending = operation{kind: face, to: n, buffer: &n.buffers[n.newest]}
	if x.pointsLeft > 0 {
		return Action{}
	}
	return x.charge()
}

// pushFace packs a face and sends it. A synchronous face waits for a buffer that the neighbour has accepted, and for
// room at the neighbour. An asynchronous one that finds no room is dropped, since a newer one follows.
func (x *Exchange) pushFace(now time.Duration, o *operation) (bool, error) {
	n, b := o.to, o.buffer
	if !o.packed {
		if done, err := x.free(n, b, p2psap.Tag(x.op.Tag)); !done || err != nil {
			return false, err
		}
		o.packed, b.held = true, true
		b.tag, b.label = p2psap.Tag(x.op.Tag), p2psap.Label(x.op.Label)
		if x.config.Memory != nil {
			x.lend(b, x.op.Bytes)
		} else if b.data = n.Halo.Reserve(b.tag, x.op.Bytes); b.data == nil {
			b.data = n.ownMemory(b)[:x.op.Bytes]
		}
		x.peer.Pack(x.op, b.data)
		if x.pointsLeft > 0 {
			x.late = append(x.late, lateFace{*o, x.op})
			return true, nil
		}
	}
	n.sentAt = now
	done, err := x.sendFace(n, b)
	if !done || err != nil {
		return false, err
	}
	b.held = false
	return true, x.giveBack(n)
}

func (x *Exchange) sendFace(n *Neighbour, b *buffer) (bool, error) {
	return x.transmit(n, n.Halo, &n.haloClosed, !n.asynchronous, b.tag, b.label, b.data, &b.transfer)
}

// Repeat sends the newest face of each asynchronous neighbour again, unless it was sent less
// than every ago: asynchronous sessions may lose faces. It returns when the next one is due.
// A peer repeats its faces itself in Next; Repeat is for a shell that lets time pass without calling Next.
func (x *Exchange) Repeat(now, every time.Duration) (next time.Duration, err error) {
	next = Never
	for _, n := range x.neighbours {
		b := &n.buffers[n.newest]
		if !n.asynchronous || n.haloClosed || b.transfer == 0 || x.config.Memory != nil {
			continue
		}
		if now-n.sentAt >= every {
			n.sentAt = now
			if _, err := x.sendFace(n, b); err != nil {
				return 0, err
			}
		}
		next = min(next, n.sentAt+every)
	}
	return next, nil
}

// free reports whether a face may be packed into a buffer.
func (x *Exchange) free(n *Neighbour, b *buffer, tag p2psap.Tag) (bool, error) {
	if b.transfer == 0 || n.asynchronous || n.haloClosed || n.read(tag) {
		return true, nil
	}
	done, err := n.Halo.Accepted(b.transfer)
	if err != nil {
		return true, x.close(n, &n.haloClosed, err)
	}
	return done, nil
}

// ownMemory returns memory of a buffer for the longest face.
func (n *Neighbour) ownMemory(b *buffer) []byte {
	if b.own == nil {
		b.own = make([]byte, slices.Max(n.Sent))
	}
	return b.own
}

// lend gives a buffer n bytes of Config.Memory in place of those that it had; 0: none.
func (x *Exchange) lend(b *buffer, n int) {
	if b.data != nil {
		x.config.Memory.Give(b.number, b.data)
	}
	if b.data = nil; n > 0 {
		b.data = x.config.Memory.Take(b.number, n)
	}
}

// giveBack returns the memory of faces that the session does not need any more.
func (x *Exchange) giveBack(n *Neighbour) error {
	if x.config.Memory == nil {
		return nil
	}
	for i := range n.buffers {
		b := &n.buffers[i]
		if b.data == nil || b.held {
			continue
		}
		done, err := n.asynchronous, error(nil)
		if !done {
			if done, err = n.Halo.Accepted(b.transfer); err != nil {
				return x.close(n, &n.haloClosed, err)
			}
		}
		if done {
			x.lend(b, 0)
		}
	}
	return nil
}

// transmit sends a message. If the receiver has no room, it returns false if wanted is true, and drops the message
// otherwise. It drops messages to a neighbour that has closed the session.
func (x *Exchange) transmit(n *Neighbour, s Session, closed *bool, wanted bool,
	tag p2psap.Tag, label p2psap.Label, data []byte, t *p2psap.Transfer) (bool, error) {
	if *closed {
		return true, nil
	}
	sent, err := s.Send(tag, label, data)
	switch {
	case err == nil:
		*t = sent
		return true, nil
	case errors.Is(err, p2psap.ErrBusy):
		return !wanted, nil
	}
	return true, x.close(n, closed, err)
}
