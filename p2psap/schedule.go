package p2psap

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/deadlines"
	"github.com/p2pdc/p2pdc/microproto"
)

// timers holds the deadlines of the sessions, so that a call for one session of a thousand does not visit the others.
// Sessions are named by their index in Node.sessions.
type timers struct {
	deadlines.Heap
	due []int32 // result of popDue
}

// popDue removes the sessions whose deadlines have come and returns them in ascending order. The
// slice is valid until the next call.
func (t *timers) popDue(now microproto.Instant) []int32 {
	t.due = t.due[:0]
	for first := t.First(); first <= now && first != microproto.Never; first = t.First() {
		t.due = append(t.due, t.Take())
	}
	slices.Sort(t.due)
	return t.due
}

// schedule updates the deadline of a session after something was done with it.
func (n *Node) schedule(s *session) { n.timers.Set(int32(s.index()), s.deadline()) }

// rescheduleAll updates the deadlines of all sessions and peers, after something that may concern
// any of them: a control message, or a call other than Send and Receive.
func (n *Node) rescheduleAll() {
	n.reschedule = false
	n.peersDue = n.associations.Deadline()
	for i, s := range n.sessions {
		if s != nil {
			n.schedule(s)
		} else {
			n.timers.Set(int32(i), microproto.Never)
		}
	}
}
