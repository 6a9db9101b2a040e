package shm

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// peer is another end. Its fields change under all locks of the link.
type peer struct {
	link *Link
	name string
	addr microproto.LinkAddr

	token       token
	localBytes  []byte // this end's offer, encoded
	remote      *offer // nil: not received yet
	remoteBytes []byte
	state       peerState
	failure     error
	round       uint64 // of the connection; a goroutine of an earlier one changes nothing

	out  outbox
	in   outbox // zero until the ends have met
	bell bell   // nil until then
	// pending is a connection that is not complete; nil: none.
	pending interface{ close() }
	rung    uint64 // generation of the other end's sleep that this end has ended

	lane     laneWriter
	slots    slotWriter
	incoming laneReader
	values   slotReader
	loans    *loans // nil until the ends have met
}

type peerState uint8

const (
	peerOpen peerState = iota // offered, accepted or connected
	peerDown
)

// ErrDown reports that the connection with a peer has failed. A new Offer begins another.
var ErrDown = errors.New("shm: the connection is down")

// maxAddresses bounds the number of link addresses; none is used twice.
const maxAddresses = 1 << 20

// begin prepares the peer for a connection: memory and a token.
func (p *peer) begin() error {
	l := p.link
	out, err := l.newOutbox()
	if err != nil {
		return err
	}
	p.round++
	p.out, p.state, p.failure = out, peerOpen, nil
	p.remote, p.rung = nil, 0
	_, _ = rand.Read(p.token[:]) // never fails
	l.tokens[p.token] = p
	o := l.self
	o.Token = p.token
	p.localBytes = o.append(nil)
	p.lane = laneWriter{layout: l.layout, out: out.bytes}
	p.slots = slotWriter{slotOf: map[uint64]int32{}}
	return nil
}

// end gives the connection up and frees its memory.
func (p *peer) end() {
	l := p.link
	p.round++
	delete(l.tokens, p.token)
	if i := slices.Index(l.active, p); i >= 0 {
		l.active = slices.Delete(l.active, i, i+1)
	}
	if l.full == p {
		l.full = nil
	}
	if p.bell != nil {
		p.bell.close()
	}
	if p.pending != nil {
		p.pending.close()
	}
	if p.loans != nil {
		p.loans.end(p.in)
	}
	l.retire(p)
	p.out, p.in, p.loans = outbox{}, outbox{}, nil
	p.bell, p.pending = nil, nil
	p.lane, p.slots = laneWriter{}, slotWriter{}
	p.incoming, p.values = laneReader{}, slotReader{}
}

// connected is called when the ends have met: in is the other end's outbox. The locks are held.
func (p *peer) connected(in outbox, b bell) error {
	l := p.link
	if got := word(in.bytes, magicAt).Load(); got != layoutMagic {
		return fmt.Errorf("the other end's memory begins with %#x instead of %#x", got, uint64(layoutMagic))
	}
	p.in, p.bell = in, b
	p.lane.in = in.bytes
	p.loans = &loans{out: p.out.bytes, returned: l.wakeReceiver, inSlot: make([]uint64, l.config.Values)}
	p.incoming = laneReader{layout: l.layout, out: p.out.bytes, in: in.bytes}
	p.values = slotReader{taken: make([]uint64, l.config.Values), delivered: make([]uint64, l.config.Values)}
	l.active = append(l.active, p)
	if l.asleep {
		word(p.out.bytes, asleepAt).Store(l.sleep)
	}
	l.wakeReceiver()
	if p.lane.head > 0 { // the other end may have connected and slept before these frames were written
		b.ring()
	}
	l.log("connected with %s over shared memory", p.name)
	return nil
}

