package ib

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// pair is a queue pair with this end's state.
type pair struct {
	link      *Link
	peer      *peer
	qp        verbs.Pair
	transport verbs.Transport
	number    uint32
	// key is the upper half of the IDs of its work requests: its index among the link's pairs
	// and a generation, which tells completions of earlier connections apart.
	key atomic.Uint32

	// Sending, under Link.mu.
	queue      queue
	ring       []sendEntry // outstanding requests, by number modulo its length, a power of two
	head, tail uint32      // number of the next request, and of the oldest outstanding one
	unsignaled int
	ready      bool          // in Link.readyPairs
	starved    atomic.Bool   // frames wait for credit or room
	sent       uint64        // frames that consumed a receive of the other end
	announced  atomic.Uint64 // credit granted, as last sent to the other end
	requests   [postBatch]verbs.SendRequest
	elements   [postBatch][2]verbs.Element
	limit      atomic.Uint64 // number of frames that the other end allows

	// Receiving. arrived is written under Link.rx.
	share   int
	arrived atomic.Uint64 // frames received or known to be lost
	held    atomic.Int64  // receives in use by frames, delivered or not

	rmu     sync.Mutex
	posting bool   // receives may be posted
	lent    []bool // by block of the share: in use by a delivered frame
	request [1]verbs.ReceiveRequest
	element [1]verbs.Element
}

// postBatch is the number of requests posted at a time.
const postBatch = 16

// sendEntry is an outstanding send request.
type sendEntry struct {
	frame   microproto.Frame // whose memory the request reads; zero: none
	block   int32            // into which the frame was copied; -1: none
	purpose purpose
}

// purpose is the reason for a send request.
type purpose uint8

const (
	forFrame purpose = iota
	forKeepalive
	forWindowCheck
)

func (l *Link) newPair(p *peer, t verbs.Transport) (*pair, error) {
	q := &pair{link: l, peer: p, transport: t, ring: make([]sendEntry, l.config.sendRing())}
	q.lent = make([]bool, l.memory.receivesPerPair)
	q.queue.init()
	for i := range q.requests {
		q.requests[i].Elements = q.elements[i][:0]
	}
	share, err := l.memory.assignShare(q)
	if err != nil {
		return nil, err
	}
	q.share = share
	l.pairs[share] = q
	q.qp, err = l.domain.CreatePair(verbs.PairConfig{
		Transport: t, Send: l.sends, Receive: l.receives,
		SendRequests: l.config.sendDepth(), ReceiveRequests: l.memory.receivesPerPair,
		SendElements: 2, ReceiveElements: 1,
	})
	if err != nil {
		l.pairs[share] = nil
		l.memory.releaseShare(share)
		return nil, fmt.Errorf("ib: %v queue pair for peer %q: %w", t, p.name, err)
	}
	q.number = q.qp.Number()
	q.key.Store(l.newKey(share))
	return q, nil
}

// initialise moves a pair from Reset to Init and posts its receives. Link.rx and Link.mu are
// held.
func (p *pair) initialise() error {
	err := p.qp.Modify(verbs.Attributes{
		Mask:  verbs.MaskState | verbs.MaskPartitionKey | verbs.MaskPort | verbs.MaskAccess,
		State: verbs.Init, Port: p.link.port.number, Access: verbs.RemoteWrite,
	})
	if err != nil {
		return err
	}
	p.rmu.Lock()
	defer p.rmu.Unlock()
	p.posting = true
	held := 0
	first := int32(p.link.memory.sendBlocks + p.share*p.link.memory.receivesPerPair)
	for i, lent := range p.lent {
		if lent {
			held++
			continue
		}
		if err := p.post(first + int32(i)); err != nil {
			return err
		}
	}
	p.held.Store(int64(held))
	p.arrived.Store(0)
	p.sent = 0
	p.announced.Store(uint64(p.link.config.frameCredit()))
	return nil
}

// connect moves a pair from Init to ReadyToSend.
func (p *pair) connect(to *offer, their endpoint, psn uint32) error {
	l := p.link
	a := verbs.Attributes{
		Mask:  verbs.MaskState | verbs.MaskPath | verbs.MaskPathMTU | verbs.MaskRemote | verbs.MaskReceivePSN,
		State: verbs.ReadyToReceive, PathMTU: min(int(to.MTU), l.port.mtu), Remote: their.Number, ReceivePSN: psn,
		Path: verbs.Path{
			LID: to.LID, Global: to.Layer == verbs.LayerEthernet, Destination: to.gid(),
			SourceIndex: l.port.gidIndex, HopLimit: hopLimit,
		},
		RNRTimer: rnrTimer,
	}
	if p.transport == verbs.RC {
		a.Mask |= verbs.MaskPendingReads | verbs.MaskRNRTimer
	}
	if err := p.qp.Modify(a); err != nil {
		return err
	}
	b := verbs.Attributes{Mask: verbs.MaskState | verbs.MaskSendPSN, State: verbs.ReadyToSend, SendPSN: psn}
	if p.transport == verbs.RC {
		b.Mask |= verbs.MaskTimeout | verbs.MaskRetries | verbs.MaskRNRRetries | verbs.MaskInitiatedReads
		b.Timeout = timeoutCode(l.config.Timeout)
		b.Retries, b.RNRRetries = retries, rnrUnlimited
	}
	p.limit.Store(uint64(to.Credit))
	return p.qp.Modify(b)
}

