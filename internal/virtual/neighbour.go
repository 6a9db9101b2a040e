package virtual

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// neighbour is the traffic with one neighbour.
type neighbour struct {
	iterate.Link
	name        string
	halo, agree p2psap.SessionID
	loose       bool   // the scheme wants the halo session asynchronous
	async       bool   // it is, at present
	asked       uint64 // number of the change that it was last asked for
	haloNews    bool   // the session was touched since it was last looked at, or has more
	agreeNews   bool
	slots       []p2psap.Slot
	shared      bool // all slots are one memory: the peer copies what it is given
	letter      p2psap.Slot
	buffers     [2]outgoing
	newest      int
	heard       uint64             // newest label of a face
	left        microproto.Instant // when it was seen to have closed a session; 0: it has not

	// What the other end has closed, as sends found out, and as receives did: what it
	// sent before can still be read, tag by tag.
	haloClosed, agreeClosed bool
	haloRead                []bool // by tag: nothing more will come
	agreeRead               bool
}

// outgoing is a face on its way; its memory is the session's until accepted.
type outgoing struct {
	number   int    // among those of the host
	data     []byte // nil: none
	held     bool   // it is still to be sent
	transfer p2psap.Transfer
}

// NameOf is the name of a rank's node.
func NameOf(r iterate.Rank) string { return "peer" + strconv.Itoa(int(r)) }

// sessionName is the same at both ends.
func sessionName(kind string, a, b iterate.Rank) string {
	return kind + "/" + strconv.Itoa(int(min(a, b))) + "-" + strconv.Itoa(int(max(a, b)))
}

// newNeighbour makes the traffic over a link. copies tells that the peer copies the faces that
// it is given. What comes asynchronously comes in pieces, each to its place in its slot.
func newNeighbour(l iterate.Link, copies bool) *neighbour {
	nb := &neighbour{Link: l, name: NameOf(l.Rank), loose: l.Asynchronous, async: l.Asynchronous}
	nb.shared = copies && !l.Asynchronous
	var one []byte
	if nb.shared && len(l.Slots) > 0 {
		one = make([]byte, slices.Max(l.Slots))
	}
	for t, n := range l.Slots {
		nb.haloRead = append(nb.haloRead, false)
		s := p2psap.Slot{Tag: p2psap.Tag(t), Data: one}
		if !nb.shared {
			s.Data = make([]byte, n)
		}
		nb.slots = append(nb.slots, s)
	}
	nb.letter.Data = make([]byte, l.Agreement)
	nb.agreeClosed, nb.agreeRead = l.Agreement == 0, l.Agreement == 0
	nb.haloClosed = !nb.hasHalo()
	return nb
}

// hasHalo tells whether the link has a halo session.
func (nb *neighbour) hasHalo() bool { return len(nb.Slots)+len(nb.Sent) > 0 }

// read tells that nothing more will come under a tag.
func (nb *neighbour) read(tag uint32) bool { return int(tag) < len(nb.haloRead) && nb.haloRead[tag] }

// sessions are those that the link has.
func (nb *neighbour) sessions() []p2psap.SessionID {
	var out []p2psap.SessionID
	if nb.hasHalo() {
		out = append(out, nb.halo)
	}
	if nb.Agreement > 0 {
		out = append(out, nb.agree)
	}
	return out
}

// Sessions calls f with the sessions of every neighbour, and whether each carries halos.
func (h *Host) Sessions(f func(id p2psap.SessionID, halo bool)) {
	for _, nb := range h.neighbours {
		if nb.hasHalo() {
			f(nb.halo, true)
		}
		if nb.Agreement > 0 {
			f(nb.agree, false)
		}
	}
}

// VerdictTime bounds the wait for a verdict after a neighbour has closed its sessions, which it
// does when it knows the verdict or has failed. Sweeps may take minutes.
const VerdictTime = time.Hour

// Newest calls f with the newest label of the faces of every neighbour that sends any.
func (h *Host) Newest(f func(label uint64)) {
	for _, nb := range h.neighbours {
		if len(nb.Slots) > 0 {
			f(nb.heard)
		}
	}
}

// departed fails a peer that has waited for a verdict for too long.
func (h *Host) departed() {
	if !h.departing || h.Phase != Running {
		return
	}
	for _, nb := range h.neighbours {
		if nb.left > 0 && h.world.Now() >= nb.left.Add(VerdictTime) {
			h.blame(nb, fmt.Errorf("no verdict %v after it had left: %w", VerdictTime, p2psap.ErrPeerClosed))
		}
	}
}

// poll takes in what has come, and tells whether there was anything.
func (h *Host) poll(waits bool) (news bool) {
	if !h.news {
		return false
	}
	h.news = false
	for _, nb := range h.neighbours {
		if nb.haloNews {
			nb.haloNews = false
			news = h.pollFaces(nb, waits) || news
		}
		if nb.agreeNews {
			nb.agreeNews = false
			news = h.pollLetters(nb, waits) || news
		}
		h.news = h.news || nb.haloNews || nb.agreeNews
	}
	return news
}

// pollFaces takes at most one message of each tag.
func (h *Host) pollFaces(nb *neighbour, waits bool) (news bool) {
	for t := range nb.slots {
		if nb.haloRead[t] {
			continue
		}
		a, fresh := h.receive(nb, nb.halo, &nb.slots[t], &nb.haloRead[t])
		if !fresh || !a.Complete {
			continue
		}
		news = true
		nb.heard = max(nb.heard, a.Label)
		h.busy = max(h.busy, h.world.Now()).Add(h.world.Receives(h, a.Label, waits))
		h.blame(nb, h.Peer.Halo(h.since(), nb.Rank, uint32(t), a.Label, nb.slots[t].Data[:a.Length]))
		h.await(nb, t+1)
	}
	nb.haloNews = news && h.Node.Unread(nb.halo) > 0
	return news
}

// await offers the memory that slots share to the next face of a tag, which is then copied once
// on its way, and not twice. Faces come under one tag after the other.
func (h *Host) await(nb *neighbour, tag int) {
	if nb.shared && len(nb.slots) > 0 {
		h.Node.Post(nb.halo, &nb.slots[tag%len(nb.slots)])
	}
}

func (h *Host) pollLetters(nb *neighbour, waits bool) (news bool) {
	for !nb.agreeRead {
		a, fresh := h.receive(nb, nb.agree, &nb.letter, &nb.agreeRead)
		if !fresh {
			break
		}
		news = true
		h.busy = max(h.busy, h.world.Now()).Add(h.world.Receives(h, 0, waits))
		h.blame(nb, h.Peer.Agree(h.since(), nb.Rank, nb.letter.Data[:a.Length]))
	}
	return news
}

func (h *Host) receive(nb *neighbour, id p2psap.SessionID, slot *p2psap.Slot, closed *bool) (p2psap.Arrival, bool) {
	a, err := h.Node.Receive(h.world.Now(), id, slot)
	switch {
	case err == nil:
		return a, a.Fresh
	case err == microproto.ErrNothing:
	case errors.Is(err, p2psap.ErrPeerClosed):
		*closed = true
		if nb.left == 0 {
			nb.left, h.departing = h.world.Now(), true
			h.world.Wake(h, nb.left.Add(VerdictTime))
		}
	case !errors.Is(err, microproto.ErrNothing):
		h.blame(nb, err)
	}
	return a, false
}
