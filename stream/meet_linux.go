package stream

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The two ends greet each other before frames pass. The dialling end sends magic, the token of the other end's offer
// and its own. The accepting end answers with magic and the token of the dialling end, on one connection only.
const (
	magic         = "p2pdc\x00s\x01"
	helloBytes    = len(magic) + 2*len(token{})
	answerBytes   = len(magic) + len(token{})
	helloTimeout  = 5 * time.Second
	maxHandshakes = 64 // at once; more are refused
)

// serve accepts connections until the link is closed.
func (l *Link) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if l.closed.Load() {
				return
			}
			l.log("cannot accept a connection: %v", err)
			select { // such as too many open files: try again later
			case <-time.After(100 * time.Millisecond):
			case <-l.open.Done():
			}
			continue
		}
		select {
		case l.hands <- struct{}{}:
			go func() {
				defer func() { <-l.hands }()
				defer conn.Close()
				if err := l.receiveHello(conn.(*net.TCPConn)); err != nil && !l.closed.Load() {
					l.count.Refused.Add(1)
					l.log("a connection from %v was refused: %v", conn.RemoteAddr(), err)
				}
			}()
		default:
			l.count.Refused.Add(1)
			_ = conn.Close()
		}
	}
}

// receiveHello adopts a connection if it shows the token of an offer and comes from the end whose offer was accepted.
func (l *Link) receiveHello(conn *net.TCPConn) error {
	stop := context.AfterFunc(l.open, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout)) // fails only after Close
	var hello [helloBytes]byte
	if _, err := io.ReadFull(conn, hello[:]); err != nil {
		return err
	}
	own, theirs := token(hello[len(magic):]), token(hello[len(magic)+len(token{}):])
	p, round, met := l.tokenOwner(own)
	if p == nil || string(hello[:len(magic)]) != magic {
		return errors.New("it shows no token of this end")
	}
	select {
	case <-met:
	case <-time.After(l.config.Timeout):
		return fmt.Errorf("no offer of %s was accepted within %v", p.name, l.config.Timeout)
	case <-l.open.Done():
		return errClosed
	}
	defer l.callWritable()
	defer l.lockAll()()
	switch {
	case p.round != round || p.remote == nil || p.connected:
		return fmt.Errorf("%s is connected, or has begun anew", p.name)
	case subtle.ConstantTimeCompare(p.remote.Token[:], theirs[:]) == 0:
		return fmt.Errorf("it shows another token than the offer of %s", p.name)
	}
	l.tune(conn)
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	if _, err := conn.Write(append([]byte(magic), theirs[:]...)); err != nil { // the send queue is empty
		return err
	}
	return p.connect(conn)
}

// tokenOwner returns the peer for which this end has offered a token, and its round.
func (l *Link) tokenOwner(t token) (p *peer, round uint64, met chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.named {
		if q.failure == nil && subtle.ConstantTimeCompare(q.token[:], t[:]) == 1 {
			return q, q.round, q.met
		}
	}
	return nil, 0, nil
}

// dial connects with the other end: with all of its addresses at once, since some may lead to other hosts or nowhere.
func (l *Link) dial(p *peer, round uint64, own token, o offer) {
	ctx, cancel := context.WithTimeout(l.open, l.config.meetTime())
	defer cancel()
	type result struct {
		conn *net.TCPConn
		err  error
	}
	results := make(chan result, len(o.addresses))
	for _, a := range o.addresses {
		go func() {
			conn, err := l.dialOne(ctx, a, own, o.Token)
			results <- result{conn, err}
		}()
	}
	var errs []error
	for range o.addresses {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		unlock := l.lockAll()
		err := errors.New("the round is over")
		if p.round == round && !p.connected && !l.closed.Load() {
			err = p.connect(r.conn)
		}
		unlock()
		_ = r.conn.Close() // connect has duplicated it
		if err == nil {
			l.callWritable()
			return
		}
		errs = append(errs, err)
	}
	l.failRound(p, round, fmt.Errorf("cannot connect (let both ends listen on addresses of one network with --listen): %w",
		errors.Join(errs...)))
}

func (l *Link) dialOne(ctx context.Context, to netip.AddrPort, own, theirs token) (*net.TCPConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	conn := c.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	l.tune(conn)
	hello := append(append([]byte(magic), theirs[:]...), own[:]...)
	answer := make([]byte, answerBytes)
	if _, err = conn.Write(hello); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil && (string(answer[:len(magic)]) != magic || token(answer[len(magic):]) != own) {
		err = errors.New("the other end answers with another token")
	}
	if stop(); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%v: %w", to, err)
	}
	return conn, nil
}

// expire fails a round in which the other end does not dial.
func (l *Link) expire(p *peer, round uint64) {
	select {
	case <-time.After(l.config.meetTime()):
	case <-l.open.Done():
		return
	}
	l.mu.Lock()
	met := p.connected || p.round != round
	l.mu.Unlock()
	if !met {
		l.failRound(p, round, fmt.Errorf("it has not connected within %v", l.config.meetTime()))
	}
}

// tune sets the options of a connection. Those that the system refuses stay as they are.
func (l *Link) tune(conn *net.TCPConn) {
	_ = conn.SetNoDelay(true)
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, l.config.Congestion)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(l.config.Timeout.Milliseconds()))
	})
}
