package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

const (
	connTag   = p2psap.Tag(1)
	connChunk = 32 << 10 // bytes of the longest message of a Conn
	connRing  = 8 * connChunk
)

// Conn is a stream of bytes over a synchronous session, for programs that take a net.Conn: crypto/tls, net/rpc,
// net/http and others. Its methods may be called by several goroutines at once.
//
// A Write is copied, and returns when the session has taken all of it; it blocks while the other end does not read.
// Messages of a session have no end of a stream, so Close and CloseWrite send an empty one. A Read returns io.EOF after
// it, and io.ErrUnexpectedEOF if the other end closes the session without it. Other errors are *net.OpError. They wrap
// os.ErrDeadlineExceeded after a deadline, and *p2psap.PeerLostError if the peer is lost.
type Conn struct {
	socket        *Socket
	local, remote connAddr
	closed        context.Context // done when this end is closed
	stop          context.CancelFunc

	reading sync.Mutex
	readBy  deadline
	memory  []byte // of the message that was received last, if it is longer than a Read
	rest    []byte // of it, not yet read
	slot    p2psap.Slot
	ended   bool // the other end writes no more

	writing sync.Mutex
	writeBy deadline
	ring    sendRing
	label   p2psap.Label
	silent  bool // this end writes no more
}

var _ net.Conn = (*Conn)(nil)

// OpenConn opens a session with a peer as a stream of bytes. Like Open it is called at both ends, with the same name.
func (n *Node) OpenConn(ctx context.Context, peer, name string) (*Conn, error) {
	s, err := n.Open(ctx, peer, p2psap.OpenOptions{
		Name: name, Mode: microproto.ModeSynchronous, ReceiveBytes: 2 * connRing,
		Slots: []p2psap.SlotSpec{{Tag: connTag, Length: connChunk}},
	})
	if err != nil {
		return nil, err
	}
	c := &Conn{
		socket: s, local: connAddr{n.config.Name, name}, remote: connAddr{peer, name},
		memory: make([]byte, connChunk), ring: sendRing{memory: make([]byte, connRing)},
	}
	c.closed, c.stop = context.WithCancel(context.Background())
	c.readBy.init(c.closed)
	c.writeBy.init(c.closed)
	return c, nil
}

// Listen returns a listener of the streams that other peers open under a name, or under a name that begins with it and
// "/": two streams between the same peers have different names. It accepts from any peer; RemoteAddr of a stream is the
// peer's name. Listeners must not have names of which one is the beginning of the other.
func (n *Node) Listen(name string) net.Listener {
	l := &listener{node: n, name: name}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// acceptTime bounds the opening of a stream by Accept: the other end may close it meanwhile.
const acceptTime = 5 * time.Second

type listener struct {
	node *Node
	name string
	ctx  context.Context
	stop context.CancelFunc
}

// Accept implements net.Listener. A stream whose other end gives up meanwhile is left out.
func (l *listener) Accept() (net.Conn, error) {
	for {
		peer, o, err := l.node.acceptNamed(l.ctx, func(name string) bool {
			return name == l.name || strings.HasPrefix(name, l.name+"/")
		})
		if err != nil {
			if l.ctx.Err() != nil {
				err = net.ErrClosed
			}
			return nil, &net.OpError{Op: "accept", Net: "p2psap", Addr: l.Addr(), Err: err}
		}
		ctx, stop := context.WithTimeout(l.ctx, acceptTime)
		c, err := l.node.OpenConn(ctx, peer, o.Name)
		if stop(); err == nil {
			return c, nil
		}
		l.node.log.Warn("stream not accepted", "peer", peer, "session", o.Name, "error", err)
	}
}

// Close implements net.Listener. Accepted streams stay open.
func (l *listener) Close() error {
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return connAddr{l.node.config.Name, l.name} }

// Socket returns the session's socket, for its Info. Send and Receive there would damage the stream.
func (c *Conn) Socket() *Socket { return c.socket }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	ctx := c.readBy.context()
	switch {
	case ctx.Err() != nil:
		return 0, c.error("read", ctx.Err())
	case len(c.rest) == 0 && c.ended:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	case len(c.rest) == 0:
		c.slot = p2psap.Slot{Tag: connTag, Data: c.memory}
		if len(b) >= connChunk {
			c.slot.Data = b[:connChunk]
		}
		a, err := c.socket.Receive(ctx, &c.slot)
		switch {
		case errors.Is(err, p2psap.ErrPeerClosed):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, c.error("read", err)
		case a.Length == 0:
			c.ended = true
			return 0, io.EOF
		case len(b) >= connChunk:
			return a.Length, nil
		}
		c.rest = c.memory[:a.Length]
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	ctx := c.writeBy.context()
	if err := ctx.Err(); err != nil {
		return 0, c.error("write", err)
	}
	if c.silent {
		return 0, c.error("write", net.ErrClosed)
	}
	for len(b) > 0 {
		k := min(len(b), connChunk)
		if err := c.send(ctx, b[:k]); err != nil {
			return n, c.error("write", err)
		}
		n, b = n+k, b[k:]
	}
	return n, nil
}

// send sends one message when there is room in the ring and at the other end.
func (c *Conn) send(ctx context.Context, b []byte) error {
	for {
		c.ring.accept(c.socket.accepted())
		if room := c.ring.reserve(len(b)); room != nil {
			copy(room, b)
			c.label++
			t, err := c.socket.Send(ctx, connTag, c.label, room)
			if err == nil {
				c.ring.keep(t, len(b))
			}
			return err
		}
		if _, err := c.socket.Wait(ctx, c.ring.oldest()); err != nil {
			return err
		}
	}
}

// CloseWrite ends what this end writes. The other end reads io.EOF after it; this one can still read.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.finish(c.writeBy.context()); err != nil {
		return c.error("close", err)
	}
	return nil
}

