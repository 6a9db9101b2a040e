package ib

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// peer is another end, connected by two queue pairs. Link.mu guards all fields but the atomic
// ones. Changes of the connection hold Link.rx too.
type peer struct {
	link   *Link
	name   string
	addr   microproto.LinkAddr
	rc, uc *pair
	window *window // into which the peer writes; nil: no slots

	localOffer  offer
	localBytes  []byte // localOffer, encoded
	remoteOffer *offer // nil: not received yet
	remoteBytes []byte // remoteOffer, encoded
	state       peerState
	wasUp       bool // was connected before: the next connection is reported to Watch
	failure     error

	keepalive bool // a keepalive is outstanding
	remote    remoteWindow

	creditAsked atomic.Bool // the other end has requested its credit
	creditOwed  atomic.Bool // its credit is to be sent
	answered    atomic.Bool // a message with credit has arrived since the last check
	probedAt    time.Time   // last probe for credit; zero: nothing waits for credit
	answeredAt  time.Time   // last answer while something waited for credit
}

type peerState uint8

const (
	peerFresh peerState = iota // in Init, not connected
	peerUp
	peerDown
)

// ErrDown reports that the connection with a peer has failed. A new Offer begins another.
var ErrDown = errors.New("ib: the connection is down")

// maxAddresses bounds the number of link addresses; none is used twice.
const maxAddresses = 1 << 20

// newPeer creates the queue pairs of a peer. Link.rx and Link.mu are held.
func (l *Link) newPeer(name string) (*peer, error) {
	if len(name) == 0 || len(name) > maxNameBytes {
		return nil, fmt.Errorf("ib: the name of a peer must have 1 to %d bytes; %q has %d", maxNameBytes, name, len(name))
	}
	if len(l.peers) == maxAddresses {
		return nil, fmt.Errorf("ib: more than %d connections since the link was opened: open it again", maxAddresses)
	}
	p := &peer{link: l, name: name}
	var err error
	if p.rc, err = l.newPair(p, verbs.RC); err != nil {
		return nil, err
	}
	if p.uc, err = l.newPair(p, verbs.UC); err != nil {
		return nil, errors.Join(err, p.rc.close())
	}
	if p.window, err = l.newWindow(); err != nil {
		return nil, errors.Join(err, p.uc.close(), p.rc.close())
	}
	if err = p.initPairs(); err != nil {
		return nil, errors.Join(fmt.Errorf("ib: connection with peer %q: %w", name, err), p.close())
	}
	p.makeOffer()
	l.peers = append(l.peers, p)
	p.addr = microproto.LinkAddr(len(l.peers))
	l.named[name] = p
	return p, nil
}

func (p *peer) initPairs() error {
	if err := p.rc.initialise(); err != nil {
		return err
	}
	return p.uc.initialise()
}

// makeOffer creates a new offer with random initial packet numbers.
func (p *peer) makeOffer() {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	l, o := p.link, &p.localOffer
	*o = l.self
	o.Generation = l.generation
	l.generation++
	o.RC = endpoint{p.rc.number, binary.BigEndian.Uint32(b[:]) & mask24}
	o.UC = endpoint{p.uc.number, binary.BigEndian.Uint32(b[4:]) & mask24}
	if w := p.window; w != nil {
		o.Slots = uint16(w.slots)
		o.Address, o.Key = w.region.Addr(), w.region.RemoteKey()
	}
	p.localBytes = o.append(nil)
}

// connect connects both pairs to those of the remote offer. Pairs that were connected before
// or have failed are reset first.
func (p *peer) connect() error {
	if p.state != peerFresh {
		if err := p.restart(); err != nil {
			return p.markDown(err)
		}
	}
	ours, theirs := &p.localOffer, p.remoteOffer
	err := p.rc.connect(theirs, theirs.RC, (ours.RC.PSN+theirs.RC.PSN)&mask24)
	if err == nil {
		err = p.uc.connect(theirs, theirs.UC, (ours.UC.PSN+theirs.UC.PSN)&mask24)
	}
	if err != nil {
		return p.markDown(err)
	}
	p.state, p.failure = peerUp, nil
	p.remote.reset(theirs, p.link)
	p.creditAsked.Store(false)
	p.creditOwed.Store(false)
	p.keepalive = false
	if p.wasUp {
		p.sendKeepalive() // its completion reports the connection to Watch
	}
	return nil
}

