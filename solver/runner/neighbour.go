package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// outBuffers is the number of send buffers of a face: one is on its way while the
// next is packed.
const outBuffers = 2

// neighbour is the traffic over one link.
type neighbour struct {
	iterate.Link
	name   string
	halo   Socket        // nil: the link has none
	agree  Socket        // nil: the link has none
	loose  bool          // the scheme wants the halo session asynchronous
	async  bool          // it is, at present
	slots  []p2psap.Slot // of halos, by tag
	letter p2psap.Slot   // an agreement message

	out    [outBuffers]outgoing
	newest int           // index in out of what was sent last
	sentAt time.Duration // when, since the start

	// What the other end has closed. What it sent before can still be read, tag by
	// tag, after a send or another tag has found out.
	haloOut, agreeOut, agreeIn bool
	haloIn                     []bool        // by tag
	left                       bool          // any of them
	leftAt                     time.Duration // by Runner.ran
}

// outgoing is a face on its way.
type outgoing struct {
	room     []byte // for the longest
	data     []byte
	tag      p2psap.Tag
	label    p2psap.Label
	transfer p2psap.Transfer // 0: never sent
}

// sessionName is the same at both ends.
func sessionName(kind string, a, b iterate.Rank) string {
	return fmt.Sprintf("%s/%d-%d", kind, min(a, b), max(a, b))
}

// newNeighbour prepares the traffic over a link.
func (c *Config) newNeighbour(l iterate.Link, name string) *neighbour {
	nb := &neighbour{Link: l, name: name, loose: l.Asynchronous, async: l.Asynchronous}
	nb.slots = make([]p2psap.Slot, len(l.Slots))
	nb.haloIn = make([]bool, len(l.Slots))
	for t, n := range l.Slots {
		nb.slots[t] = p2psap.Slot{Tag: p2psap.Tag(t), Data: make([]byte, n)}
	}
	longest := 0
	for _, n := range l.Sent {
		longest = max(longest, n)
	}
	for i := range nb.out {
		if longest > 0 {
			nb.out[i].room = c.face(longest)
		}
	}
	nb.letter.Data = make([]byte, l.Agreement)
	nb.agreeIn, nb.agreeOut = l.Agreement == 0, l.Agreement == 0
	nb.haloOut = !nb.hasHalo()
	return nb
}

// hasHalo tells whether the link has a halo session.
func (nb *neighbour) hasHalo() bool { return len(nb.Slots)+len(nb.Sent) > 0 }

// face is memory for a face that will be sent.
func (c *Config) face(n int) []byte {
	if c.Allocate != nil {
		if b, err := c.Allocate(n); err == nil {
			return b
		}
	}
	return make([]byte, n)
}

// open opens the two sessions. Neighbours open theirs in different orders, so all
// of them are opened at once.
func (nb *neighbour) open(ctx context.Context, node Node, own iterate.Rank) error {
	mode := microproto.ModeSynchronous
	if nb.async {
		mode = microproto.ModeAsynchronous
	}
	halo := p2psap.OpenOptions{Name: sessionName("halo", own, nb.Rank), Mode: mode}
	for t, n := range nb.Slots {
		halo.Slots = append(halo.Slots, p2psap.SlotSpec{Tag: p2psap.Tag(t), Length: n})
	}
	agree := p2psap.OpenOptions{
		Name: sessionName("agree", own, nb.Rank), Mode: microproto.ModeSynchronous,
		Slots: []p2psap.SlotSpec{{Tag: 0, Length: len(nb.letter.Data)}},
	}
	type opened struct {
		s   Socket
		err error
	}
	second := make(chan opened, 1)
	go func() {
		if nb.Agreement == 0 {
			second <- opened{}
			return
		}
		s, err := node.Open(ctx, nb.name, agree)
		second <- opened{s, err}
	}()
	var err error
	if nb.hasHalo() {
		nb.halo, err = node.Open(ctx, nb.name, halo)
	}
	a := <-second
	nb.agree = a.s
	if err = errors.Join(err, a.err); err != nil {
		return &NeighbourError{nb.Rank, nb.name, err}
	}
	return nil
}

