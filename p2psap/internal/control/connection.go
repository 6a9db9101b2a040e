package control

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// Conn is a control connection.
type Conn struct {
	ID      uint64
	Dialled string // name of the peer if this end dialled, "" if it accepted
	peer    *Peer  // nil until a hello was accepted
	began   microproto.Instant
	heard   microproto.Instant // the last message
	until   microproto.Instant // for the hello
}

// ConnectionUp reports a connection. dialled is the name of the peer if an OutDial asked for it, ""
// if it was accepted.
func (a *Associations) ConnectionUp(now microproto.Instant, id uint64, dialled string) {
	c := &Conn{ID: id, Dialled: dialled, began: now, heard: now, until: now.Add(a.Handshake)}
	if dialled == "" {
		a.makeRoom(now)
	}
	a.Conns = append(a.Conns, c)
	if a.closed {
		a.hangup(now, c, ErrClosed)
		return
	}
	if dialled == "" {
		return
	}
	p := a.Peer(dialled)
	if p == nil || !p.Alive() {
		a.hangup(now, c, ErrNotConnected)
		return
	}
	if err := a.sendHello(c, p); err != nil {
		a.refuse(now, c, p.Name, err.Error())
	}
}

// makeRoom closes the oldest accepted connection without a hello once there are as many of them as
// the bound allows.
func (a *Associations) makeRoom(now microproto.Instant) {
	waiting := slices.DeleteFunc(slices.Clone(a.Conns), func(c *Conn) bool { return c.peer != nil || c.Dialled != "" })
	if len(waiting) > 0 && len(waiting) >= a.PendingHellos {
		a.Counters.Expired++
		a.hangup(now, waiting[0], fmt.Errorf("%w: %d connections without a hello", ErrLimit, len(waiting)))
	}
}

// DialFailed reports that an OutDial failed; the peer is dialled again.
func (a *Associations) DialFailed(now microproto.Instant, name string) {
	if p := a.Peer(name); p != nil && p.dialling {
		a.redial(now, p)
	}
}

// Refused is DialFailed where the host says that no process listens at the address. If it is this host, the process
// of a peer that was up and has no connection has ended.
func (a *Associations) Refused(now microproto.Instant, name string) {
	p := a.Peer(name)
	if p == nil || p.State != Up || p.Conn != nil || !p.OneHost {
		a.DialFailed(now, name)
		return
	}
	p.dialling = false
	a.Fail(now, p, a.host.LostError(name, 0, "its process on this host has ended: nothing listens at "+p.addr))
}

// ConnectionDown reports that a connection broke or was closed. After OutHangup it may be left out.
func (a *Associations) ConnectionDown(now microproto.Instant, id uint64) {
	if c := a.connection(id); c != nil {
		a.drop(now, c)
	}
}

func (a *Associations) connection(id uint64) *Conn {
	for _, c := range a.Conns {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (a *Associations) hangup(now microproto.Instant, c *Conn, why error) {
	a.host.Emit(Output{Kind: OutHangup, Conn: c.ID, Err: why})
	a.drop(now, c)
}

func (a *Associations) drop(now microproto.Instant, c *Conn) {
	a.Conns = slices.DeleteFunc(a.Conns, func(o *Conn) bool { return o == c })
	if p := c.peer; p != nil && p.Conn == c {
		if p.Conn = nil; !p.dialling {
			a.redial(now, p)
		}
	} else if p == nil {
		a.DialFailed(now, c.Dialled)
	}
}

// Receive takes one message of a connection. Bytes that no node sends end the connection; the
// association goes on over the next one.
func (a *Associations) Receive(now microproto.Instant, id uint64, msg []byte) {
	c := a.connection(id)
	if c == nil {
		a.Counters.Stale++
		return
	}
	a.Counters.In++
	m, err := Parse(msg)
	if err != nil || m.Kind != KindHeartbeat { // a heartbeat can only postpone what is due
		a.host.Changed()
	}
	switch {
	case err != nil:
		a.malformed(now, c, err)
	case m.Version != Version:
		if c.Dialled == "" {
			_ = a.sendHello(c, nil) // so that the other end can name the difference too
		}
		a.refuse(now, c, c.Dialled, fmt.Sprintf("protocol version: this end has %d, the peer %d", Version, m.Version))
	case m.Kind == KindHello:
		b, err := m.Decode()
		switch {
		case err != nil:
			a.malformed(now, c, err)
		case c.peer != nil:
			a.Counters.Duplicate++
		default:
			a.receiveHello(now, c, b.(*Hello), m.Ack)
		}
	case c.peer == nil && m.Kind == KindRefusal:
		a.receiveRefusal(now, c, &m)
	case c.peer == nil:
		a.malformed(now, c, fmt.Errorf("%w: %v message before a hello", ErrMalformed, m.Kind))
	default:
		a.receive(now, c, &m)
	}
}

func (a *Associations) malformed(now microproto.Instant, c *Conn, err error) {
	a.Counters.Malformed++
	a.hangup(now, c, err)
}

// receive takes a message of a peer other than a hello.
func (a *Associations) receive(now microproto.Instant, c *Conn, m *Message) {
	p := c.peer
	p.LastHeard, c.heard = now, now
	p.acknowledge(m.Ack)
	if m.Sequence == 0 {
		if err := a.receiveUnsequenced(now, p, m); err != nil {
			a.malformed(now, c, err)
		}
		return
	}
	if m.Sequence <= p.Received {
		a.Counters.Duplicate++
		return
	}
	if m.Sequence != p.Received+1 {
		a.malformed(now, c, fmt.Errorf("%w: %v message %d follows %d", ErrMalformed, m.Kind, m.Sequence, p.Received))
		return
	}
	p.Received++
	body, err := m.Decode()
	switch {
	case err != nil:
	case m.Kind == KindGoodbye:
		a.disconnect(now, p, Closed, fmt.Errorf("peer %q said goodbye: %w", p.Name, ErrPeerClosed))
		a.host.Emit(Output{Kind: OutSaidBye, Peer: p.Name, Err: p.Err})
	default:
		err = a.host.Receive(now, p, body)
	}
	if err != nil {
		// The message is numbered, so it would come again over every new connection.
		a.Counters.Malformed++
		a.Fail(now, p, fmt.Errorf("peer %q: %w", p.Name, err))
	}
}

// receiveUnsequenced takes a message that is not sent again when its connection breaks.
func (a *Associations) receiveUnsequenced(now microproto.Instant, p *Peer, m *Message) error {
	if m.Kind == KindRefusal {
		return fmt.Errorf("%w: %v message after a hello", ErrMalformed, m.Kind)
	}
	body, err := m.Decode()
	switch {
	case err != nil || body == nil:
		return err
	case m.Kind == KindPing:
		a.sendNow(p, Encode(KindPong, 0, 0, body))
		if e, ok := body.(*Echo); ok {
			a.host.Pinged(now, p, e.Number)
		}
		return nil
	}
	return a.host.Receive(now, p, body)
}
