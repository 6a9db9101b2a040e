package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
)

// handshake authenticates a connection that was accepted. Connections that have not authenticated are bounded in
// number (Pending) and in time. The lock is held.
func (n *Node) handshake(tcp net.Conn) {
	if n.pending.Add(tcp) {
		n.stats.HandshakesDisplaced++
	}
	n.running.Add(1)
	go func() {
		defer n.running.Done()
		conn, err := n.runHandshake(n.config.Identity.Server, tcp)
		n.mu.Lock()
		defer n.unlock()
		known := n.pending.Remove(tcp)
		switch {
		case err == nil && known:
			n.attach(conn, "")
			return
		case !known: // closed to make room
		case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
			n.stats.HandshakesTimedOut++
		default:
			n.stats.HandshakesRefused++
		}
		n.log.Debug("control connection refused", "from", tcp.RemoteAddr().String(), cause(Explain(err)))
		_ = tcp.Close()
	}()
}

// runHandshake runs one end's part of a handshake, within its time and the node's life.
func (n *Node) runHandshake(
	part func(context.Context, net.Conn) (*tls.Conn, error), tcp net.Conn,
) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(n.dialling, n.config.Handshake)
	defer cancel()
	return part(ctx, tcp)
}
