package stream

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/readiness"
	"github.com/p2pdc/p2pdc/microproto"
)

// peer is another end. Its fields change under both locks of the link.
type peer struct {
	link *Link
	name string
	addr microproto.LinkAddr

	token       token
	localBytes  []byte // this end's offer, encoded
	remote      *offer // nil: not received yet
	remoteBytes []byte
	round       uint64        // of the connection; a goroutine of an earlier one changes nothing
	failure     error         // why the connection is down; nil: it is not
	met         chan struct{} // closed when remote is known or the round is over
	connected   bool

	socket    int              // valid if connected
	room      *readiness.Watch // of the send queue
	outgoing  outgoing
	sendsRest bool // a goroutine waits for room for what outgoing holds
	incoming  incoming
}

// ErrDown reports that the connection with a peer has failed. A new Offer begins another.
var ErrDown = errors.New("stream: the connection is down")

// maxPeers bounds the number of link addresses; none is used twice.
const maxPeers = 1 << 20

// begin prepares the peer for a connection.
func (p *peer) begin() error {
	l := p.link
	o := l.self
	var err error
	if o.addresses, err = addresses(l.listener); err != nil {
		p.failure = err
		return err
	}
	p.round++
	p.remote, p.failure = nil, nil
	p.met = make(chan struct{})
	_, _ = rand.Read(p.token[:]) // never fails
	o.Token = p.token
	p.localBytes = o.append(nil)
	return nil
}

// end gives the connection up.
func (p *peer) end() {
	l := p.link
	p.round++
	if p.met != nil && p.remote == nil {
		close(p.met)
	}
	p.met = nil
	if i := slices.Index(l.active, p); i >= 0 {
		l.active = slices.Delete(l.active, i, i+1)
	}
	if l.full == p {
		l.full = nil
	}
	if p.connected {
		p.connected = false
		go p.room.Close() // it waits for awaitRoom, which may wait for the locks
		p.room = nil
		_ = unix.Close(p.socket)
	}
	p.incoming.drop()
	p.outgoing, p.sendsRest = outgoing{}, false
}

// connect adopts an authenticated connection. The locks are held.
func (p *peer) connect(conn *net.TCPConn) error {
	l := p.link
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var call error
	err = raw.Control(func(fd uintptr) {
		p.socket, call = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, call); err != nil {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.addr)}
	p.room = &readiness.Watch{}
	if err = unix.EpollCtl(l.descriptor, unix.EPOLL_CTL_ADD, p.socket, &event); err == nil {
		err = p.room.Open(p.socket, unix.EPOLLOUT)
	}
	if err != nil {
		p.room.Close()
		_ = unix.Close(p.socket)
		return err
	}
	p.connected = true
	l.active = append(l.active, p)
	l.log("connected with %s over TCP, %v to %v", p.name, conn.LocalAddr(), conn.RemoteAddr())
	l.flush(p)
	l.sendRest(p)
	l.waits.Wake() // bytes may have arrived before the socket was watched
	if f := l.watch; f != nil {
		go f(microproto.LinkEvent{Peer: p.addr, Up: true})
	}
	return nil
}

// fail takes a connection down, once. The locks are held.
func (l *Link) fail(p *peer, err error) {
	if p.failure != nil {
		return
	}
	p.end()
	p.failure = fmt.Errorf("stream: connection with peer %q: %w", p.name, err)
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
	l.callWritable()
}

// remove ends a connection and forgets the peer. The locks are held.
func (l *Link) remove(p *peer) {
	if p.failure == nil {
		p.end()
	}
	p.failure = ErrDown
	l.peers[p.addr-1] = nil
	delete(l.named, p.name)
}

// Offer returns this end's context for a peer. The context stays the same until the connection fails. Offer then
// returns a new one, which the other end must accept before frames pass again.
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
	switch {
	case l.closed.Load():
		return nil, errClosed
	case len(name) == 0 || len(name) > maxNameBytes:
		return nil, fmt.Errorf("stream: the name of a peer must have 1 to %d bytes; %q has %d", maxNameBytes, name, len(name))
	case len(l.peers) == maxPeers:
		return nil, fmt.Errorf("stream: more than %d connections since the link was opened: open it again", maxPeers)
	}
	if l.listener == nil {
		if err := l.listen(); err != nil {
			return nil, err
		}
	}
	if p := l.named[name]; p != nil {
		if p.failure != nil {
			return p, p.begin()
		}
		return p, nil
	}
	p := &peer{link: l, name: name, addr: microproto.LinkAddr(len(l.peers) + 1)}
	if err := p.begin(); err != nil {
		return nil, err
	}
	l.peers = append(l.peers, p)
	l.named[name] = p
	return p, nil
}

// Accept connects with the peer that made the offer. Frames may be sent at once; they leave when the ends have met.
// A newer offer of the same peer replaces an older one.
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
		if p.failure != nil || p.remote == nil {
			err := fmt.Errorf("%w: this offer was used before; call Offer and exchange new ones", ErrDown)
			if p.failure != nil {
				err = fmt.Errorf("%w: %w", err, p.failure)
			}
			return 0, err
		}
		return p.addr, nil
	}
	p, err := l.peerNamed(o.name)
	if err != nil {
		return 0, err
	}
	if p.remote != nil { // the other end has begun anew
		p.end()
		if err := p.begin(); err != nil {
			return 0, err
		}
	}
	p.remote, p.remoteBytes = &o, bytes.Clone(remote)
	close(p.met)
	if l.config.Name < o.name {
		go l.dial(p, p.round, p.token, o)
	} else {
		go l.expire(p, p.round)
	}
	return p.addr, nil
}

// Forget implements microproto.Connected.
func (l *Link) Forget(addr microproto.LinkAddr) {
	unlock := l.lockAll()
	if p := l.peer(addr); p != nil {
		l.remove(p)
	}
	unlock()
	l.callWritable()
}

// peer returns the peer with a link address, or nil.
func (l *Link) peer(addr microproto.LinkAddr) *peer {
	if addr == 0 || int(addr) > len(l.peers) {
		return nil
	}
	return l.peers[addr-1]
}

// down returns the error of a connection that a system call reported.
func down(errno syscall.Errno) error {
	if errno == unix.ETIMEDOUT {
		return fmt.Errorf("the other end acknowledges nothing: %w", errno)
	}
	return errno
}
