package simulate

import (
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Control connections are reliable and in order, after the path's latency. They wait while
// their path is cut. Messages to and from a lost machine vanish.

// wire is a host's end of a control connection.
type connection struct {
	peer    int32
	far     p2psap.ConnID // the other end's number
	up      bool
	carried microproto.Instant // last delivery of what was sent
}

// letter is a control message on its way: a dial, the answer to one, a message, or, without
// data, the news that the other end hung up.
type controlMessage struct {
	conn    p2psap.ConnID // the receiving end; of a dial the sending one
	far     p2psap.ConnID // of an answer
	refused bool
	data    []byte
}

// rankOf is the rank of a node's name.
func rankOf(name string) int32 {
	r, _ := strconv.Atoi(strings.TrimPrefix(name, "peer"))
	return int32(r)
}

// latency is one way between two ranks.
func (e *engine) latency(a, b int32) time.Duration {
	x, y := &e.routes[a], &e.routes[b]
	d := x.latency
	if x.site != y.site {
		d += y.latency + e.wanLink(x.site, y.site).latency
	}
	return max(d, e.lookahead)
}

// healed is when the host can talk with another, now if it can.
func (m *machine) reachable(to int32) microproto.Instant {
	t := m.now
	for _, cut := range m.e.cuts {
		if !m.e.separates(cut, int(m.index), int(to)) {
			continue
		}
		if cut.Until == 0 {
			return microproto.Never
		}
		t = max(t, m.e.began.Add(cut.Until))
	}
	return t
}

// mail sends a control message, not before one sent earlier on its connection.
func (m *machine) sendControl(to int32, kind eventKind, after microproto.Instant, l controlMessage) microproto.Instant {
	at := max(m.reachable(to).Add(m.e.latency(m.index, to)), after)
	if at != microproto.Never && !m.e.lost[m.index] {
		f := m.flight()
		f.from, f.letter = m.index, &l
		m.post(to, at, kind, f)
	}
	return at
}

func (m *machine) control(o *p2psap.Output) {
	if o.Kind == p2psap.OutDial {
		to := rankOf(o.Peer)
		m.wires = append(m.wires, connection{peer: to})
		m.sendControl(to, evDial, 0, controlMessage{conn: p2psap.ConnID(len(m.wires))})
		return
	}
	w := &m.wires[o.Conn-1]
	if !w.up {
		return
	}
	l := controlMessage{conn: w.far}
	if o.Kind == p2psap.OutControl {
		l.data = o.Data
	} else {
		w.up = false
	}
	w.carried = m.sendControl(w.peer, evMessage, w.carried, l)
}

// answer: somebody dials. A lost machine refuses for its part.
func (m *machine) acceptDial(f *flight) {
	from, l := f.from, f.letter
	m.land(f)
	if m.e.lost[m.index] {
		m.sendControl(from, evUp, 0, controlMessage{conn: l.conn, refused: true})
		return
	}
	m.wires = append(m.wires, connection{peer: from, far: l.conn, up: true})
	id := p2psap.ConnID(len(m.wires))
	m.wires[id-1].carried = m.sendControl(from, evUp, 0, controlMessage{conn: l.conn, far: id})
	m.host.Node.ControlUp(m.now, id, "")
	m.host.Settle()
}

// dialled: a dial has come to an end.
func (m *machine) dialDone(f *flight) {
	from, l := f.from, f.letter
	m.land(f)
	if m.e.lost[m.index] {
		return
	}
	w := &m.wires[l.conn-1]
	if l.refused {
		m.host.Node.DialFailed(m.now, virtual.NameOf(iterate.Rank(from)))
	} else {
		w.far, w.up = l.far, true
		m.host.Node.ControlUp(m.now, l.conn, virtual.NameOf(iterate.Rank(from)))
	}
	m.host.Settle()
}

// deliver: a control message is there.
func (m *machine) controlArrived(f *flight) {
	l := f.letter
	m.land(f)
	w := &m.wires[l.conn-1]
	if !w.up || m.e.lost[m.index] {
		return
	}
	if l.data == nil {
		w.up = false
		m.host.Node.ControlDown(m.now, l.conn)
	} else {
		m.host.Node.Control(m.now, l.conn, l.data)
	}
	m.host.Settle()
}