// restart moves both pairs from any state to Init.
func (p *peer) restart() error {
	err := errors.Join(p.rc.stop(), p.uc.stop())
	p.state = peerFresh
	if p.window != nil {
		p.window.clear()
	}
	if err == nil {
		err = p.initPairs()
	}
	return err
}

// markDown records why the connection is down.
func (p *peer) markDown(err error) error {
	p.state = peerDown
	p.failure = fmt.Errorf("ib: connection with peer %q: %w", p.name, err)
	return p.failure
}

// fail takes the connection down, once. Link.rx and Link.mu are held.
func (p *peer) fail(err error) {
	if p.state == peerDown {
		return
	}
	_ = p.markDown(err)
	p.wasUp = true
	p.link.count.Failures.Add(1)
	_ = errors.Join(p.rc.stop(), p.uc.stop())
	p.link.events.notify(microproto.LinkEvent{Peer: p.addr, Err: p.failure})
	p.link.log("the connection with %s is down: %v", p.name, err)
}

// close destroys the pairs and the window.
func (p *peer) close() error {
	err := errors.Join(p.rc.close(), p.uc.close())
	if p.window != nil {
		err = errors.Join(err, p.window.close())
	}
	return err
}

// Offer returns the context of the queue pairs for a peer, which it creates on first use. The
// context stays the same until the connection fails. Offer then returns a new one, which the
// other end must accept before frames pass again.
func (l *Link) Offer(name string) ([]byte, error) {
	defer l.lockAll()()
	p, err := l.peerNamed(name)
	if err != nil {
		return nil, err
	}
	if p.state == peerDown {
		if err := p.restart(); err != nil {
			return nil, p.markDown(err)
		}
		p.makeOffer()
		if p.remoteOffer != nil {
			if err := p.connect(); err != nil {
				return nil, err
			}
		}
	}
	return bytes.Clone(p.localBytes), nil
}

// lockAll locks receiving and sending, and returns the function that unlocks them.
func (l *Link) lockAll() (unlock func()) {
	l.rx.Lock()
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		l.rx.Unlock()
	}
}

func (l *Link) peerNamed(name string) (*peer, error) {
	switch {
	case l.closed.Load():
		return nil, errClosed
	case l.downErr != nil:
		return nil, l.downErr
	}
	if p := l.named[name]; p != nil {
		return p, nil
	}
	return l.newPeer(name)
}

// Accept connects the queue pairs of the peer that made the offer. A newer offer of the same
// peer replaces an older one.
func (l *Link) Accept(remote []byte) (microproto.LinkAddr, error) {
	o, err := decodeOffer(remote)
	if err != nil {
		return 0, err
	}
	defer l.lockAll()()
	if err := l.self.compatible(&o); err != nil {
		return 0, err
	}
	p, err := l.peerNamed(o.name)
	if err != nil {
		return 0, err
	}
	if p.remoteOffer != nil {
		if bytes.Equal(p.remoteBytes, remote) && p.state != peerFresh {
			if p.state == peerDown {
				return 0, fmt.Errorf("%w: this offer was used before; call Offer and exchange new ones: %w", ErrDown, p.failure)
			}
			return p.addr, nil
		}
		if p.remoteOffer.Incarnation == o.Incarnation && int32(o.Generation-p.remoteOffer.Generation) < 0 {
			return 0, fmt.Errorf("ib: the offer of peer %q is older than the one already accepted", o.name)
		}
	}
	p.remoteOffer, p.remoteBytes = &o, bytes.Clone(remote)
	if p.state == peerDown {
		p.wasUp = true
	}
	if err := p.connect(); err != nil {
		return 0, err
	}
	return p.addr, nil
}

// Forget destroys the queue pairs and the window of a peer.
func (l *Link) Forget(addr microproto.LinkAddr) {
	defer l.lockAll()()
	p := l.peer(addr)
	if p == nil {
		return
	}
	l.peers[addr-1] = nil
	delete(l.named, p.name)
	if err := p.close(); err != nil {
		l.log("cannot close the connection with %s: %v", p.name, err)
	}
}

// peer returns the peer with a link address, or nil.
func (l *Link) peer(addr microproto.LinkAddr) *peer {
	if addr == 0 || int(addr) > len(l.peers) {
		return nil
	}
	return l.peers[addr-1]
}
