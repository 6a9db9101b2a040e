package driver

import "github.com/p2pdc/p2pdc/microproto"

// coalesce makes the next flush wait if a Send left messages in the coalescing buffer: until their frames
// fill a batch, an earlier message is acknowledged, or anything else is done with the node, and for
// pollGrace at most. See p2psap.Node.SendCoalescing. The lock is held.
func (n *Node) coalesce(now microproto.Instant, waits bool) {
	if waits && n.flushBy == microproto.Never {
		n.flushBy = now.Add(pollGrace)
	}
	n.holdFlush = waits && len(n.core.Frames(0)) < n.batch
}
