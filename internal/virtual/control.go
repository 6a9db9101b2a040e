package virtual

import (
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// control carries the messages of control connections: reliable, in order, after the path's
// latency. They wait while their path is cut. Messages to and from a lost machine vanish.
type control struct {
	e        *engine
	wires    []wire // connection 2k+2 is the end of wires[k] that dialled, 2k+3 the other
	messages []controlMessage
	free     []int32
}

// wire is a control connection.
type wire struct {
	rank    [2]int32
	up      [2]bool
	carried [2]microproto.Instant // last delivery, of what an end sent
}

// controlMessage is one on its way, or, without data, the news that the sender hung up; of
// a dial only rank and name.
type controlMessage struct {
	conn p2psap.ConnID // the receiving end
	rank int32
	name string
	data []byte
}

func (c *control) init(e *engine) { c.e = e }

func (c *control) keep(m controlMessage) int32 {
	if k := len(c.free); k > 0 {
		i := c.free[k-1]
		c.free = c.free[:k-1]
		c.messages[i] = m
		return i
	}
	c.messages = append(c.messages, m)
	return int32(len(c.messages) - 1)
}

func (c *control) take(i int32) controlMessage {
	m := c.messages[i]
	c.messages[i] = controlMessage{}
	c.free = append(c.free, i)
	return m
}

// rankOf is the rank of a node's name.
func rankOf(name string) int {
	r, _ := strconv.Atoi(strings.TrimPrefix(name, "peer"))
	return r
}

// latency is one way between two ranks.
func (c *control) latency(a, b int) time.Duration {
	e := c.e
	x, y := &e.net.ways[a], &e.net.ways[b]
	d := x.latency
	if x.site != y.site {
		d += y.latency + e.model.Wide[e.model.WideOf(x.site, y.site)].Latency
	}
	return d
}

// healed is when two ranks can talk again, now if they can.
func (c *control) healed(a, b int) microproto.Instant {
	t := c.e.now
	for _, cut := range c.e.net.cuts {
		if !c.e.parts(cut, a, b) {
			continue
		}
		if cut.Until == 0 {
			return microproto.Never
		}
		t = max(t, c.e.began.Add(cut.Until))
	}
	return t
}

// Control implements World.
func (e *engine) Control(h *Host, o *p2psap.Output) {
	c, rank := &e.control, int(h.Rank)
	if o.Kind == p2psap.OutDial {
		to := rankOf(o.Peer)
		i := c.keep(controlMessage{rank: int32(rank), name: o.Peer})
		e.queue.push(c.healed(rank, to).Add(c.latency(rank, to)), evDial, i)
		return
	}
	k, end := int(o.Conn)/2-1, int(o.Conn)%2
	w := &c.wires[k]
	if !w.up[end] {
		return
	}
	to := int(w.rank[1-end])
	at := max(c.healed(rank, to).Add(c.latency(rank, to)), w.carried[end])
	w.carried[end] = at
	m := controlMessage{conn: o.Conn ^ 1, rank: int32(to)}
	if o.Kind == p2psap.OutControl {
		m.data = o.Data
	} else {
		w.up[end] = false
	}
	if at != microproto.Never && !e.lost[rank] {
		e.queue.push(at, evMessage, c.keep(m))
	}
}

// dialled: a connection is made; to a lost machine it is not.
func (c *control) dialled(i int32) {
	m := c.take(i)
	near, to := c.e.hosts[m.rank], rankOf(m.name)
	if c.e.lost[to] || c.e.lost[m.rank] {
		near.Node.DialFailed(c.e.now, m.name)
		near.Settle()
		return
	}
	c.wires = append(c.wires, wire{rank: [2]int32{m.rank, int32(to)}, up: [2]bool{true, true}})
	id, far := p2psap.ConnID(2*len(c.wires)), c.e.hosts[to]
	far.Node.ControlUp(c.e.now, id+1, "")
	near.Node.ControlUp(c.e.now, id, m.name)
	far.Settle()
	near.Settle()
}

// deliver: a message is there.
func (c *control) deliver(i int32) {
	m := c.take(i)
	w, end := &c.wires[int(m.conn)/2-1], int(m.conn)%2
	if !w.up[end] || c.e.lost[m.rank] {
		return
	}
	h := c.e.hosts[m.rank]
	if m.data == nil {
		w.up[end] = false
		h.Node.ControlDown(c.e.now, m.conn)
	} else {
		h.Node.Control(c.e.now, m.conn, m.data)
	}
	h.Settle()
}
