package virtual

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// job is an operation that may have to wait in the middle.
type job struct {
	kind   jobKind
	op     iterate.Op
	nb     *neighbour
	buffer *outgoing
	packed bool
}

type jobKind uint8

const (
	jobNone jobKind = iota
	jobFace
	jobAgree
	jobAdapt
)

// since is the time of the peer's run.
func (h *Host) since() time.Duration { return h.world.Now().Sub(h.Began) }

// running does the peer's operations until one takes time or has to wait.
func (h *Host) running() {
	now := h.world.Now()
	if now < h.busy {
		h.wake(h.busy)
		return
	}
	switch {
	case h.relaxing:
		h.relaxing = false
		h.world.Relaxed(h)
		h.poll(false)
	case h.waiting:
		h.waiting = false
		h.poll(true)
	}
	for !h.world.Failed() {
		if h.busy > now {
			h.wake(h.busy)
			h.Settle()
			return
		}
		if h.job.kind != jobNone {
			if !h.goOn() {
				h.poll(false) // while it waits for room it takes in what comes
				if !h.goOn() {
					return
				}
			}
			h.job = job{}
			continue
		}
		if len(h.late) > 0 && h.left <= 0 {
			h.job = h.late[0]
			h.late = append(h.late[:0], h.late[1:]...)
			h.charge()
			continue
		}
		if h.operate(h.Peer.Next(h.since())) {
			return
		}
	}
}

// operate does one operation, or begins it; true: the thread has nothing more to do now.
func (h *Host) operate(op iterate.Op) bool {
	switch op.Kind {
	case iterate.OpRelax:
		h.relax(op)
		return true
	case iterate.OpSend:
		h.sendFace(op)
	case iterate.OpAgree:
		h.job = job{kind: jobAgree, op: op, nb: h.byRank[op.To]}
		h.charge()
	case iterate.OpWait:
		if h.poll(true) {
			return false // it may have been what the peer waits for
		}
		h.waiting = true
		if op.Until > 0 {
			h.wake(h.Began.Add(max(op.Until, h.since()+1)))
		}
		h.Settle()
		return true
	case iterate.OpAdapt:
		for _, nb := range h.neighbours {
			nb.asked = 0
		}
		h.job = job{kind: jobAdapt, op: op}
	case iterate.OpStep:
		h.world.Stepped(h, op.Step)
	case iterate.OpFail:
		h.fail(op.Err)
		return true
	case iterate.OpDone:
		h.finish()
		return true
	}
	return false
}

func (h *Host) relax(op iterate.Op) {
	if h.left <= 0 {
		h.left = h.Peer.Box().Points() * h.config.Scale
	}
	h.left -= op.Points
	h.relaxing = true
	h.busy = max(h.busy, h.world.Now()).Add(h.world.Relax(h, op))
	h.wake(h.busy)
	h.Settle()
}

// goOn does what can be done of the job now; false: it has to wait.
func (h *Host) goOn() bool {
	switch j := &h.job; j.kind {
	case jobFace:
		return h.pushFace(j)
	case jobAgree:
		var t p2psap.Transfer
		return h.transmit(j.nb, j.nb.agree, &j.nb.agreeClosed, true, &j.op, j.op.Message, &t)
	case jobAdapt:
		return h.adapt(j)
	}
	return true
}

// charge takes the thread's time for the message of the job.
func (h *Host) charge() {
	n := h.job.op.Bytes
	if h.job.kind == jobAgree {
		n = len(h.job.op.Message)
	}
	if d := h.world.Sends(h, n); d > 0 {
		h.busy = max(h.busy, h.world.Now()).Add(d)
	}
}

// sendFace packs and sends a face. A synchronous one waits for a buffer that the
// neighbour has accepted, and for its grant; an asynchronous one that finds no
// room is dropped, since a newer one follows.
func (h *Host) sendFace(op iterate.Op) {
	nb := h.byRank[op.To]
	nb.newest = 1 - nb.newest
	h.job = job{kind: jobFace, op: op, nb: nb, buffer: &nb.buffers[nb.newest]}
	if !h.config.NoOverlap || h.left <= 0 {
		h.charge()
	}
}

func (h *Host) pushFace(j *job) bool {
	nb, b := j.nb, j.buffer
	if !j.packed {
		if !nb.async && !nb.haloClosed && !nb.read(j.op.Tag) && h.Node.Accepted(nb.halo) < b.transfer {
			return false
		}
		j.packed, b.held = true, true
		h.lend(b, j.op.Bytes)
		h.Peer.Pack(j.op, b.data)
		if h.config.NoOverlap && h.left > 0 {
			h.late = append(h.late, *j)
			return true
		}
	}
	if !h.transmit(nb, nb.halo, &nb.haloClosed, !nb.async, &j.op, b.data, &b.transfer) {
		return false
	}
	b.held = false
	nb.tidy(h)
	return true
}

// lend gives a face memory of n bytes for what it had; 0: none.
func (h *Host) lend(b *outgoing, n int) {
	if b.data != nil {
		h.config.Memory.Give(b.number, b.data)
	}
	if b.data = nil; n > 0 {
		b.data = h.config.Memory.Take(b.number, n)
	}
}

// tidy gives back the memory of faces that the session is done with.
func (nb *neighbour) tidy(h *Host) {
	for i := range nb.buffers {
		if b := &nb.buffers[i]; b.data != nil && !b.held && (nb.async || h.Node.Accepted(nb.halo) >= b.transfer) {
			h.lend(b, 0)
		}
	}
}

func (h *Host) transmit(nb *neighbour, id p2psap.SessionID, closed *bool, wanted bool, op *iterate.Op, data []byte, t *p2psap.Transfer) bool {
	if *closed {
		return true
	}
	sent, err := h.Node.Send(h.world.Now(), id, p2psap.Tag(op.Tag), p2psap.Label(op.Label), data)
	switch {
	case err == nil:
		*t = sent
		h.Settle()
	case errors.Is(err, microproto.ErrBusy):
		return !wanted
	case errors.Is(err, p2psap.ErrPeerClosed):
		*closed = true
	default:
		h.blame(nb, err)
	}
	return true
}

// adapt brings the loose halo sessions to a mode; the peer waits until all have
// changed.
func (h *Host) adapt(j *job) bool {
	mode := microproto.ModeSynchronous
	if j.op.Asynchronous {
		mode = microproto.ModeAsynchronous
	}
	over := true
	for _, nb := range h.neighbours {
		if !nb.loose || nb.haloClosed || !nb.hasHalo() {
			continue
		}
		if nb.asked == 0 {
			number, err := h.Node.Adapt(h.world.Now(), nb.halo, mode)
			if err != nil {
				h.fail(fmt.Errorf("adapting to %v: %w", nb.name, err))
				return false
			}
			nb.asked = number
		}
		done, err := h.Node.Adapted(nb.halo)
		if done < nb.asked {
			over = false
			continue
		}
		if err != nil {
			h.fail(fmt.Errorf("a change of the session with %v: %w", nb.name, err))
			return false
		}
		if nb.async != j.op.Asynchronous {
			nb.async = j.op.Asynchronous
			nb.buffers[0].transfer, nb.buffers[1].transfer = 0, 0
			h.world.Changed(h)
		}
	}
	h.Settle()
	return over
}
