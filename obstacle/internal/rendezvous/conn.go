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

	sendTimeout time.Duration
	sending     sync.Mutex // guards out and the order of frames
	out         []byte
	buf         []byte // of Receive

	mu     sync.Mutex // guards what follows
	tcp    net.Conn
	net    net.Conn      // TLS over tcp, after both ends have proved that they know the secret
	in     *bufio.Reader // nil before the first Receive
	dead   time.Duration // of CloseWhenDead; 0: not called
	closed bool
	ends   []func()
	kept   *kept // what a connection needs to go on over another cable; nil: it ends with tcp
}

// NewConn wraps c. A Send fails if the other end does not read it within sendTimeout; 0 means no limit.
func NewConn(c net.Conn, sendTimeout time.Duration) *Conn {
	return &Conn{tcp: c, net: c, sendTimeout: sendTimeout}
}

// Send writes m. It blocks while the other end does not read, up to the time given to NewConn. After an error the
// connection cannot be used.
func (c *Conn) Send(m Message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	frame, err := Append(c.out[:0], m)
	if err != nil {
		return err
	}
	c.out = frame
	to, counts := c.keep(m, frame)
	if to == nil {
		return nil // it is sent when the connection goes on
	}
	if err := c.write(to, frame); err != nil && !(counts && c.waits(to, err)) {
		return fmt.Errorf("rendezvous: cannot send to %s: %w", to.RemoteAddr(), err)
	}
	return nil
}

func (c *Conn) write(to net.Conn, frame []byte) error {
	if c.sendTimeout > 0 {
		if err := to.SetWriteDeadline(time.Now().Add(c.sendTimeout)); err != nil {
			return err
		}
	}
	_, err := to.Write(frame)
	return err
}

// secure runs this end's part of the TLS handshake, in bounded time and memory, and uses the resulting connection.
func (c *Conn) secure(part func(context.Context, net.Conn) (*tls.Conn, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), HandshakeTime)
	defer cancel()
	secured, err := part(ctx, c.tcp)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net = secured
	return nil
}

// Receive reads the next message; see Read. It blocks until a message arrives or the connection ends (io.EOF).
func (c *Conn) Receive(only ...Kind) (Message, error) {
	for {
		in, from := c.source()
		m, err := Read(in, &c.buf, c.allowed(only)...)
		if again, err := c.received(from, m, err); !again {
			if err != nil {
				return nil, err
			}
			return m, nil
		}
	}
}

// ReceiveWithin is Receive with a timeout.
func (c *Conn) ReceiveWithin(d time.Duration, only ...Kind) (Message, error) {
	n, _ := c.current()
	if err := n.SetReadDeadline(time.Now().Add(d)); err != nil {
		return nil, err
	}
	m, err := c.Receive(only...)
	if err != nil {
		return nil, err
	}
	return m, n.SetReadDeadline(time.Time{})
}

// current returns the connection in use, and TCP below it.
func (c *Conn) current() (secured, tcp net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.net, c.tcp
}

// CloseWhenDead closes the connection after the other host has acknowledged nothing for the given time, although this
// end sends often. On systems other than Linux the timeouts of the system apply, which are minutes.
func (c *Conn) CloseWhenDead(after time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = after
	return closeWhenDead(c.tcp, after)
}

// spareSilence makes the kernel look for a vanished host. A spare peer, which sends nothing, notices it after 8 s.
var spareSilence = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 5}

// detectSilence sets whether the connection ends soon after the other host has vanished, although this end sends
// nothing, or after the default time.
func (c *Conn) detectSilence(soon bool) {
	config := net.KeepAliveConfig{Enable: true}
	if soon {
		config = spareSilence
	}
	_, tcp := c.current()
	if t, is := tcp.(*net.TCPConn); is {
		_ = t.SetKeepAliveConfig(config) // else the end is noticed late
	}
}

// HostSilent returns for how much longer than two round trips the other host has acknowledged nothing and sent nothing. A process there that does
// not run, with a kernel that answers Probe, is no reason. It is false if that is not known on this system.
func (c *Conn) HostSilent() (time.Duration, bool) {
	_, tcp := c.current()
	return hostSilent(tcp)
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	tcp, ends := c.tcp, c.ends
	c.closed, c.ends = true, nil
	if c.kept != nil {
		c.kept.changed.Broadcast()
	}
	c.mu.Unlock()
	for _, f := range ends {
		f()
	}
	return tcp.Close()
}

// onClose has f be called by Close.
func (c *Conn) onClose(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, f)
}

// Remote returns the address of the other end.
func (c *Conn) Remote() string {
	n, _ := c.current()
	return n.RemoteAddr().String()
}

// Local returns the address of this end.
func (c *Conn) Local() string {
	n, _ := c.current()
	return n.LocalAddr().String()
}