const (
	hopLimit     = 64
	rnrTimer     = 8 // 0.16 ms (IBTA table 45)
	retries      = 6 // with 7 some adapters (rxe) retry for ever
	rnrUnlimited = 7
)

// stop moves a pair to Reset, after which the adapter uses none of its memory. It releases and
// counts the outstanding and queued frames. Link.rx and Link.mu are held.
func (p *pair) stop() error {
	p.stopPosting()
	err := p.qp.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Reset})
	p.discard()
	return err
}

func (p *pair) stopPosting() {
	p.rmu.Lock()
	p.posting = false
	p.rmu.Unlock()
}

// discard releases the frames of a pair that is stopped or closed.
func (p *pair) discard() {
	p.key.Store(p.link.newKey(p.share))
	for p.tail != p.head {
		p.releaseEntry(&p.ring[p.tail&uint32(len(p.ring)-1)])
		p.tail++
		p.link.count.Discarded.Add(1)
	}
	for p.queue.n > 0 {
		f := p.queue.pop()
		f.Release()
		p.link.count.Discarded.Add(1)
	}
	p.unsignaled = 0
	p.starved.Store(false)
}

// close destroys a pair. Link.rx and Link.mu are held.
func (p *pair) close() error {
	p.stopPosting()
	err := p.qp.Close()
	p.discard()
	p.link.pairs[p.share] = nil
	p.link.memory.releaseShare(p.share)
	return err
}

func (p *pair) releaseEntry(e *sendEntry) {
	e.frame.Release()
	if e.block >= 0 {
		p.link.memory.freeSend(e.block)
	}
	*e = sendEntry{block: -1}
}

// post posts a receive block. rmu is held.
func (p *pair) post(block int32) error {
	m := p.link.memory
	p.element[0] = verbs.Element{Addr: m.addr + uint64(int(block)*m.blockBytes), Length: uint32(m.blockBytes), Key: m.key}
	p.request[0] = verbs.ReceiveRequest{ID: uint64(p.key.Load())<<32 | uint64(block), Elements: p.element[:]}
	_, err := p.qp.PostReceive(p.request[:])
	return err
}

// repost posts a block whose frame was copied out.
func (p *pair) repost(block int32) error {
	p.rmu.Lock()
	defer p.rmu.Unlock()
	if !p.posting {
		return nil
	}
	return p.post(block)
}

// lendBlock marks a block as in use by a delivered frame.
func (p *pair) lendBlock(block int32) {
	p.rmu.Lock()
	p.lent[p.index(block)] = true
	p.rmu.Unlock()
}

// returnBlock posts a lent block again, from any goroutine. If posting fails, the pair is in
// error and a completion reports it.
func (p *pair) returnBlock(block int32) {
	p.rmu.Lock()
	p.lent[p.index(block)] = false
	posting := p.posting
	if posting {
		_ = p.post(block)
		p.held.Add(-1)
	}
	p.rmu.Unlock()
	if posting && p.checkCredit() {
		p.link.armProgress()
	}
}

// index returns a block's index in the pair's share.
func (p *pair) index(block int32) int {
	m := p.link.memory
	return (int(block) - m.sendBlocks) % m.receivesPerPair
}

// granted returns the number of frames that the other end may have sent.
func (p *pair) granted() uint64 {
	return p.arrived.Load() + uint64(max(0, int64(p.link.config.frameCredit())-p.held.Load()))
}

// owesCredit reports whether at least half of the credit was granted and not announced yet.
func (p *pair) owesCredit() bool {
	return p.granted()-p.announced.Load() >= uint64(max(1, p.link.config.frameCredit()/2))
}

// checkCredit has the credit announced if enough is owed, and reports whether it is.
func (p *pair) checkCredit() bool {
	owes := p.owesCredit()
	if owes {
		p.link.oweCredit(p.peer)
	}
	return owes
}

// advance returns a counter that has grown from old to the given lower 16 bits.
func advance(old uint64, low uint16) uint64 {
	if d := int16(low - uint16(old)); d > 0 {
		return old + uint64(d)
	}
	return old
}
