package p2psap

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// timerHeap is a binary heap of sessions by deadline, so that a call for one session of a thousand
// does not visit the others. Sessions are named by their index in Node.sessions.
type timerHeap struct {
	heap     []int32
	position []int32              // by session: index in heap + 1; 0: no deadline
	deadline []microproto.Instant // by session
	due      []int32              // result of popDue
}

// set sets the deadline of a session; microproto.Never: none.
func (a *timerHeap) set(session int, deadline microproto.Instant) {
	for session >= len(a.position) {
		a.position, a.deadline = append(a.position, 0), append(a.deadline, microproto.Never)
	}
	if a.deadline[session] == deadline {
		return
	}
	a.deadline[session] = deadline
	i := int(a.position[session]) - 1
	switch {
	case deadline == microproto.Never:
		a.remove(i)
	case i < 0:
		a.heap = append(a.heap, int32(session))
		a.position[session] = int32(len(a.heap))
		a.up(len(a.heap) - 1)
	default:
		a.up(a.down(i))
	}
}

func (a *timerHeap) first() microproto.Instant {
	if len(a.heap) == 0 {
		return microproto.Never
	}
	return a.deadline[a.heap[0]]
}

// popDue removes the sessions whose deadlines have come and returns them in ascending order. The
// slice is valid until the next call.
func (a *timerHeap) popDue(now microproto.Instant) []int32 {
	a.due = a.due[:0]
	for a.first() <= now && len(a.heap) > 0 {
		session := a.heap[0]
		a.due = append(a.due, session)
		a.deadline[session] = microproto.Never
		a.remove(0)
	}
	slices.Sort(a.due)
	return a.due
}

func (a *timerHeap) remove(i int) {
	last := len(a.heap) - 1
	a.position[a.heap[i]] = 0
	if i < last {
		a.heap[i] = a.heap[last]
		a.position[a.heap[i]] = int32(i + 1)
	}
	a.heap = a.heap[:last]
	if i < last {
		a.up(a.down(i))
	}
}

func (a *timerHeap) swap(i, j int) {
	a.heap[i], a.heap[j] = a.heap[j], a.heap[i]
	a.position[a.heap[i]], a.position[a.heap[j]] = int32(i+1), int32(j+1)
}

func (a *timerHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if a.deadline[a.heap[parent]] <= a.deadline[a.heap[i]] {
			return
		}
		a.swap(i, parent)
		i = parent
	}
}

// down moves the entry at i towards the leaves and returns its new index.
func (a *timerHeap) down(i int) int {
	for {
		child := 2*i + 1
		if child+1 < len(a.heap) && a.deadline[a.heap[child+1]] < a.deadline[a.heap[child]] {
			child++
		}
		if child >= len(a.heap) || a.deadline[a.heap[i]] <= a.deadline[a.heap[child]] {
			return i
		}
		a.swap(i, child)
		i = child
	}
}

// schedule updates the deadline of a session after something was done with it.
func (n *Node) schedule(s *session) { n.timers.set(s.index(), s.deadline()) }

// rescheduleAll updates the deadlines of all sessions and peers, after something that may concern
// any of them: a control message, or a call other than Send and Receive.
func (n *Node) rescheduleAll() {
	n.reschedule = false
	n.peersDue = n.associations.Deadline()
	for i, s := range n.sessions {
		if s != nil {
			n.schedule(s)
		} else {
			n.timers.set(i, microproto.Never)
		}
	}
}
