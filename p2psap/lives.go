package p2psap

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// refusal is the body of a message that ends a connection instead of a hello: the sender
// cannot talk to the receiver now, but another attempt may succeed.
type refusal struct{ Reason string }

func (a *refusal) append(w *writer) { w.text(a.Reason, maxReasonBytes) }

func parseRefusal(r *reader) (refusal, error) {
	a := refusal{r.text(maxReasonBytes)}
	return a, r.end(kindRefusal)
}

// incarnation returns the number by which one peer tells the lives of this node apart. Every
// peer gets another one, so that none can pass for this node at a third.
func (n *Node) incarnation(peer string) uint64 {
	b := binary.BigEndian.AppendUint64(nil, n.config.Incarnation)
	sum := sha256.Sum256(append(b, peer...))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// taken reports whether the name in a hello is that of a peer of another incarnation that
// is still heard: whoever says that hello has to wait until that peer is lost or closes.
func (n *Node) taken(now microproto.Instant, p *peer, h *hello) bool {
	if p.life == 0 || p.life == h.Incarnation {
		return false
	}
	return p.state == PeerUp && now.Sub(p.heard) < n.config.PeerTimeout || p.state == PeerNew && p.conn != nil
}

// refuseForNow ends a connection with a peer whose name is taken. An end that dialled says so, and
// tries again.
func (n *Node) refuseForNow(now microproto.Instant, c *conn, name string) {
	n.counters.PeersRefused++
	reason := fmt.Sprintf("the name %q is in use by another peer, from which it still hears; "+
		"it is free once that one is silent for %v or closes", name, n.config.PeerTimeout)
	if c.dialled == "" {
		w := make(writer, 0, 64)
		envelope{kind: kindRefusal}.append(&w)
		(&refusal{reason}).append(&w)
		n.out = append(n.out, Output{Kind: OutControl, Conn: c.id, Data: w})
	}
	n.hangup(now, c, fmt.Errorf("p2psap: %s", reason))
}

// takeRefusal keeps why a connection that this node dialled comes to nothing.
func (n *Node) takeRefusal(now microproto.Instant, c *conn, body *reader) {
	a, err := parseRefusal(body)
	if err == nil && c.dialled == "" {
		err = fmt.Errorf("%w: %v message on a connection that was accepted", ErrMalformed, kindRefusal)
	}
	if err != nil {
		n.malformed(now, c, err)
		return
	}
	err = fmt.Errorf("p2psap: peer %q says: %s", c.dialled, a.Reason)
	if p := n.peer(c.dialled); p != nil && p.state == PeerNew {
		p.err = err
	}
	n.hangup(now, c, err)
}

// makeRoom closes the oldest accepted connection that has not said hello, once there are as
// many of them as the bound allows.
func (n *Node) makeRoom(now microproto.Instant) {
	var oldest *conn
	waiting := 0
	for _, c := range n.conns {
		if c.peer == nil && c.dialled == "" {
			if oldest == nil {
				oldest = c
			}
			waiting++
		}
	}
	if waiting >= n.config.Limits.PendingHellos && oldest != nil {
		n.counters.HandshakesExpired++
		n.hangup(now, oldest, fmt.Errorf("%w: %d connections without a hello", ErrLimit, waiting))
	}
}

// host returns the identity of this host that the other end of a connection gets. Copies of
// a running virtual machine have one identity, so it holds only where the other end is at an
// address of this host; elsewhere it is made one that no other node has.
func (n *Node) host(c *conn, peer string) string {
	host := n.config.Host
	if host == "" || n.config.SameHost == nil || n.config.SameHost(c.id) {
		return host
	}
	return fmt.Sprintf("%s/%016x", host[:min(len(host), maxNameBytes-17)], n.incarnation(peer))
}
