package driver

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Small messages of a session whose earlier ones are not accepted yet gather, so that
// many go in one call (compare Nagle, RFC 896): until there are as many as the link
// likes, the acknowledgement of an earlier one comes, or anything else is done with the
// node. None waits longer than grace.

// smallMessage is the most bytes of a message that waits for company.
const smallMessage = 512

// gather tells the coming flush to wait, if it may, after a Send. The lock is held.
func (n *Node) gather(s *Socket, t p2psap.Transfer, data []byte) {
	if len(data) > smallMessage || t <= 1 || len(n.core.Frames()) >= n.batch || n.core.Accepted(s.id)+1 >= t ||
		n.core.Mode(s.id) != microproto.ModeSynchronous {
		return
	}
	n.gathering = true
	if n.flushBy == microproto.Never {
		n.flushBy = n.now().Add(grace)
	}
}
