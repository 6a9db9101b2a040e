package driver

import "github.com/p2pdc/p2pdc/microproto"

// Small messages of a session whose earlier ones are not accepted yet gather (see
// p2psap.Node.SendCoalescing) until their frames are worth a call, the acknowledgement of an
// earlier one comes, or anything else is done with the node. None waits longer than
// grace.

// gather tells the coming flush to wait, if a Send has left messages waiting. The lock
// is held.
func (n *Node) gather(now microproto.Instant, waits bool) {
	if waits && n.flushBy == microproto.Never {
		n.flushBy = now.Add(grace)
	}
	n.gathering = waits && len(n.core.Frames(0)) < n.batch
}
