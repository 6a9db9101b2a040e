package p2psap

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Comparison is what was measured of a rail beside the base rail; see path.Compare.
type Comparison = path.Comparison

// Compare returns the comparison of one way times of messages of a length; see path.Compare.
func Compare(bytes int, base, rail []time.Duration) Comparison {
	return path.Compare(bytes, base, rail)
}

// ToCompare returns the network of a rail with Rail.Compare that waits to be compared with the base rail, for the
// synchronous sessions with a peer of the same cluster; 0: there is none. Both ends open a session over each of the two
// rails (OpenOptions.Network) and pass messages to and fro; both then call Compared with the same result.
func (n *Node) ToCompare(peer string) Network {
	p := n.peer(peer)
	if p == nil || p.State != control.Up || !p.finding.Locality.Intra() || p.paths.Base.Down() {
		return 0
	}
	for _, w := range p.paths.List {
		switch {
		case !w.Up() || !w.Rail.Carries(microproto.ModeSynchronous):
		case w.Chosen():
			return 0 // better than the rails behind it
		case w.Found == "" && w.Rail.Compare:
			return w.Network()
		}
	}
	return 0
}

// BaseNetwork returns the network of the base rail.
func (n *Node) BaseNetwork() Network { return n.rails[0].Network }

// Compared takes the result of the comparison that ToCompare asked for. If the rail is faster, the end with the higher
// name moves the sessions with the peer to it, and sessions opened later begin on it.
func (n *Node) Compared(now microproto.Instant, peer string, network Network, c Comparison) {
	p := n.peer(peer)
	if p == nil {
		return
	}
	if w := p.paths.Find(network); w != nil && w.Rail.Compare {
		w.Found, w.Faster = c.Describe(n.rails[0].Network, network), c.Faster
		n.reschedule = true
		n.reroutePeer(now, p)
	}
}

// pathFor returns the path for a session with the peer; nil: the base rail. steady is that of rail.Paths.Best.
func (p *peer) pathFor(o *OpenOptions, m microproto.Mode, steady bool) *rail.Path {
	if o.Network == 0 {
		return p.paths.Best(m, steady)
	}
	if w := p.paths.Find(o.Network); w != nil && w.Up() && w.Rail.Carries(m) {
		return w
	}
	return nil
}
