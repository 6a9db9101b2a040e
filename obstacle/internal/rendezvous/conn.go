package rendezvous

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// Conn is one end of a connection. Send may be called from several goroutines;
// Receive from one.
type Conn struct {
	tcp  net.Conn
	net  net.Conn      // TLS over tcp, once both ends have shown that they know the secret
	in   *bufio.Reader // nil: nothing has been received
	buf  []byte
	mu   sync.Mutex // guards out and the order of frames
	out  []byte
	wait time.Duration
}

// NewConn wraps c. A Send that the other end does not read within wait fails; 0: never, as the
// other end may stand still for as long as it likes.
func NewConn(c net.Conn, wait time.Duration) *Conn {
	return &Conn{tcp: c, net: c, wait: wait}
}

// Send writes m. It blocks while the other end is slow, up to the bound given to
// NewConn, after which the connection is of no use.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	frame, err := Append(c.out[:0], m)
	if err != nil {
		return err
	}
	c.out = frame
	if c.wait > 0 {
		if err := c.net.SetWriteDeadline(time.Now().Add(c.wait)); err != nil {
			return err
		}
	}
	if _, err = c.net.Write(frame); err != nil {
		return fmt.Errorf("rendezvous: sending to %s: %w", c.net.RemoteAddr(), err)
	}
	return nil
}

// secure does this end's part of the handshake, in bounded time and memory, and goes on
// over what comes of it.
func (c *Conn) secure(part func(context.Context, net.Conn) (*tls.Conn, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), GreetingTime)
	defer cancel()
	over, err := part(ctx, c.tcp)
	if err != nil {
		return err
	}
	c.net = over
	return nil
}

// Receive reads the next message; see Read. It blocks until one comes or the
// connection ends (io.EOF).
func (c *Conn) Receive(only ...Kind) (Message, error) {
	if c.in == nil { // not before a stranger has proved that it is a peer
		c.in = bufio.NewReaderSize(c.net, readStep)
	}
	return Read(c.in, &c.buf, only...)
}

// ReceiveWithin is Receive with a time limit.
func (c *Conn) ReceiveWithin(d time.Duration, only ...Kind) (Message, error) {
	if err := c.net.SetReadDeadline(time.Now().Add(d)); err != nil {
		return nil, err
	}
	m, err := c.Receive(only...)
	if err != nil {
		return nil, err
	}
	return m, c.net.SetReadDeadline(time.Time{})
}

// EndWhenCut bounds how long the connection outlives its network: this end must send often,
// and its calls fail once the other host has acknowledged nothing for so long.
// It works on Linux; elsewhere the system's own time-outs apply, of minutes.
func (c *Conn) EndWhenCut(after time.Duration) error { return endWhenCut(c.tcp, after) }

// Close ends the connection at both ends.
func (c *Conn) Close() error { return c.tcp.Close() }

// Remote is the other end's address.
func (c *Conn) Remote() string { return c.net.RemoteAddr().String() }

// Local is this end's address.
func (c *Conn) Local() string { return c.net.LocalAddr().String() }
