package p2psap

import (
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
)

// Small messages of a session whose earlier ones are not accepted yet may wait and go as one message
// (compare Nagle, RFC 896). The caller decides, since it alone knows whether more messages will
// follow, and ends the wait with Flush.

// coalesceBytes is the length of the longest message that waits.
const coalesceBytes = 512

// SendCoalescing is Send for a message that may wait until Flush. waits reports whether it does, or
// others that were sent before.
func (n *Node) SendCoalescing(
	now microproto.Instant, id SessionID, tag Tag, label Label, data []byte,
) (t Transfer, waits bool, err error) {
	return n.startTransfer(now, id, tag, label, data, true)
}

// Flush sends the messages that wait, in every session. False: there was no room for some of them,
// and Flush has to be called again.
func (n *Node) Flush(now microproto.Instant) bool {
	left := n.coalescing[:0]
	for _, id := range n.coalescing {
		if s := n.session(id); s != nil && !n.flush(now, s) {
			left = append(left, id)
		}
	}
	n.coalescing = left
	return len(left) == 0
}

// flush sends the messages that wait in one session; false: there was no room.
func (n *Node) flush(now microproto.Instant, s *session) bool {
	if !s.coalescing {
		return true
	}
	s.coalescing = false
	for _, c := range [...]*channel{s.previous, s.channel} {
		if c == nil || c.coalescer == nil || s.channel == nil {
			continue
		}
		var failed error
		err := c.composite.Do(now, func(x *microproto.Exec) { failed = c.coalescer.Flush(x) })
		s.coalescing = s.coalescing || err == nil && errors.Is(failed, ErrBusy)
		n.collect(now, s, c, err, -1)
	}
	n.schedule(s)
	return !s.coalescing
}
