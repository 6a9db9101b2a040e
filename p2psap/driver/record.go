package driver

import (
	"time"

	"github.com/p2pdc/p2pdc/trace"
)

// Record adds a record of the caller to Config.Trace, such as the begin of a relaxation; see p2psap.Node.Record.
func (n *Node) Record(k trace.Kind, number uint64, bytes int) {
	if n.config.Trace == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.Record(n.now(), k, number, bytes)
}

// Snapshot returns a copy of what Config.Trace holds, also after Close; nil: there is no ring.
func (n *Node) Snapshot() *trace.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.core.Snapshot(n.now())
	if out != nil {
		out.Began, out.Wall = n.start.UnixNano(), time.Now().UnixNano()
	}
	return out
}
