package sim

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// connectionEnd is one end of a control connection.
type connectionEnd struct {
	rank iterate.Rank
	id   p2psap.ConnID
}

// dial makes a control connection, or fails.
func (c *Cluster) dial(p *peer, name string) {
	to := c.byName(name)
	refused := !c.faultsOver() && chance(c.rand, c.Scenario.Control.Refuse)
	at := max(c.reachable(p.rank, to.rank), c.clock.Now()).Add(c.latency() + c.Scenario.distance(p.rank, to.rank))
	c.clock.At(at, func() {
		if refused {
			p.node.DialFailed(c.clock.Now(), name)
			p.Settle()
			return
		}
		c.lastID += 2
		near, far := connectionEnd{p.rank, c.lastID}, connectionEnd{to.rank, c.lastID + 1}
		c.connections[near], c.connections[far] = far, near
		to.node.ControlUp(c.clock.Now(), far.id, "")
		p.node.ControlUp(c.clock.Now(), near.id, name)
		to.Settle()
		p.Settle()
	})
}

func (c *Cluster) latency() time.Duration {
	d := c.Scenario.Control.Delay
	return d + time.Duration(c.rand.Int64N(int64(d)+1))
}

func (c *Cluster) byName(name string) *peer {
	for _, p := range c.peers {
		if p.node.Name() == name {
			return p
		}
	}
	return nil
}

// control carries a message in order, unless the connection breaks.
func (c *Cluster) control(p *peer, o p2psap.Output) {
	near := connectionEnd{p.rank, o.Conn}
	far, up := c.connections[near]
	if !up {
		return
	}
	if !c.faultsOver() && chance(c.rand, c.Scenario.Control.Break) {
		c.breakConnection(near, far)
		return
	}
	at := max(c.reachable(near.rank, far.rank).Add(c.latency()+c.Scenario.distance(near.rank, far.rank)), c.carried[near])
	c.carried[near] = at
	c.clock.At(at, func() {
		if _, up := c.connections[far]; up {
			to := c.peers[far.rank]
			to.node.Control(c.clock.Now(), far.id, o.Data)
			to.Settle()
		}
	})
}

// breakConnection breaks a connection. Messages in transit are lost, and both ends are notified.
func (c *Cluster) breakConnection(ends ...connectionEnd) {
	for _, e := range ends {
		delete(c.connections, e)
		delete(c.carried, e)
		c.clock.After(c.latency(), func() {
			p := c.peers[e.rank]
			p.node.ControlDown(c.clock.Now(), e.id)
			p.Settle()
		})
	}
}

// disconnect closes a connection from one end, after all messages sent before.
func (c *Cluster) disconnect(p *peer, id p2psap.ConnID) {
	near := connectionEnd{p.rank, id}
	far, up := c.connections[near]
	if !up {
		return
	}
	at := max(c.reachable(near.rank, far.rank).Add(c.latency()), c.carried[near])
	delete(c.connections, near)
	delete(c.carried, near)
	c.clock.At(at, func() {
		if _, up := c.connections[far]; up {
			delete(c.connections, far)
			delete(c.carried, far)
			to := c.peers[far.rank]
			to.node.ControlDown(c.clock.Now(), far.id)
			to.Settle()
		}
	})
}

func (p *peer) send(f microproto.Frame) {
	to := iterate.Rank(f.Peer) - 1
	if p.c.Filter != nil && !p.c.Filter(p.c.clock.Now(), p.rank, to, p.c.peers[to].sessionOf(f.Data), f.Data) {
		f.Release()
		return
	}
	if p.c.tap != nil {
		p.c.tap(p.rank, to, f)
	}
	from := 0
	if p.rank > to {
		from = 1
	}
	p.c.link(p.rank, to).Send(from, f)
}
