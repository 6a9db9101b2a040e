package p2psap

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// cable is one end of a rail between two nodes, a reliable link with connections. Each offer is a new
// connection; frames of an earlier one never arrive.
type cable struct {
	self   byte
	serial byte                // of this end's last offer
	peer   microproto.LinkAddr // the offer that was accepted; 0: none
	flying []flight            // by this end
	kept   bool                // the last offer is not used up
	only   bool                // it carries synchronous sessions only
}

type flight struct {
	from byte // serial of the sender's offer
	to   microproto.LinkAddr
	f    microproto.Frame
}

func newCable(c *cable, self int) *cable {
	*c = cable{self: byte(self), only: c.only}
	return c
}

var errFarCable = errors.New("not an offer of the other end")

func (c *cable) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

func (c *cable) Caps(m microproto.Mode) microproto.Caps {
	if c.only && m == microproto.ModeAsynchronous {
		return microproto.Caps{}
	}
	return microproto.Caps{MTU: 800, Reliable: m == microproto.ModeSynchronous, Ordered: true}
}

func (c *cable) Offer(string) ([]byte, error) {
	if !c.kept {
		c.serial++
		c.kept = true
	}
	return []byte{c.self, c.serial}, nil
}

func (c *cable) Accept(b []byte) (microproto.LinkAddr, error) {
	if len(b) != 2 || b[0] == c.self {
		return 0, errFarCable
	}
	c.kept = false
	c.peer = microproto.LinkAddr(b[1]) + 1
	return c.peer, nil
}

// Forget implements microproto.Connected.
func (c *cable) Forget(peer microproto.LinkAddr) {
	if c.peer == peer {
		c.peer = 0
	}
}

func (c *cable) send(f microproto.Frame) {
	if c.only && f.Mode == microproto.ModeAsynchronous {
		panic("a frame of an asynchronous session on a rail that carries none")
	}
	if f.Peer == c.peer && f.Mode != 0 {
		c.flying = append(c.flying, flight{c.serial, f.Peer, f})
	}
}

// arrived takes the oldest frame of the other end. It reports whether the frame's connection is up at this
// end.
func (c *cable) arrived(other *cable) (f microproto.Frame, ok bool) {
	x := other.flying[0]
	other.flying = other.flying[1:]
	x.f.Peer = c.peer
	return x.f, c.peer == microproto.LinkAddr(x.from)+1 && x.to == microproto.LinkAddr(c.serial)+1
}

func (c *cable) hash(h io.Writer, w *rail.Path, s *session) {
	fmt.Fprint(h, "cable", c.serial, c.peer, c.kept, w)
	for _, x := range c.flying {
		fmt.Fprint(h, x.from, x.to, x.f.Data)
	}
	g := &s.renegotiation
	fmt.Fprint(h, g.DrainFirst, g.sentDrained, g.peerDrained, g.moves, g.next != nil && g.next.Over)
	if was := g.suspended; was != nil {
		fmt.Fprint(h, was.Mine, was.Theirs, was.Agreed, was.sentDrained, was.peerDrained)
	}
}

func (l *lab) deliverCable(from int) {
	if f, ok := l.cables[1-from].arrived(&l.cables[from]); ok {
		l.nodes[1-from].Input(l.now, 1, f)
	}
}

// checkRail checks that in the end a rail that is up at both ends has a path, which the session uses.
func (l *lab) checkRail(i int, s, other *session) error {
	w, v := l.nodes[i].peers[0].paths.List[0], l.nodes[1-i].peers[0].paths.List[0]
	up := w.Rail.Err == nil && v.Rail.Err == nil
	switch {
	case up != w.Up():
		return fmt.Errorf("%c: the rail is up: %v, joined: %v (%s)", 'a'+i, up, w.Up(), w.Reason)
	case other.state != SessionOpen:
	case up != (s.channel.Path != nil) || s.channel.Over || up && s.channel.Round != w.Round:
		return fmt.Errorf("%c: the rail is up: %v, and the session on %v, in round %d of %d", 'a'+i, up,
			s.conditions.Network, s.channel.Round, w.Round)
	case s.conditions.Network != other.conditions.Network || s.channel.Round != other.channel.Round:
		return fmt.Errorf("the ends are on different rails")
	}
	return nil
}

// ship sends the frames that wait for the rail. They take time and keep their order.
func (e *socketUser) ship() {
	d := e.d
	if d.cables == nil {
		return
	}
	frames := e.n.Frames(1)
	for _, f := range frames {
		c := &d.cables[e.i]
		before := len(c.flying)
		if c.send(f); len(c.flying) == before {
			f.Release()
			continue
		}
		d.clock.After(d.latency, func() {
			if len(c.flying) == 0 {
				return // it was cut
			}
			other := d.ends[1-e.i]
			f, ok := d.cables[1-e.i].arrived(c)
			if !ok {
				f.Release()
				return
			}
			other.n.Input(d.clock.Now(), 1, f)
			other.settle()
		})
	}
	e.n.Sent(1, len(frames))
}

// failRails takes the rail down and up at random, at either end and at both.
func (e *socketUser) failRails() {
	d := e.d
	if d.cables == nil || d.faultless || d.rand.IntN(12) > 0 {
		return
	}
	down := microproto.LinkEvent{Err: rail.ErrNoReason}
	switch d.rand.IntN(6) {
	case 0:
		d.cut()
		e.n.RailEvent(d.clock.Now(), 1, down)
	case 1:
		e.n.RailEvent(d.clock.Now(), 1, down)
		other := d.ends[1-e.i]
		d.clock.After(time.Duration(d.rand.Int64N(int64(d.latency))), func() {
			other.n.RailEvent(d.clock.Now(), 1, down)
			other.settle()
			d.clock.After(time.Duration(d.rand.Int64N(int64(20*d.latency))), other.rise)
		})
	case 2:
		e.n.RailEvent(d.clock.Now(), 1, microproto.LinkEvent{Peer: d.cables[e.i].peer, Err: rail.ErrNoReason})
	}
	d.clock.After(time.Duration(d.rand.Int64N(int64(20*d.latency))), e.rise)
}

func (e *socketUser) rise() {
	if e.d.cables != nil {
		e.n.RailEvent(e.d.clock.Now(), 1, microproto.LinkEvent{Up: true})
		e.settle()
	}
}

// cut drops the frames in flight on the rail, in both directions.
func (d *twoNodes) cut() {
	for i := range d.cables {
		for _, x := range d.cables[i].flying {
			x.f.Release()
		}
		d.cables[i].flying = nil
	}
}
