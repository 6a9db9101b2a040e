package p2psap

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Rail is a link that a node has beside its base link, for those peers that have one of
// the same network.
type Rail struct {
	Network Network
	Link    LinkContext
}

// rail is one of a node's links. Number 0 is the base link, which every peer is reached
// by and which does not go down; the others are NodeConfig.Rails, in their order.
type rail struct {
	number  int
	network Network
	link    LinkContext
	queue   frameQueue
	err     error // why it is down; nil: it is up
}

// checkRails refuses rails that cannot be told apart.
func checkRails(c *NodeConfig) error {
	if len(c.Rails) > maxRails {
		return fmt.Errorf("p2psap: node %q has %d rails; %d may be given", c.Name, len(c.Rails), maxRails)
	}
	for i, r := range c.Rails {
		if r.Link == nil || !r.Network.valid() {
			return fmt.Errorf("p2psap: rail %d of node %q needs a link and a network", i+1, c.Name)
		}
		for _, q := range append(c.Rails[:i:i], Rail{Network: c.Network}) {
			if q.Network == r.Network {
				return fmt.Errorf("p2psap: node %q has two links for network %v; one can be told from another by its network only", c.Name, r.Network)
			}
		}
	}
	return nil
}

func (n *Node) addRails() {
	n.rails = []*rail{{network: n.config.Network, link: n.config.Link}}
	for i, r := range n.config.Rails {
		n.rails = append(n.rails, &rail{number: i + 1, network: r.Network, link: r.Link})
	}
}

func (n *Node) base() *rail { return n.rails[0] }

// networks are those of the rails, as a hello lists them.
func (n *Node) networks() (out []Network) {
	for _, r := range n.rails[1:] {
		out = append(out, r.network)
	}
	return out
}

// Frames are those that wait for the base link, oldest first. The slice is the node's:
// the shell gives a prefix to the link, which takes the frames it accepts, and
// tells how many with Sent. It does so before Drain: what has not been sent then is
// copied out of the memory of users, see microproto.Frame.Body.
func (n *Node) Frames() []microproto.Frame { return n.rails[0].queue.frames }

// Sent removes the first k frames, which the base link has taken.
func (n *Node) Sent(k int) { n.rails[0].queue.remove(k) }

// RailFrames is Frames of rail number i: 0 the base link, i that of NodeConfig.Rails[i-1].
func (n *Node) RailFrames(i int) []microproto.Frame { return n.rails[i].queue.frames }

// RailSent is Sent of rail number i.
func (n *Node) RailSent(i, k int) { n.rails[i].queue.remove(k) }

// Frame takes a frame that the base link received, or several as one, whatever they
// hold. Frames of nobody are dropped and counted, never answered.
func (n *Node) Frame(now microproto.Instant, f microproto.Frame) { n.RailFrame(now, 0, f) }

// RailFrame is Frame for rail number i.
func (n *Node) RailFrame(now microproto.Instant, i int, f microproto.Frame) {
	r := n.rails[i]
	for f.Count() > 1 {
		var run microproto.Frame
		run, f = alike(f)
		if n.frame(now, r, run); len(f.Data) == 0 {
			return
		}
	}
	n.frame(now, r, f)
}

// RailOf is the number of the rail that a session is on; 0 also for one that is not there.
func (n *Node) RailOf(id SessionID) int {
	if s := n.session(id); s != nil && s.channel != nil {
		return s.channel.rail.number
	}
	return 0
}

// errUnknown stands for a reason that a link has not given.
var errUnknown = errors.New("for a reason that the link does not tell")

// RailEvent tells that rail number i, or its connection with a peer, went down or came
// back; see microproto.Connected. Sessions move. Of the base link nothing is told.
func (n *Node) RailEvent(now microproto.Instant, i int, e microproto.LinkEvent) {
	r := n.rails[i]
	if i == 0 || n.closed {
		return
	}
	n.replans = true
	err := e.Err
	if err == nil {
		err = errUnknown
	}
	switch {
	case e.Peer != 0 && !e.Up:
		for _, p := range n.peers {
			for _, w := range p.ways {
				if w.rail == r && w.addr == e.Peer {
					n.failWay(now, p, w, err)
				}
			}
		}
	case e.Peer != 0:
		// What a connection was, it is not any more: another round makes another one.
	case e.Up:
		r.err = nil
		for _, p := range n.peers {
			for _, w := range p.ways {
				if w.rail == r && !w.offered {
					w.retry = now.Add(w.backoff)
				}
			}
		}
		n.advancePeers(now)
	default:
		r.err = err
		for _, p := range n.peers {
			for _, w := range p.ways {
				if w.rail == r {
					n.failWay(now, p, w, err)
					w.retry = microproto.Never // until it is up
				}
			}
		}
	}
}
