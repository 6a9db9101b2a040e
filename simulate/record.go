package simulate

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// maxTraces bounds Result.Traces: a run may have many epochs.
const maxTraces = 1 << 12

// newRing returns the ring of another node; nil: nothing is recorded.
func (c *Config) newRing() *trace.Ring {
	if c.Trace == nil {
		return nil
	}
	return trace.NewRing(*c.Trace)
}

// traces returns what the nodes of the engine have recorded, after the traces of earlier epochs.
func (e *engine) traces(earlier []*trace.Node) []*trace.Node {
	out := earlier
	for _, m := range e.hosts {
		if n := m.host.Node.Snapshot(m.now); n != nil {
			n.Virtual, n.Run = true, fmt.Sprintf("virtual epoch %d", e.run.resumed.epoch)
			if e.began != microproto.Never {
				n.Began = int64(e.origin) - int64(e.began)
			}
			out = append(out, n)
		}
	}
	return out[max(0, len(out)-maxTraces):]
}