func (nb *neighbour) sockets() []Socket {
	var out []Socket
	for _, s := range []Socket{nb.halo, nb.agree} {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// fail puts the neighbour's rank to an error.
func (nb *neighbour) fail(err error) error { return &NeighbourError{nb.Rank, nb.name, err} }

// closed notes that the other end has closed a session, which it does once it
// knows the verdict; err is nil then.
func (r *Runner) closed(nb *neighbour, way *bool, err error) error {
	if !errors.Is(err, p2psap.ErrPeerClosed) {
		return nb.fail(err)
	}
	if !nb.left {
		nb.left, nb.leftAt = true, r.ran.total
	}
	*way = true
	return nil
}

// poll takes in what has come, from every neighbour, and tells whether there was
// something.
func (r *Runner) poll() (heard bool, err error) {
	r.pump()
	for _, nb := range r.neighbours {
		for t := range nb.slots {
			if nb.haloIn[t] {
				continue
			}
			fresh, err := r.pollFace(nb, &nb.slots[t], &nb.haloIn[t])
			if err != nil {
				return heard, err
			}
			heard = heard || fresh
		}
		for fresh := true; fresh && !nb.agreeIn; {
			if fresh, err = r.pollAgreement(nb); err != nil {
				return heard, err
			}
			heard = heard || fresh
		}
	}
	return heard, nil
}

func (r *Runner) pollFace(nb *neighbour, slot *p2psap.Slot, closed *bool) (bool, error) {
	a, fresh, err := nb.halo.Poll(slot)
	if err != nil {
		return false, r.closed(nb, closed, err)
	}
	if !fresh || !a.Complete {
		return false, nil
	}
	if err := r.worker.Halo(r.now(), nb.Rank, uint32(slot.Tag), a.Label, slot.Data[:a.Length]); err != nil {
		return true, nb.fail(err)
	}
	return true, nil
}

func (r *Runner) pollAgreement(nb *neighbour) (bool, error) {
	a, fresh, err := nb.agree.Poll(&nb.letter)
	if err != nil {
		return false, r.closed(nb, &nb.agreeIn, err)
	}
	if !fresh {
		return false, nil
	}
	if err := r.worker.Agree(r.now(), nb.Rank, nb.letter.Data[:a.Length]); err != nil {
		return true, nb.fail(err)
	}
	return true, nil
}

// sendFace packs a face and sends it. A synchronous face waits for its buffer and
// for the receiver's grant, while everything that comes is taken in; an
// asynchronous one that finds no room is dropped: a newer one follows.
func (r *Runner) sendFace(op iterate.Op) error {
	nb := r.byRank[op.To]
	i := (nb.newest + 1) % outBuffers
	o := &nb.out[i]
	if o.transfer != 0 && !nb.async && !nb.haloOut {
		if err := r.until(func() (bool, error) { return r.accepted(nb, o) }); err != nil {
			return err
		}
	}
	o.data = o.room[:op.Bytes]
	r.worker.Pack(op, o.data)
	o.tag, o.label = p2psap.Tag(op.Tag), p2psap.Label(op.Label)
	nb.newest = i
	return r.push(nb, o)
}

// accepted tells whether a face's buffer is free again. Wait with a context that
// has ended asks and does not block.
func (r *Runner) accepted(nb *neighbour, o *outgoing) (bool, error) {
	ready, err := nb.halo.Wait(r.gone, o.transfer)
	switch {
	case err == nil:
		return ready.Accepted || nb.haloOut, nil
	case errors.Is(err, context.Canceled):
		return nb.haloOut, nil
	}
	return true, r.closed(nb, &nb.haloOut, err)
}

// push sends a packed face.
func (r *Runner) push(nb *neighbour, o *outgoing) error {
	nb.sentAt = r.now()
	return r.transmit(nb, nb.halo, &nb.haloOut, !nb.async, o.tag, o.label, o.data, &o.transfer)
}

// sendAgreement sends a message of the worker's; its slice belongs to the session
// now.
func (r *Runner) sendAgreement(op iterate.Op) error {
	nb := r.byRank[op.To]
	var t p2psap.Transfer
	return r.transmit(nb, nb.agree, &nb.agreeOut, true, 0, p2psap.Label(op.Label), op.Message, &t)
}
