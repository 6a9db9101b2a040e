// Package virtual runs one peer in virtual time: the peer's operations go to the sessions of
// its p2psap.Node, and a World supplies time, networks and the cost of the work.
package virtual

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Phase is where a host stands, in the order in which it goes through them.
type Phase int

// The phases of a host.
const (
	New Phase = iota
	Connecting
	Opening
	Running
	Closing // has its verdict; the last transfers are being accepted
	Closed
)

// Host is one peer's shell in virtual time, what solver/runner and p2psap/driver are in
// real time: it does what the peer asks for, over the node's sessions.
type Host struct {
	Rank  iterate.Rank
	Node  *p2psap.Node
	Peer  problem.Peer
	Phase Phase
	Began microproto.Instant // when the sessions were open

	world      World
	config     Config
	neighbours []*neighbour
	byRank     map[iterate.Rank]*neighbour
	places     []place            // by place of a session in the node
	busy       microproto.Instant // relaxing or sending until then
	relaxing   bool
	job        job // that it is at, or waits with
	late       []job
	waiting    bool // for an arrival, or until due
	news       bool // some neighbour's
	departing  bool // some neighbour has closed a session
	left       int  // points of the sweep in progress
	armed, due microproto.Instant
	out        []p2psap.Output
}

// Config says what a host runs.
type Config struct {
	Rank iterate.Rank
	Node *p2psap.Node
	Peer problem.Peer
	// Rails is the number of the node's rails.
	Rails int
	// NoOverlap sends the faces of a sweep only after the whole block has been relaxed.
	NoOverlap bool
	// Memory supplies the buffers of the faces that are sent; nil: the heap.
	Memory Memory
	// Copies says that the peer copies every face in Halo, so one buffer receives all of them.
	Copies bool
	// Scale is the number of points that each point of the peer's box counts for; 0: 1.
	Scale int
}

// Memory supplies the buffers of the faces that a host sends. Buffers are numbered from 0.
type Memory interface {
	// Take returns n bytes for buffer number.
	Take(number, n int) []byte
	// Give takes the bytes of buffer number back.
	Give(number int, b []byte)
}

// heap is the Memory of a host that is given none.
type heap struct{}

func (heap) Take(_, n int) []byte { return make([]byte, n) }
func (heap) Give(int, []byte)     {}

// NewHost returns the shell of a peer.
func NewHost(w World, c Config) *Host {
	if c.Memory == nil {
		c.Memory = heap{}
	}
	c.Scale = max(c.Scale, 1)
	h := &Host{
		Rank: c.Rank, Node: c.Node, Peer: c.Peer, world: w, config: c,
		byRank: map[iterate.Rank]*neighbour{}, armed: microproto.Never, due: microproto.Never,
	}
	for _, l := range c.Peer.Links() {
		nb := newNeighbour(l, c.Copies)
		for i := range nb.buffers {
			nb.buffers[i].number = len(nb.buffers)*len(h.neighbours) + i
		}
		h.neighbours = append(h.neighbours, nb)
		h.byRank[l.Rank] = nb
	}
	return h
}

// Start connects to the neighbours.
func (h *Host) Start() {
	h.Phase = Connecting
	for _, nb := range h.neighbours {
		h.fail(h.Node.Connect(h.world.Now(), nb.name, nb.name))
	}
	h.Settle()
	h.proceed()
}

// Busy is when the relaxing thread is free again.
func (h *Host) Busy() microproto.Instant { return h.busy }

// SetBusy keeps the relaxing thread busy until then; earlier than Busy it does nothing.
func (h *Host) SetBusy(until microproto.Instant) { h.busy = max(h.busy, until) }

// Relaxing tells whether the relaxing thread is at work on a part.
func (h *Host) Relaxing() bool { return h.relaxing }

// Touch tells that something outside the node may let the peer go on.
func (h *Host) Touch() { h.touched() }

// Turn is called at the instants that World.Wake was asked for.
func (h *Host) Turn() {
	h.departed()
	if h.due == h.world.Now() {
		h.due = microproto.Never
		h.proceed()
		h.Settle()
	}
}

// Due is called at the instants that World.Alarm was asked for.
func (h *Host) Due() {
	now := h.world.Now()
	if h.armed != now {
		return
	}
	h.armed = microproto.Never
	h.Node.Advance(now)
	h.Settle()
}

// touched: something has happened on the node.
func (h *Host) touched() {
	switch h.Phase {
	case Connecting, Opening, Closing:
		h.wake(h.world.Now())
	case Running:
		if h.waiting || h.job.kind != jobNone {
			h.wake(h.world.Now())
		}
	}
}

// wake plans the peer's next turn; only the earliest counts.
func (h *Host) wake(at microproto.Instant) {
	at = max(at, h.busy, h.world.Now())
	if at >= h.due && h.due >= h.world.Now() {
		return
	}
	h.due = at
	h.world.Wake(h, at)
}

// proceed goes on from wherever the peer stands.
func (h *Host) proceed() {
	switch h.Phase {
	case Connecting:
		h.connecting()
	case Opening:
		h.opening()
	case Running:
		h.running()
	case Closing:
		h.closing()
	}
}

