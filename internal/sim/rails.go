package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Some peers of some scenarios have an adapter of one fabric beside their base link. Adapters
// connect pairs of peers, reliably and in order for synchronous frames, and in order for
// asynchronous ones. They fail and recover.

// Failure is a failure of an adapter, or of its connection with one peer.
type Failure struct {
	At, Up time.Duration // Up 0: it does not recover
	Rank   iterate.Rank
	Peer   iterate.Rank // -1: the adapter
	Cut    bool         // of an adapter: frames in transit are lost; otherwise they may still arrive
}

// adapter is the adapter of one peer.
type adapter struct {
	c       *Cluster
	rank    iterate.Rank
	downs   int // failures that it has not recovered from
	ends    []adapterEnd
	serials uint32
}

// adapterEnd is an adapter's end of the connection with one peer.
type adapterEnd struct {
	mine, theirs uint32 // serial numbers of the offers; 0: none
	fresh        bool   // the offer is not connected yet
}

func (a *adapter) Acquire(n int) microproto.Frame { return a.c.memory.Acquire(n) }

func (a *adapter) Caps(m microproto.Mode) microproto.Caps {
	return microproto.Caps{
		MTU: max(512, a.c.Scenario.MTU/2), Headroom: a.c.memory.Headroom, Batch: 16,
		Reliable: m == microproto.ModeSynchronous, Ordered: true,
	}
}

func (a *adapter) Offer(name string) ([]byte, error) {
	p := a.c.byName(name)
	if p == nil || a.downs > 0 {
		return nil, errors.New("sim: the adapter is down")
	}
	j := &a.ends[p.rank]
	if !j.fresh {
		a.serials++
		*j = adapterEnd{mine: a.serials, fresh: true}
	}
	return binary.BigEndian.AppendUint32([]byte{'r', byte(a.rank)}, j.mine), nil
}

func (a *adapter) Accept(b []byte) (microproto.LinkAddr, error) {
	if len(b) != 6 || b[0] != 'r' || int(b[1]) >= len(a.ends) || a.downs > 0 {
		return 0, errors.New("sim: not an offer of this fabric, or the adapter is down")
	}
	j := &a.ends[b[1]]
	j.theirs, j.fresh = binary.BigEndian.Uint32(b[2:]), false
	return addrOf(iterate.Rank(b[1])), nil
}

// Forget implements microproto.Connected.
func (a *adapter) Forget(peer microproto.LinkAddr) { a.ends[peer-1] = adapterEnd{} }

// send carries a frame in order, if its connection still exists.
func (a *adapter) send(f microproto.Frame) {
	c, to := a.c, iterate.Rank(f.Peer)-1
	mine := a.ends[to]
	if mine.theirs == 0 || a.downs > 0 || f.Mode == microproto.ModeAsynchronous && !c.faultsOver() && chance(c.rand,
		c.Scenario.Faults.Loss) {
		f.Release()
		return
	}
	sent := c.clock.Now()
	c.clock.After(c.Scenario.After.Delay/4+1, func() {
		b := c.peers[to].adapter
		theirs := b.ends[a.rank]
		if b.downs > 0 || theirs.mine != mine.theirs || theirs.theirs != mine.mine || sent < c.cutAt[a.rank] ||
			sent < c.cutAt[to] {
			f.Release()
			return
		}
		f.Peer = addrOf(a.rank)
		c.railed++
		c.peers[to].node.Input(c.clock.Now(), 1, f)
		c.peers[to].Settle()
	})
}

// planRails schedules the failures.
func (c *Cluster) planRails() {
	for _, f := range c.Scenario.Failures {
		p := c.peers[f.Rank]
		if p.adapter == nil {
			continue
		}
		c.clock.At(microproto.Instant(f.At), func() {
			if f.Cut && f.Peer < 0 {
				c.cutAt[f.Rank] = c.clock.Now()
			}
			e := microproto.LinkEvent{Err: fmt.Errorf("sim: the adapter failed at %v", f.At)}
			if f.Peer >= 0 {
				if e.Peer = addrOf(f.Peer); p.adapter.ends[f.Peer].theirs == 0 {
					return
				}
			} else {
				p.adapter.downs++
			}
			p.node.RailEvent(c.clock.Now(), 1, e)
			p.Settle()
		})
		if f.Up > 0 && f.Peer < 0 {
			c.clock.At(microproto.Instant(f.Up), func() {
				if p.adapter.downs--; p.adapter.downs == 0 {
					p.node.RailEvent(c.clock.Now(), 1, microproto.LinkEvent{Up: true})
					p.Settle()
				}
			})
		}
	}
}

// rails returns the rails of a peer's node.
func (p *peer) rails() []p2psap.Rail {
	s := p.c.Scenario
	base := p2psap.Rail{Network: p2psap.Ethernet, Link: linkAdapter{p.c, p.rank}}
	if s.Adapters == nil || !s.Adapters[p.rank] {
		return []p2psap.Rail{base}
	}
	p.adapter = &adapter{c: p.c, rank: p.rank, ends: make([]adapterEnd, s.Peers())}
	return []p2psap.Rail{base, {Network: p2psap.InfiniBand, Link: p.adapter}}
}

// countMoves adds up how often the sessions of a peer have changed their rail.
func (p *peer) countMoves() {
	p.Sessions(func(id p2psap.SessionID, _ bool) {
		if i, err := p.node.Info(id); err == nil {
			p.c.moves += uint64(i.Moves)
		}
	})
}
