package p2psap

import (
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
)

// Small messages of a session whose earlier ones are not accepted yet may wait for
// company, so that they go together (compare Nagle, RFC 896). It is for the shell to say
// that they may, since it alone knows whether more is to be expected, and to end the
// waiting with Flush.

// gatherBytes is the most bytes of a message that waits.
const gatherBytes = 512

// SendCoalescing is Send of a message that may wait until Flush. waits tells that it does, or
// that others do that were sent before.
func (n *Node) SendCoalescing(now microproto.Instant, id SessionID, tag Tag, label Label, data []byte) (t Transfer, waits bool, err error) {
	return n.send(now, id, tag, label, data, true)
}

// Flush sends what waits for company, in every session. False: there was no room for
// some of it; it is to be called again.
func (n *Node) Flush(now microproto.Instant) bool {
	left := n.gathers[:0]
	for _, id := range n.gathers {
		if s := n.session(id); s != nil && !n.flush(now, s) {
			left = append(left, id)
		}
	}
	n.gathers = left
	return len(left) == 0
}

// flush sends what waits in one session; false: there was no room now.
func (n *Node) flush(now microproto.Instant, s *session) bool {
	if !s.gathers {
		return true
	}
	s.gathers = false
	for _, c := range [...]*channel{s.former, s.channel} {
		if c == nil || c.gatherer == nil || s.channel == nil {
			continue
		}
		n.call = call{gatherer: c.gatherer}
		err := c.composite.Do(now, n.doing.flush)
		s.gathers = s.gathers || err == nil && errors.Is(n.call.err, microproto.ErrBusy)
		n.call = call{}
		n.settle(now, s, c, err, -1)
	}
	n.plan(s)
	return !s.gathers
}
