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

// Conn is one end of a connection. Send may be called from several goroutines, Receive from one.
type Conn struct {
	OnSpare func() // called by Join when the launcher keeps this peer as a spare one; nil: not called

	tcp         net.Conn
	net         net.Conn      // TLS over tcp, after both ends have proved that they know the secret
	in          *bufio.Reader // nil before the first Receive
	buf         []byte
	mu          sync.Mutex // guards out and the order of frames
	out         []byte
	sendTimeout time.Duration
}

// NewConn wraps c. A Send fails if the other end does not read it within sendTimeout; 0 means no limit.
func NewConn(c net.Conn, sendTimeout time.Duration) *Conn {
	return &Conn{tcp: c, net: c, sendTimeout: sendTimeout}
}

// Send writes m. It blocks while the other end does not read, up to the time given to NewConn. After an error the
// connection cannot be used.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	frame, err := Append(c.out[:0], m)
	if err != nil {
		return err
	}
	c.out = frame
	if c.sendTimeout > 0 {
		if err := c.net.SetWriteDeadline(time.Now().Add(c.sendTimeout)); err != nil {
			return err
		}
	}
	if _, err = c.net.Write(frame); err != nil {
		return fmt.Errorf("rendezvous: cannot send to %s: %w", c.net.RemoteAddr(), err)
	}
	return nil
}

// secure runs this end's part of the TLS handshake, in bounded time and memory, and uses the resulting connection.
func (c *Conn) secure(part func(context.Context, net.Conn) (*tls.Conn, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), HandshakeTime)
	defer cancel()
	secured, err := part(ctx, c.tcp)
	if err != nil {
		return err
	}
	c.net = secured
	return nil
}

// Receive reads the next message; see Read. It blocks until a message arrives or the connection ends (io.EOF).
func (c *Conn) Receive(only ...Kind) (Message, error) {
	if c.in == nil { // no memory is allocated before the other end is authenticated
		c.in = bufio.NewReaderSize(c.net, readStep)
	}
	return Read(c.in, &c.buf, only...)
}

// ReceiveWithin is Receive with a timeout.
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

// CloseWhenDead closes the connection after the other host has acknowledged nothing for the given time, although this
// end sends often. On systems other than Linux the timeouts of the system apply, which are minutes.
func (c *Conn) CloseWhenDead(after time.Duration) error { return closeWhenDead(c.tcp, after) }

// spareSilence makes the kernel look for a vanished host. A spare peer, which sends nothing, notices it after 8 s.
var spareSilence = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 5}

// detectSilence sets whether the connection ends soon after the other host has vanished, although this end sends
// nothing, or after the default time.
func (c *Conn) detectSilence(soon bool) {
	config := net.KeepAliveConfig{Enable: true}
	if soon {
		config = spareSilence
	}
	if t, is := c.tcp.(*net.TCPConn); is {
		_ = t.SetKeepAliveConfig(config) // else the end is noticed late
	}
}

// HostSilent returns for how long the other host has acknowledged nothing and sent nothing. A process there that does
// not run, with a kernel that answers Probe, is no reason. It is false if that is not known on this system.
func (c *Conn) HostSilent() (time.Duration, bool) { return hostSilent(c.tcp) }

// Close closes the connection.
func (c *Conn) Close() error { return c.tcp.Close() }

// Remote returns the address of the other end.
func (c *Conn) Remote() string { return c.net.RemoteAddr().String() }

// Local returns the address of this end.
func (c *Conn) Local() string { return c.net.LocalAddr().String() }
