package p2psap

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// agenda is a binary heap of sessions by the time at which they have something to do,
// so that a call for one of a thousand costs no walk over all of them. Sessions are
// named by their places in Node.sessions.
type agenda struct {
	heap []int32
	at   []int32              // by place: index in the heap + 1; 0: has nothing to do
	when []microproto.Instant // by place
	turn []int32              // of take
}

// set says when the session at a place has something to do; microproto.Never: not at all.
func (a *agenda) set(place int, when microproto.Instant) {
	for place >= len(a.at) {
		a.at, a.when = append(a.at, 0), append(a.when, microproto.Never)
	}
	if a.when[place] == when {
		return
	}
	a.when[place] = when
	i := int(a.at[place]) - 1
	switch {
	case when == microproto.Never:
		a.remove(i)
	case i < 0:
		a.heap = append(a.heap, int32(place))
		a.at[place] = int32(len(a.heap))
		a.up(len(a.heap) - 1)
	default:
		a.up(a.down(i))
	}
}

// first is when the first of all has something to do.
func (a *agenda) first() microproto.Instant {
	if len(a.heap) == 0 {
		return microproto.Never
	}
	return a.when[a.heap[0]]
}

// take removes those that are due at now and lists their places in ascending order. The
// list is valid until the next call.
func (a *agenda) take(now microproto.Instant) []int32 {
	a.turn = a.turn[:0]
	for a.first() <= now && len(a.heap) > 0 {
		place := a.heap[0]
		a.turn = append(a.turn, place)
		a.when[place] = microproto.Never
		a.remove(0)
	}
	slices.Sort(a.turn)
	return a.turn
}

func (a *agenda) remove(i int) {
	last := len(a.heap) - 1
	a.at[a.heap[i]] = 0
	if i < last {
		a.heap[i] = a.heap[last]
		a.at[a.heap[i]] = int32(i + 1)
	}
	a.heap = a.heap[:last]
	if i < last {
		a.up(a.down(i))
	}
}

func (a *agenda) swap(i, j int) {
	a.heap[i], a.heap[j] = a.heap[j], a.heap[i]
	a.at[a.heap[i]], a.at[a.heap[j]] = int32(i+1), int32(j+1)
}

func (a *agenda) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if a.when[a.heap[parent]] <= a.when[a.heap[i]] {
			return
		}
		a.swap(i, parent)
		i = parent
	}
}

// down returns where the entry has come to rest.
func (a *agenda) down(i int) int {
	for {
		child := 2*i + 1
		if child+1 < len(a.heap) && a.when[a.heap[child+1]] < a.when[a.heap[child]] {
			child++
		}
		if child >= len(a.heap) || a.when[a.heap[i]] <= a.when[a.heap[child]] {
			return i
		}
		a.swap(i, child)
		i = child
	}
}

// plan notes when a session has something to do, after anything was done with it.
func (n *Node) plan(s *session) { n.agenda.set(int(s.id&0xffff), s.deadline()) }

// replan does so for all sessions and peers, after something happened that may concern
// any of them: what comes over the control channel, and what the user asks for but to
// send and to receive.
func (n *Node) replan() {
	n.replans = false
	n.peersDue = microproto.Never
	for _, c := range n.conns {
		if c.peer == nil {
			n.peersDue = min(n.peersDue, c.until)
		}
	}
	for _, p := range n.peers {
		n.peersDue = min(n.peersDue, n.peerDeadline(p))
	}
	for i, s := range n.sessions {
		if s != nil {
			n.plan(s)
		} else {
			n.agenda.set(i, microproto.Never)
		}
	}
}
