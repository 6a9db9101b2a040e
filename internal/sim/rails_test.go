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

// adapters is the fabric of drawn scenarios. Its adapters connect pairs of peers, reliably and in order for synchronous
// frames, and in order for asynchronous ones. They fail and recover.
type adapters struct {
	c        *Cluster
	failures []Failure
	of       []*adapter           // by rank; nil: the peer has none
	cutAt    []microproto.Instant // by rank: frames sent earlier are lost
}

// adaptersOf returns the fabric with adapters at the ranks where has is true.
func adaptersOf(has []bool, failures []Failure) func(*Cluster) fabric {
	return func(c *Cluster) fabric {
		k := &adapters{c: c, failures: failures}
		k.of, k.cutAt = make([]*adapter, len(has)), make([]microproto.Instant, len(has))
		for rank := range has {
			if has[rank] {
				k.of[rank] = &adapter{adapters: k, rank: iterate.Rank(rank), ends: make([]adapterEnd, len(has))}
			}
		}
		return k
	}
}

func (k *adapters) rail(rank iterate.Rank) p2psap.LinkContext {
	if a := k.of[rank]; a != nil {
		return a
	}
	return nil
}

// Failure is a failure of an adapter, or of its connection with one peer.
type Failure struct {
	At, Up time.Duration // Up 0: it does not recover
	Rank   iterate.Rank
	Peer   iterate.Rank // -1: the adapter
	Cut    bool         // of an adapter: frames in transit are lost; otherwise they may still arrive
}

// adapter is the adapter of one peer.
type adapter struct {
	*adapters
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
func (k *adapters) send(from iterate.Rank, f microproto.Frame) {
	a, c, to := k.of[from], k.c, iterate.Rank(f.Peer)-1
	mine := a.ends[to]
	if mine.theirs == 0 || a.downs > 0 || f.Mode == microproto.ModeAsynchronous && !c.faultsOver() && chance(c.rand,
		c.Scenario.Faults.Loss) {
		f.Release()
		return
	}
	sent := c.clock.Now()
	c.clock.After(c.Scenario.After.Delay/4+1, func() {
		b := k.of[to]
		theirs := b.ends[from]
		if b.downs > 0 || theirs.mine != mine.theirs || theirs.theirs != mine.mine || sent < k.cutAt[from] ||
			sent < k.cutAt[to] {
			f.Release()
			return
		}
		f.Peer = addrOf(from)
		c.railed++
		c.peers[to].node.Input(c.clock.Now(), 1, f)
		c.peers[to].Settle()
	})
}

func (k *adapters) plan() {
	c := k.c
	for _, f := range k.failures {
		p, a := c.peers[f.Rank], k.of[f.Rank]
		if a == nil {
			continue
		}
		c.clock.At(microproto.Instant(f.At), func() {
			if f.Cut && f.Peer < 0 {
				k.cutAt[f.Rank] = c.clock.Now()
			}
			e := microproto.LinkEvent{Err: fmt.Errorf("sim: the adapter failed at %v", f.At)}
			if f.Peer >= 0 {
				if e.Peer = addrOf(f.Peer); a.ends[f.Peer].theirs == 0 {
					return
				}
			} else {
				a.downs++
			}
			p.node.RailEvent(c.clock.Now(), 1, e)
			p.Settle()
		})
		if f.Up > 0 && f.Peer < 0 {
			c.clock.At(microproto.Instant(f.Up), func() {
				if a.downs--; a.downs == 0 {
					p.node.RailEvent(c.clock.Now(), 1, microproto.LinkEvent{Up: true})
					p.Settle()
				}
			})
		}
	}
}
