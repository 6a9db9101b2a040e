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

// peer is another end: its connection is two queue pairs. What is not said to be
// otherwise is guarded by Link.mu; what changes a connection holds Link.rx too.
type peer struct {
	link   *Link
	name   string
	addr   microproto.LinkAddr
	rc, uc *pair
	window *window // into which it writes; nil: no slots

	localOffer  offer
	localBytes  []byte // mine
	remoteOffer *offer // nil: not known
	remoteBytes []byte // theirs
	state       peerState
	wasUp       bool // it has been connected before: Watch is told when it is again
	failure     error

	keepalive bool // a request that proves the connection is outstanding
	remote    remoteWindow

	creditAsked atomic.Bool // the other end wants to be told its credit
	creditOwed  atomic.Bool // it is to be told
	answered    atomic.Bool // it has told something
	probedAt    time.Time   // when it was asked last; zero: nothing is to be asked
	answeredAt  time.Time   // when it had told something last, while it was asked
}

type peerState uint8

const (
	peerFresh peerState = iota // in Init, not connected
	peerUp
	peerDown
)

// ErrDown tells that the connection with a peer has failed; a new Offer begins another.
var ErrDown = errors.New("ib: the connection is down")

// maxAddresses bounds the link addresses given away: none is used twice.
const maxAddresses = 1 << 20

// newPeer makes the pairs for a peer. Link.rx and Link.mu are held.
func (l *Link) newPeer(name string) (*peer, error) {
	if len(name) == 0 || len(name) > maxNameBytes {
		return nil, fmt.Errorf("ib: the name of a peer must have 1 to %d bytes; %q has %d", maxNameBytes, name, len(name))
	}
	if len(l.peers) == maxAddresses {
		return nil, fmt.Errorf("ib: more than %d connections since the link was opened", maxAddresses)
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
	if err = p.makeOffer(); err != nil {
		return nil, errors.Join(err, p.close())
	}
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

// renew makes another offer: random first packet numbers.
func (p *peer) makeOffer() error {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("ib: random packet numbers: %w", err)
	}
	l := p.link
	p.localOffer = l.self
	p.localOffer.generation = l.generation
	l.generation++
	p.localOffer.rc = endpoint{p.rc.number, binary.BigEndian.Uint32(b[:]) & mask24}
	p.localOffer.uc = endpoint{p.uc.number, binary.BigEndian.Uint32(b[4:]) & mask24}
	if p.window != nil {
		p.localOffer.slots, p.localOffer.address, p.localOffer.key = p.window.slots, p.window.region.Addr(), p.window.region.RemoteKey()
	}
	p.localBytes = p.localOffer.append(nil)
	return nil
}

// join connects both pairs to theirs. When they were connected before, or have failed,
// they start anew.
func (p *peer) connect() error {
	if p.state != peerFresh {
		if err := p.restart(); err != nil {
			return p.markDown(err)
		}
	}
	err := p.rc.connect(p.remoteOffer, p.remoteOffer.rc, (p.localOffer.rc.psn+p.remoteOffer.rc.psn)&mask24)
	if err == nil {
		err = p.uc.connect(p.remoteOffer, p.remoteOffer.uc, (p.localOffer.uc.psn+p.remoteOffer.uc.psn)&mask24)
	}
	if err != nil {
		return p.markDown(err)
	}
	p.state, p.failure = peerUp, nil
	p.remote.reset(p.remoteOffer, p.link)
	p.creditAsked.Store(false)
	p.creditOwed.Store(false)
	p.keepalive = false
	if p.wasUp {
		p.sendKeepalive() // its completion tells Watch
	}
	return nil
}

// restart takes both pairs from wherever they are to Init.
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

// broken notes that a connection could not be made.
func (p *peer) markDown(err error) error {
	p.state = peerDown
	p.failure = fmt.Errorf("ib: connection with peer %q: %w", p.name, err)
	return p.failure
}

// fail takes a connection down because of err, once. Link.rx and Link.mu are held.
func (p *peer) fail(err error) {
	if p.state == peerDown {
		return
	}
	_ = p.markDown(err)
	p.wasUp = true
	p.link.count.failures.Add(1)
	_ = errors.Join(p.rc.stop(), p.uc.stop())
	p.link.notify(microproto.LinkEvent{Peer: p.addr, Err: p.failure})
	p.link.log("the connection with %s is down: %v", p.name, err)
}

// close destroys what belongs to a peer.
func (p *peer) close() error {
	err := errors.Join(p.rc.close(), p.uc.close())
	if p.window != nil {
		err = errors.Join(err, p.window.close())
	}
	return err
}

// Offer makes the queue pairs for a peer, if there are none, and returns their context.
// It is the same until their connection fails; then another, which the other end must
// have before frames pass again.
func (l *Link) Offer(name string) ([]byte, error) {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.peerNamed(name)
	if err != nil {
		return nil, err
	}
	if p.state == peerDown {
		if err := p.restart(); err != nil {
			return nil, p.markDown(err)
		}
		if err := p.makeOffer(); err != nil {
			return nil, err
		}
		if p.remoteOffer != nil {
			if err := p.connect(); err != nil {
				return nil, err
			}
		}
	}
	return bytes.Clone(p.localBytes), nil
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

// Accept connects the queue pairs made for the peer whose offer it is. A newer offer of
// the same peer replaces the older.
func (l *Link) Accept(remote []byte) (microproto.LinkAddr, error) {
	o, err := decodeOffer(remote)
	if err != nil {
		return 0, err
	}
	l.rx.Lock()
	defer l.rx.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
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
				return 0, fmt.Errorf("%w, and another needs a new Offer: %w", ErrDown, p.failure)
			}
			return p.addr, nil
		}
		if p.remoteOffer.incarnation == o.incarnation && int32(o.generation-p.remoteOffer.generation) < 0 {
			return 0, fmt.Errorf("ib: the offer of peer %q is older than the one accepted", o.name)
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
	l.rx.Lock()
	defer l.rx.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peer(addr)
	if p == nil {
		return
	}
	l.peers[addr-1] = nil
	delete(l.named, p.name)
	if err := p.close(); err != nil {
		l.log("closing the connection with %s: %v", p.name, err)
	}
}

// peer finds an accepted end.
func (l *Link) peer(addr microproto.LinkAddr) *peer {
	if addr == 0 || int(addr) > len(l.peers) {
		return nil
	}
	return l.peers[addr-1]
}
