package rendezvous

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// MinPending is the number of unauthenticated connections that may wait, besides one per peer; see driver.Pending.
const MinPending = 64

// maxRefusals bounds the warnings that unauthenticated processes can cause.
const maxRefusals = 32

// Server accepts connections and runs the handshake with each. Those that do not match are refused. Connections that do
// not complete the handshake are closed when too many newer ones wait.
type Server struct {
	listener    net.Listener
	identity    Identity
	sendTimeout time.Duration // of connections, as of NewConn
	most        int
	warn        func(text string)
	refused     atomic.Int64
	done        chan struct{}
	close       func()

	mu      sync.Mutex
	take    func(*Conn, Join)
	lasting map[string]*Conn // by identity; see Lasting
}

// Serve starts a server for a run of that many peers. take owns the admitted connections. It is called by several
// goroutines and may block. warn logs.
func Serve(
	l net.Listener, id Identity, peers int, sendTimeout time.Duration, warn func(string), take func(*Conn, Join),
) *Server {
	s := &Server{
		listener: l, identity: id, sendTimeout: sendTimeout, most: MinPending + peers, warn: warn, take: take,
		done: make(chan struct{}), lasting: map[string]*Conn{},
	}
	s.close = sync.OnceFunc(func() { close(s.done); l.Close() })
	go s.accept()
	return s
}

// Handle replaces the function that takes connections.
func (s *Server) Handle(take func(*Conn, Join)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = take
}

// Lasting returns a random identity for a connection that may go on over another cable, and the addresses of the server. It
// returns nil if the peer came over the loopback interface, or if the server has one address.
func (s *Server) Lasting(c *Conn) (id []byte, addresses []string) {
	if !severalWays(s.Addr(), c.Remote()) {
		return nil, nil
	}
	_, port, _ := net.SplitHostPort(s.Addr())
	for _, a := range driver.Addresses("") {
		addresses = append(addresses, net.JoinHostPort(a.String(), port))
	}
	if len(addresses) < 2 {
		return nil, nil
	}
	id = []byte(rand.Text())
	s.mu.Lock()
	s.lasting[string(id)] = c
	s.mu.Unlock()
	c.last(id, false)
	c.onClose(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lasting, string(id))
	})
	return id, addresses[:min(len(addresses), maxAddresses)]
}

// severalWays reports whether a peer may reach a server that listens at an address by another one: it listens at all of its
// host, and the peer did not come over the loopback interface. A peer on the same host may have dialled a cable's address.
func severalWays(listens, peer string) bool {
	at, err := netip.ParseAddrPort(listens)
	from, wrong := netip.ParseAddrPort(peer)
	return err == nil && wrong == nil && at.Addr().IsUnspecified() && !from.Addr().Unmap().IsLoopback()
}

// reconnect goes on with a connection over another one.
func (s *Server) reconnect(by *Conn, r *Reconnect) {
	var c *Conn
	if r != nil {
		s.mu.Lock()
		c = s.lasting[string(r.ID)]
		s.mu.Unlock()
	}
	switch {
	case c == nil:
		s.warn(by.Refuse("it is to go on with a connection that this process does not have").Error())
		_ = by.Close()
	case c.adopt(by, r.Received):
		s.warn(fmt.Sprintf("the connection with %s goes on at %s: what it took before carried nothing", by.Remote(), by.Local()))
	}
}

// Addr returns the address that the server listens at.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Refused returns the number of connections that were refused.
func (s *Server) Refused() int64 { return s.refused.Load() }

// Close ends the server. Connections that were taken stay open.
func (s *Server) Close() { s.close() }

func (s *Server) accept() {
	pending := driver.NewPending(s.most)
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.warn("rendezvous: " + err.Error())
			select {
			case <-time.After(10 * time.Millisecond): // the process may be out of file descriptors
				continue
			case <-s.done:
				return
			}
		}
		pending.Add(c)
		go s.admit(c, pending)
	}
}

func (s *Server) admit(c net.Conn, pending *driver.Pending) {
	conn := NewConn(c, s.sendTimeout)
	j, err := conn.Admit(s.identity)
	if !pending.Remove(c) {
		err = fmt.Errorf("%s did not complete the handshake: closed, since more than %d connections waited",
			conn.Remote(), s.most)
	}
	if err != nil {
		if n := s.refused.Add(1); n <= maxRefusals {
			s.warn(err.Error())
		} else if n == maxRefusals+1 {
			s.warn("further refused connections are not logged")
		}
		conn.Close()
		return
	}
	if j.Purpose == ToReconnect {
		s.reconnect(conn, j.Reconnect)
		return
	}
	s.mu.Lock()
	take := s.take
	s.mu.Unlock()
	take(conn, j)
}