func (c *Conn) finish(ctx context.Context) error {
	if c.silent {
		return nil
	}
	c.silent = true
	return c.send(ctx, nil)
}

// Close implements net.Conn. Calls in other goroutines return at once. What was written is given Config.Linger to be
// accepted by the other end. If that is not enough, Close returns an error. It returns nil if the other end has closed
// the session.
func (c *Conn) Close() error {
	if c.closed.Err() != nil {
		return nil
	}
	c.stop()
	c.writing.Lock()
	defer c.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.socket.node.config.Linger)
	defer cancel()
	err := c.finish(ctx)
	if last := c.ring.newest(); err == nil && last > 0 {
		for ready := (p2psap.Ready{}); err == nil && !ready.Accepted; {
			ready, err = c.socket.Wait(ctx, last)
		}
	}
	if errors.Is(err, p2psap.ErrClosed) {
		err = nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the other end did not accept within %v all that was written: %w",
			c.socket.node.config.Linger, err)
	}
	err = errors.Join(err, c.socket.Close())
	if err != nil {
		return c.error("close", err)
	}
	return nil
}

// error returns err as an error of net: an ended context is a deadline that has passed, or Close.
func (c *Conn) error(op string, err error) error {
	switch {
	case c.closed.Err() != nil && op != "close":
		err = net.ErrClosed
	case op != "close" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// LocalAddr implements net.Conn. Its text is the name of this node and that of the session, with a slash between.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. Its text is the name of the peer and that of the session, with a slash between.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(&c.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(&c.writeBy, t) }

func (c *Conn) set(d *deadline, t time.Time) error {
	if c.closed.Err() != nil {
		return c.error("set", net.ErrClosed)
	}
	d.set(c.closed, t)
	return nil
}

type connAddr struct{ node, session string }

func (connAddr) Network() string  { return "p2psap" }
func (a connAddr) String() string { return a.node + "/" + a.session }

// deadline gives calls a context that ends at a time, which may change while they wait.
type deadline struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
}

func (d *deadline) init(parent context.Context) { d.ctx, d.cancel = context.WithCancel(parent) }

func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx
}

func (d *deadline) set(parent context.Context, t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		d.cancel() // it has fired
	}
	d.timer = nil
	if d.ctx.Err() != nil {
		d.init(parent)
	}
	if wait := time.Until(t); !t.IsZero() && wait <= 0 {
		d.cancel()
	} else if !t.IsZero() {
		d.timer = time.AfterFunc(wait, d.cancel)
	}
}

// sendRing is the memory of messages that are not yet accepted. Positions count bytes, with those that are left out
// at the end of the memory.
type sendRing struct {
	memory     []byte
	head, tail int
	spans      []span // oldest first
	skipped    int    // before the room reserved last
}

type span struct {
	transfer p2psap.Transfer
	end      int
}

// accept frees the memory of the transfers up to t.
func (r *sendRing) accept(t p2psap.Transfer) {
	k := 0
	for ; k < len(r.spans) && r.spans[k].transfer <= t; k++ {
		r.head = r.spans[k].end
	}
	r.spans = r.spans[:copy(r.spans, r.spans[k:])]
}

// reserve returns memory for a message, nil if there is none. It stays free until keep.
func (r *sendRing) reserve(n int) []byte {
	at := r.tail % len(r.memory)
	if r.skipped = 0; at+n > len(r.memory) {
		r.skipped, at = len(r.memory)-at, 0
	}
	if r.tail+r.skipped+n-r.head > len(r.memory) {
		return nil
	}
	return r.memory[at : at+n : at+n]
}

// keep assigns the memory reserved last to a transfer.
func (r *sendRing) keep(t p2psap.Transfer, n int) {
	r.tail += r.skipped + n
	r.spans = append(r.spans, span{t, r.tail})
}

func (r *sendRing) oldest() p2psap.Transfer { return r.spans[0].transfer }

// newest returns the last transfer that is not known to be accepted, or 0.
func (r *sendRing) newest() p2psap.Transfer {
	if len(r.spans) == 0 {
		return 0
	}
	return r.spans[len(r.spans)-1].transfer
}
