package sim

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
)

// poll takes in what has come, and tells whether there was anything.
func (p *peer) poll() (news bool) {
	for _, nb := range p.neighbours {
		for t := range nb.slots {
			if nb.haloRead[t] {
				continue
			}
			a, fresh := p.receive(nb, nb.halo, &nb.slots[t], &nb.haloRead[t])
			if !fresh || !a.Complete {
				continue
			}
			news = true
			p.blame(nb, p.worker.Halo(p.now(), nb.Rank, uint32(t), a.Label, nb.slots[t].Data[:a.Length]))
		}
		for !nb.agreeRead {
			a, fresh := p.receive(nb, nb.agree, &nb.letter, &nb.agreeRead)
			if !fresh {
				break
			}
			news = true
			p.blame(nb, p.worker.Agree(p.now(), nb.Rank, nb.letter.Data[:a.Length]))
		}
	}
	return news
}

func (p *peer) receive(nb *neighbour, id p2psap.SessionID, slot *p2psap.Slot, closed *bool) (p2psap.Arrival, bool) {
	a, err := p.node.Receive(p.c.clock.Now(), id, slot)
	switch {
	case err == nil:
		return a, a.Fresh
	case errors.Is(err, p2psap.ErrPeerClosed):
		*closed = true
	case !errors.Is(err, microproto.ErrNothing):
		p.blame(nb, err)
	}
	return a, false
}

func (p *peer) blame(nb *neighbour, err error) {
	if err != nil {
		p.c.fail(p, fmt.Errorf("neighbour %d: %w", nb.Rank, err))
	}
}

func (p *peer) byRank(r solver.Rank) *neighbour {
	for _, nb := range p.neighbours {
		if nb.Rank == r {
			return nb
		}
	}
	return nil
}

// sendFace packs and sends a face. A synchronous one waits for a buffer that the
// neighbour has accepted, and for its grant; an asynchronous one that finds no
// room is dropped, since a newer one follows.
func (p *peer) sendFace(op solver.Op) {
	nb := p.byRank(op.To)
	reliable := !nb.async
	nb.newest = 1 - nb.newest
	b := &nb.buffers[nb.newest]
	packed := false
	p.attempt(func() bool {
		if reliable && !nb.haloClosed && !nb.read(op.Tag) && p.node.Accepted(nb.halo) < b.transfer {
			return false
		}
		if !packed {
			packed = true
			b.data = b.room[:op.Bytes]
			p.worker.Pack(op, b.data)
		}
		return p.transmit(nb, nb.halo, &nb.haloClosed, reliable, op, b.data, &b.transfer)
	})
}

func (p *peer) sendAgreement(op solver.Op) {
	nb := p.byRank(op.To)
	p.attempt(func() bool {
		var t p2psap.Transfer
		return p.transmit(nb, nb.agree, &nb.agreeClosed, true, op, op.Message, &t)
	})
}

// attempt does what can be done now and leaves the rest for later.
func (p *peer) attempt(f func() bool) {
	if p.cost.Send > 0 {
		p.busy = p.c.clock.Now().Add(p.cost.Send)
	}
	if !f() {
		p.todo = f
	}
}

func (p *peer) transmit(nb *neighbour, id p2psap.SessionID, closed *bool, wanted bool, op solver.Op, data []byte, t *p2psap.Transfer) bool {
	if *closed {
		return true
	}
	sent, err := p.node.Send(p.c.clock.Now(), id, p2psap.Tag(op.Tag), p2psap.Label(op.Label), data)
	switch {
	case err == nil:
		*t = sent
	case errors.Is(err, microproto.ErrBusy):
		return !wanted
	case errors.Is(err, p2psap.ErrPeerClosed):
		*closed = true
	default:
		p.blame(nb, err)
	}
	return true
}