func (h *Host) connecting() {
	for _, nb := range h.neighbours {
		if state, _ := h.Node.Peer(nb.name); state != p2psap.PeerUp {
			return
		}
	}
	for _, nb := range h.neighbours {
		h.open(nb)
	}
	h.Phase = Opening
	h.Settle()
	h.opening()
}

func (h *Host) opening() {
	for _, nb := range h.neighbours {
		for _, id := range nb.sessions() {
			switch state, err := h.Node.State(id); state {
			case p2psap.SessionOpen, p2psap.SessionRemoteClosed:
			case p2psap.SessionEnded:
				h.fail(err)
				return
			default:
				return
			}
		}
	}
	h.Phase, h.Began, h.left = Running, h.world.Now(), 0
	h.world.Opened(h)
	for _, nb := range h.neighbours {
		h.await(nb, 0)
	}
	h.running()
}

func (h *Host) open(nb *neighbour) {
	now := h.world.Now()
	halo := p2psap.OpenOptions{Name: sessionName("halo", h.Rank, nb.Rank), Mode: microproto.ModeSynchronous}
	if nb.async {
		halo.Mode = microproto.ModeAsynchronous
	}
	for _, s := range nb.slots {
		halo.Slots = append(halo.Slots, p2psap.SlotSpec{Tag: s.Tag, Length: nb.Slots[s.Tag]})
	}
	agree := p2psap.OpenOptions{
		Name: sessionName("agree", h.Rank, nb.Rank), Mode: microproto.ModeSynchronous,
		Slots: []p2psap.SlotSpec{{Length: len(nb.letter.Data)}},
	}
	var err, err2 error
	if nb.hasHalo() {
		nb.halo, err = h.Node.Open(now, nb.name, halo)
		h.place(nb, nb.halo, true)
	}
	if nb.Agreement > 0 {
		nb.agree, err2 = h.Node.Open(now, nb.name, agree)
		h.place(nb, nb.agree, false)
	}
	h.fail(errors.Join(err, err2))
}

// place tells whose a session is.
type place struct {
	nb   *neighbour // nil: nobody's
	halo bool
}

func (h *Host) place(nb *neighbour, id p2psap.SessionID, halo bool) {
	i := int(id & 0xffff)
	for i >= len(h.places) {
		h.places = append(h.places, place{})
	}
	h.places[i] = place{nb, halo}
}

// finish closes the sessions; what has been sent is still accepted.
func (h *Host) finish() {
	h.Phase = Closing
	h.world.Finished(h)
	for _, nb := range h.neighbours {
		for _, id := range nb.sessions() {
			h.Node.Close(h.world.Now(), id)
		}
	}
	h.Settle()
	h.closing()
}

func (h *Host) closing() {
	for _, nb := range h.neighbours {
		for _, id := range nb.sessions() {
			if state, _ := h.Node.State(id); state != p2psap.SessionEnded {
				return
			}
		}
	}
	h.Phase = Closed
}

func (h *Host) fail(err error) {
	if err != nil {
		h.world.Fail(h, err)
	}
}

func (h *Host) blame(nb *neighbour, err error) {
	if err != nil {
		h.fail(fmt.Errorf("neighbour %d: %w", nb.Rank, err))
	}
}

// Settle carries out what the node wants, and plans when to look at it next.
func (h *Host) Settle() {
	for again := true; again; {
		again = false
		for r := range h.config.Rails {
			frames, taken := h.Node.Frames(r), 0
			for taken < len(frames) && h.world.Carry(h, r, frames[taken]) {
				taken++
			}
			h.Node.Sent(r, taken)
		}
		h.out = h.Node.Drain(h.out[:0])
		for i := range h.out {
			h.carryOut(&h.out[i])
			again = true
		}
		clear(h.out)
	}
	if d := max(h.Node.Deadline(), h.world.Now()); d < h.armed {
		h.armed = d
		h.world.Alarm(h, d)
	}
}

// carryOut does what the node orders.
func (h *Host) carryOut(o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutControl, p2psap.OutDial, p2psap.OutDisconnect:
		h.world.Control(h, o)
	case p2psap.OutPeerRefused, p2psap.OutPeerLost:
		if h.Phase != Closed {
			h.fail(o.Err)
		}
	case p2psap.OutActivity:
		if i := int(o.Session & 0xffff); i < len(h.places) && h.places[i].nb != nil {
			p := &h.places[i]
			p.nb.haloNews, p.nb.agreeNews, h.news = p.nb.haloNews || p.halo, p.nb.agreeNews || !p.halo, true
		}
		h.touched()
	case p2psap.OutPeerUp, p2psap.OutOpened, p2psap.OutEnded, p2psap.OutAdapted, p2psap.OutPeerClosed:
		for _, nb := range h.neighbours {
			nb.haloNews, nb.agreeNews, h.news = nb.hasHalo(), nb.Agreement > 0, true
		}
		if o.Kind != p2psap.OutAdapted && o.Kind != p2psap.OutPeerClosed {
			h.touched()
		}
	}
}
