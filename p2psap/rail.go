package p2psap

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// Rail is one of a node's links and the kind of network that it leads to.
type Rail struct {
	Network Network
	Link    LinkContext
}

// rail is a Rail with the frames that wait for it. Its number is its index in
// NodeConfig.Rails.
type rail struct {
	number  int
	network Network
	link    LinkContext
	queue   frameQueue
	err     error // why it is down; nil: it is up
}

// checkRails refuses rails that peers could not tell apart, and copies the others.
func checkRails(c *NodeConfig) error {
	if len(c.Rails) > maxRails+1 {
		return fmt.Errorf("p2psap: node %q has %d rails; %d may be given", c.Name, len(c.Rails), maxRails+1)
	}
	c.Rails = slices.Clone(c.Rails)
	if c.Rails[0].Network == 0 {
		c.Rails[0].Network = Ethernet
	}
	for i, r := range c.Rails {
		if r.Link == nil || !r.Network.valid() {
			return fmt.Errorf("p2psap: rail %d of node %q needs a link and a network", i, c.Name)
		}
		for _, q := range c.Rails[:i] {
			if q.Network == r.Network {
				return fmt.Errorf("p2psap: node %q has two links for network %v; give it one", c.Name, r.Network)
			}
		}
	}
	return nil
}

func (n *Node) addRails() {
	for i, r := range n.config.Rails {
		n.rails = append(n.rails, &rail{number: i, network: r.Network, link: r.Link})
	}
}

func (n *Node) base() *rail { return n.rails[0] }

// networks returns the networks of the rails beside the base rail, as a hello lists them.
func (n *Node) networks() (out []Network) {
	for _, r := range n.rails[1:] {
		out = append(out, r.network)
	}
	return out
}

// Frames returns the frames that wait for rail number i, an index of NodeConfig.Rails,
// oldest first. The slice is the node's. The caller offers it to the link, which takes a
// prefix, and reports the length of the prefix with Sent, both before Drain: Drain copies
// what is left out of the memory of users, see microproto.Frame.Body.
func (n *Node) Frames(i int) []microproto.Frame { return n.rails[i].queue.frames }

// Sent removes the first k frames of rail number i, which its link has taken.
func (n *Node) Sent(i, k int) { n.rails[i].queue.remove(k) }

// Input takes a frame that rail number i received, or several as one, whatever they hold.
// Frames of no session are counted and dropped, never answered.
func (n *Node) Input(now microproto.Instant, i int, f microproto.Frame) {
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
