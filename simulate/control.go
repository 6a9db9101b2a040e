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

// Control connections are reliable and ordered, and have the latency of their path. Messages wait
// while the path is cut. Messages to and from a lost machine vanish.

// connection is a host's end of a control connection.
type connection struct {
	peer    int32
	far     p2psap.ConnID // number of the other end
	up      bool
	carried microproto.Instant // when the newest message that was sent arrives
}

// controlMessage is in transit on a control connection: a dial, the answer to a dial, a message, or,
// without data, the news that the other end has disconnected.
type controlMessage struct {
	conn    p2psap.ConnID // of the receiving end; of the sending end in a dial
	far     p2psap.ConnID // in an answer: of the sending end
	refused bool
	data    []byte
}

// rankOf returns the rank of a node's name.
func rankOf(name string) int32 {
	r, _ := strconv.Atoi(strings.TrimPrefix(name, "peer"))
	return int32(r)
}

// latency returns the one-way latency between two ranks.
func (e *engine) latency(a, b int32) time.Duration {
	x, y := e.run.hostOf(int(a)), e.run.hostOf(int(b))
	if x == y && a != b {
		return e.lookahead // within one process
	}
	return max(latencyOf(e.model, x, y), e.lookahead)
}

// toLeader returns the one-way latency between a rank and the process that leads.
func (e *engine) toLeader(rank int) time.Duration {
	return max(latencyOf(e.model, e.run.hostOf(rank), e.run.resumed.leads()), e.lookahead)
}

// reachable returns when the host can reach another one; now if nothing is cut.
func (m *machine) reachable(to int32) microproto.Instant {
	t := m.now
	for _, cut := range m.e.cuts {
		if !m.e.separates(cut, int(m.index), int(to)) {
			continue
		}
		if cut.Until == 0 {
			return microproto.Never
		}
		t = max(t, m.e.instant(cut.Until))
	}
	return t
}

// sendControl sends a control message, and returns when it arrives: not before after, so that a
// connection stays ordered.
func (m *machine) sendControl(to int32, kind eventKind, after microproto.Instant, l controlMessage) microproto.Instant {
	at := max(m.reachable(to).Add(m.e.latency(m.index, to)), after)
	if at != microproto.Never && !m.e.lost[m.index] {
		f := m.flight()
		f.from, f.control = m.index, &l
		m.post(to, at, kind, f)
	}
	return at
}

// Control implements World.
func (m *machine) Control(_ *virtual.Host, o *p2psap.Output) {
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

// acceptDial accepts a connection. A lost machine refuses.
func (m *machine) acceptDial(f *flight) {
	from, l := f.from, f.control
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

// dialDone handles the answer to a dial.
func (m *machine) dialDone(f *flight) {
	from, l := f.from, f.control
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

// controlArrived handles a control message.
func (m *machine) controlArrived(f *flight) {
	l := f.control
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