// fail takes a connection down, once. The locks are held.
func (l *Link) fail(p *peer, err error) {
	if p.state == peerDown {
		return
	}
	p.end()
	p.state = peerDown
	p.failure = fmt.Errorf("shm: connection with peer %q: %w", p.name, err)
	l.count.Failures.Add(1)
	l.log("the connection with %s is down: %v", p.name, err)
	if f := l.watch; f != nil && !l.closed.Load() {
		go f(microproto.LinkEvent{Peer: p.addr, Err: p.failure})
	}
}

// failRound is fail for a caller that holds no lock and met an error in that round of the connection.
func (l *Link) failRound(p *peer, round uint64, err error) {
	unlock := l.lockAll()
	if p.round == round && !l.closed.Load() {
		l.fail(p, err)
	}
	unlock()
	l.callWritableIfRoom()
}

// remove ends a connection and forgets the peer. The locks are held.
func (l *Link) remove(p *peer) {
	if p.state != peerDown {
		p.end()
		p.state = peerDown
	}
	l.peers[p.addr-1] = nil
	delete(l.named, p.name)
}

// Offer returns this end's context for a peer. The context stays the same until the connection fails.
// Offer then returns a new one, which the other end must accept before frames pass again.
func (l *Link) Offer(name string) ([]byte, error) {
	defer l.lockAll()()
	p, err := l.peerNamed(name)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(p.localBytes), nil
}

// peerNamed returns the peer of a name, ready for a connection or connected. The locks are held.
func (l *Link) peerNamed(name string) (*peer, error) {
	if l.closed.Load() {
		return nil, errClosed
	}
	if len(name) == 0 || len(name) > maxNameBytes {
		return nil, fmt.Errorf("shm: the name of a peer must have 1 to %d bytes; %q has %d", maxNameBytes, name, len(name))
	}
	if p := l.named[name]; p != nil {
		if p.state == peerDown {
			return p, p.begin()
		}
		return p, nil
	}
	if len(l.peers) == maxAddresses {
		return nil, fmt.Errorf("shm: more than %d connections since the link was opened: open it again", maxAddresses)
	}
	p := &peer{link: l, name: name, addr: microproto.LinkAddr(len(l.peers) + 1)}
	if err := p.begin(); err != nil {
		return nil, err
	}
	l.peers = append(l.peers, p)
	l.named[name] = p
	return p, nil
}

// Accept connects with the peer that made the offer. Frames may be sent at once; they are read when the
// ends have met. A newer offer of the same peer replaces an older one.
func (l *Link) Accept(remote []byte) (microproto.LinkAddr, error) {
	o, err := decodeOffer(remote)
	if err != nil {
		return 0, err
	}
	defer l.lockAll()()
	if err := l.self.compatible(&o); err != nil {
		return 0, err
	}
	if p := l.named[o.name]; p != nil && bytes.Equal(p.remoteBytes, remote) {
		if p.state == peerDown {
			return 0, fmt.Errorf("%w: this offer was used before; call Offer and exchange new ones: %w", ErrDown, p.failure)
		}
		if p.remote != nil {
			return p.addr, nil
		}
		return 0, fmt.Errorf("%w: this offer was used before; exchange new ones", ErrDown)
	}
	p, err := l.peerNamed(o.name)
	if err != nil {
		return 0, err
	}
	if p.remote != nil { // the other end has begun anew
		p.end()
		if err := p.begin(); err != nil {
			p.state = peerDown
			p.failure = err
			return 0, err
		}
	}
	p.remote, p.remoteBytes = &o, bytes.Clone(remote)
	l.meeting.start(p)
	return p.addr, nil
}

// Forget implements microproto.Connected.
func (l *Link) Forget(addr microproto.LinkAddr) {
	unlock := l.lockAll()
	if p := l.peer(addr); p != nil {
		l.remove(p)
	}
	unlock()
	l.callWritableIfRoom()
}

// peer returns the peer with a link address, or nil.
func (l *Link) peer(addr microproto.LinkAddr) *peer {
	if addr == 0 || int(addr) > len(l.peers) {
		return nil
	}
	return l.peers[addr-1]
}
