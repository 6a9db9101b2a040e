package driver

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
)

// Bounds of a control connection.
const (
	controlQueue = 1024                   // messages waiting to be written
	controlWrite = 5 * time.Second        // for one write
	controlDrain = 300 * time.Millisecond // for the other end to close too
)

// connection is one control connection: a reader and a writer.
type connection struct {
	id       p2psap.ConnID
	conn     net.Conn    // TLS over tcp, or the same
	tcp      net.Conn    // closing TLS may have to wait, closing this does not
	queue    chan []byte // closed by the node, under its lock, when the core disconnects
	sameHost bool        // the other end has an address of this host
	closed   bool
	unread   chan struct{} // closed when the node has stopped reading
}

func (n *Node) accept() {
	defer n.running.Done()
	for {
		tcp, err := n.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely no file descriptor is free, which may pass.
			n.log.Warn("control connection not accepted", "error", err)
			select {
			case <-n.dialling.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		n.mu.Lock()
		if n.config.Identity != nil && !n.closed {
			n.handshake(tcp)
		} else {
			n.attach(tcp, "")
		}
		n.unlock()
	}
}

func (n *Node) dial(peer string, addrs []string) {
	defer n.running.Done()
	begin := time.Now()
	conn, err := DialAny(n.dialling, n.config.Handshake, addrs)
	if err == nil {
		n.mu.Lock()
		n.firstTrips[peer] = time.Since(begin)
		n.mu.Unlock()
	}
	if err == nil && n.config.Identity != nil {
		tcp := conn
		if conn, err = n.runHandshake(n.config.Identity.Client, tcp); err != nil {
			_ = tcp.Close()
			err = Explain(err)
		}
	}
	n.mu.Lock()
	defer n.unlock()
	if err != nil {
		n.dialErrs[peer] = err
		switch {
		case n.closed:
		case errors.Is(err, syscall.ECONNREFUSED):
			n.core.DialRefused(n.now(), peer)
		default:
			n.core.DialFailed(n.now(), peer)
		}
		return
	}
	delete(n.dialErrs, peer)
	n.attach(conn, peer)
}

// attach starts a connection's goroutines. The lock is held.
func (n *Node) attach(conn net.Conn, dialled string) {
	tcp := conn
	if t, ok := conn.(*tls.Conn); ok {
		tcp = t.NetConn()
	}
	if n.closed {
		_ = tcp.Close()
		return
	}
	n.lastConn++
	c := &connection{
		id: n.lastConn, conn: conn, tcp: tcp, queue: make(chan []byte, controlQueue), unread: make(chan struct{}),
		sameHost: sameHost(tcp.LocalAddr(), tcp.RemoteAddr()),
	}
	n.conns[c.id] = c
	n.running.Add(2)
	go n.read(c)
	go n.write(c)
	n.core.ControlUp(n.now(), c.id, dialled)
}

// sameHost implements p2psap.NodeConfig.SameHost. The lock is held.
func (n *Node) sameHost(id p2psap.ConnID) bool {
	c := n.conns[id]
	return c != nil && c.sameHost
}

// read reads messages, each preceded by its length, until the connection ends.
func (n *Node) read(c *connection) {
	defer n.running.Done()
	defer close(c.unread)
	r := bufio.NewReader(c.conn)
	for {
		msg, err := readMessage(r)
		n.mu.Lock()
		if err != nil {
			if errors.Is(err, p2psap.ErrMalformed) {
				n.stats.ControlGarbage++
			}
			n.core.ControlDown(n.now(), c.id)
			n.hangup(c)
			n.unlock()
			return
		}
		if !c.closed {
			n.core.Control(n.now(), c.id, msg)
		}
		n.unlock()
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > p2psap.MaxControlBytes {
		return nil, p2psap.ErrMalformed
	}
	msg := make([]byte, size)
	_, err := io.ReadFull(r, msg)
	return msg, err
}

// write sends what is queued. When the core has disconnected it lets the last messages arrive: closing at once
// with bytes unread would reset the connection. Abort does not wait for that.
func (n *Node) write(c *connection) {
	defer n.running.Done()
	for msg := range c.queue {
		_ = c.conn.SetWriteDeadline(time.Now().Add(controlWrite))
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(msg))), msg...)
		if _, err := c.conn.Write(framed); err != nil {
			_ = c.tcp.Close() // the reader reports it
			for range c.queue {
				continue
			}
			return
		}
	}
	if t, ok := c.conn.(*tls.Conn); ok {
		_ = t.CloseWrite()
	}
	if t, ok := c.tcp.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
	if n.wasAborted() {
		_ = c.tcp.SetReadDeadline(time.Unix(1, 0)) // in the past
		<-c.unread
		go drain(c.tcp, n.drainTime)
		return
	}
	drain(c.tcp, n.drainTime)
}

// drain reads until the other end closes, too, for a bounded time and number of bytes, and closes the connection.
func drain(tcp net.Conn, most time.Duration) {
	_ = tcp.SetReadDeadline(time.Now().Add(most))
	_, _ = io.Copy(io.Discard, io.LimitReader(tcp, 1<<20))
	_ = tcp.Close()
}

func (n *Node) wasAborted() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.aborted
}

// hangup closes the queue; the writer closes the connection. The lock is held.
func (n *Node) hangup(c *connection) {
	if !c.closed {
		c.closed = true
		close(c.queue)
		delete(n.conns, c.id)
	}
}

// queueControl queues a control message. The lock is held.
func (n *Node) queueControl(o *p2psap.Output) {
	c := n.conns[o.Conn]
	if c == nil {
		return
	}
	select {
	case c.queue <- o.Data:
		n.stats.ControlOut++
	default:
		// The other end does not read: break the connection; the reader reports it.
		_ = c.tcp.Close()
	}
}
