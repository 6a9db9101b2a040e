package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// Bounds of handshakes.
const (
	defaultHandshake  = 5 * time.Second
	defaultHandshakes = 64
)

func (n *Node) handshakeTime() time.Duration {
	if n.config.Handshake > 0 {
		return n.config.Handshake
	}
	return defaultHandshake
}

// greet starts the handshake of a connection that was accepted. Those that have not
// shown yet that they know the run's secret are bounded in number and in time. Past the
// bound the oldest has to go: one that means it needs milliseconds, so that a crowd of
// silent strangers keeps nobody out. The lock is held.
func (n *Node) greet(tcp net.Conn) {
	bound := n.config.Limits.Handshakes
	if bound == 0 {
		bound = defaultHandshakes
	}
	w := &n.strangers
	if len(*w) >= bound {
		n.stats.StrangersCrowded++
		_ = (*w)[0].Close()
		*w = append((*w)[:0], (*w)[1:]...)
	}
	*w = append(*w, tcp)
	n.running.Add(1)
	go func() {
		defer n.running.Done()
		conn, err := n.shake(n.config.Identity.Server(tcp))
		n.mu.Lock()
		defer n.leave()
		known := n.forget(tcp)
		switch {
		case err == nil && known:
			n.attach(conn, "")
			return
		case !known: // crowded out, or the node is closing
		case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
			n.stats.StrangersSilent++
		default:
			n.stats.StrangersRefused++
		}
		n.log.Debug().Str("node", n.config.Name).Stringer("from", tcp.RemoteAddr()).Err(Explain(err)).Msg("control connection refused")
		_ = tcp.Close()
	}()
}

// forget takes a connection off the list; false: it was not there any more.
func (n *Node) forget(tcp net.Conn) bool {
	for i, c := range n.strangers {
		if c == tcp {
			n.strangers = append(n.strangers[:i], n.strangers[i+1:]...)
			return true
		}
	}
	return false
}

// shake does one end's part of a handshake, within its time and the node's life.
func (n *Node) shake(conn *tls.Conn) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(n.dialling, n.handshakeTime())
	defer cancel()
	return conn, conn.HandshakeContext(ctx)
}
