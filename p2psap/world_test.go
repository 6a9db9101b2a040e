package p2psap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// world runs nodes in virtual time, with control connections that break, duplicate and delay at random.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	now    microproto.Instant
	nodes  []*worldNode
	queue  []worldEvent
	order  int
	conns  map[worldConn]worldConn // this end: the other end
	lastID ConnID
	script func(format string, a ...any) // may be nil: transcript of control messages

	breakChance, doubleChance, lateChance float64 // per control message
	frameLoss                             float64
	latency                               time.Duration
	tap                                   func(from, to *worldNode, frame []byte) // may be nil: sees what passes
}

type worldConn struct {
	node int
	id   ConnID
}

type worldEvent struct {
	at    microproto.Instant
	order int
	f     func()
}

type worldNode struct {
	*Node
	w      *world
	index  int
	dead   bool // takes and gives nothing
	killed bool // dead, and its host says so
	muted  bool // its connections stand, it says nothing
	hidden bool // other nodes cannot dial it
	news   []Output
	opened map[SessionID]bool
	ended  map[SessionID]error
	busy   bool   // the link takes nothing
	cable  *cable // its end of a rail; nil: it has none
	wire   *wire  // that its link sends by; nil: the link takes everything at once
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), conns: map[worldConn]worldConn{}, latency: time.Millisecond}
}

// worldLink names nodes by their index plus one.
type worldLink struct{ w *world }

func (l worldLink) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}
func (l worldLink) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: 1400, Reliable: true, Ordered: true}
}
func (l worldLink) Offer(string) ([]byte, error) { return nil, nil }
func (l worldLink) Accept([]byte) (microproto.LinkAddr, error) {
	return 0, fmt.Errorf("world links have names")
}

type namedLink struct {
	worldLink
	self string
	mtu  int
}

func (l namedLink) Caps(m microproto.Mode) microproto.Caps {
	c := l.worldLink.Caps(m)
	if l.mtu != 0 {
		c.MTU = l.mtu
	}
	return c
}
func (l namedLink) Offer(string) ([]byte, error) { return []byte(l.self), nil }
func (l namedLink) Accept(remote []byte) (microproto.LinkAddr, error) {
	for i, n := range l.w.nodes {
		if n.Name() == string(remote) {
			return microproto.LinkAddr(i + 1), nil
		}
	}
	return 0, fmt.Errorf("no link end %q", remote)
}

// add starts a node; change may adjust its configuration.
func (w *world) add(name string, change func(*NodeConfig)) *worldNode {
	c := NodeConfig{
		Name: name, Run: "run", Version: "v1", Catalog: standIns(), Policy: TablePolicy{},
		Rails: []Rail{{Network: Memory, Link: namedLink{worldLink: worldLink{w}, self: name}}},
		Host:  "host-" + name, Process: 1, Seed: w.rand.Uint64(), PeerTimeout: 4 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	core, err := NewNode(c)
	require.NoError(w.t, err)
	n := &worldNode{Node: core, w: w, index: len(w.nodes), opened: map[SessionID]bool{}, ended: map[SessionID]error{}}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *world) after(d time.Duration, f func()) {
	w.order++
	w.queue = append(w.queue, worldEvent{w.now.Add(d), w.order, f})
}

func (w *world) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

func (w *world) jitter() time.Duration {
	return w.latency + time.Duration(w.rand.Int64N(int64(w.latency)))
}

// connect has every pair of nodes connect to each other.
func (w *world) connect() {
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a != b {
				require.NoError(w.t, a.Connect(w.now, b.Name(), b.Name()))
			}
		}
	}
	w.settle()
}

// settle carries the nodes' outputs out until there are none.
func (w *world) settle() {
	for again := true; again; {
		again = false
		for _, n := range w.nodes {
			if n.dead {
				continue
			}
			out := n.Drain(nil)
			again = again || len(out) > 0
			for _, o := range out {
				w.carryOut(n, o)
			}
			if n.wire != nil {
				n.wire.flush(n)
			} else if !n.busy {
				frames := n.Frames(0)
				for i := range frames {
					w.frame(n, frames[i])
				}
				n.Sent(0, len(frames))
				again = again || n.Waiting(0) > 0
			}
			w.ship(n)
		}
	}
}

func (w *world) frame(from *worldNode, f microproto.Frame) {
	to := w.nodes[f.Peer-1]
	f.Peer = microproto.LinkAddr(from.index + 1)
	if w.tap != nil {
		w.tap(from, to, f.Data)
	}
	if w.chance(w.frameLoss) || from.muted {
		f.Release()
		return
	}
	w.after(w.latency, func() {
		if to.dead || to.muted {
			f.Release()
			return
		}
		to.Input(w.now, 0, f)
	})
}

func (w *world) carryOut(n *worldNode, o Output) {
	switch o.Kind {
	case OutControl:
		w.control(n, o)
	case OutDial:
		w.after(w.jitter(), func() { w.dial(n, o.Peer) })
	case OutDisconnect:
		w.note("%s hangs up: %v", n.Name(), o.Err)
		w.cut(worldConn{n.index, o.Conn}, false)
	case OutOpened:
		n.opened[o.Session] = true
	case OutEnded:
		n.ended[o.Session] = o.Err
	}
	if o.Kind > OutDisconnect && o.Kind != OutActivity {
		w.note("%s: %v peer=%q err=%v", n.Name(), o.Kind, o.Peer, o.Err)
		n.news = append(n.news, o)
	}
}

func (w *world) note(format string, a ...any) {
	if w.script != nil {
		w.script("%6.1fms "+format, append([]any{float64(w.now) / 1e6}, a...)...)
	}
}

func (w *world) dial(n *worldNode, name string) {
	if n.dead {
		return
	}
	for _, to := range w.nodes {
		if to.Name() == name && !to.dead && !to.hidden {
			w.lastID++
			a, b := worldConn{n.index, w.lastID}, worldConn{to.index, w.lastID + 1}
			w.lastID++
			w.conns[a], w.conns[b] = b, a
			w.note("%s dials %s", n.Name(), name)
			to.ControlUp(w.now, b.id, "")
			n.ControlUp(w.now, a.id, name)
			return
		}
	}
	if slices.ContainsFunc(w.nodes, func(n *worldNode) bool { return n.Name() == name && n.killed }) {
		n.DialRefused(w.now, name)
		return
	}
	n.DialFailed(w.now, name)
}

// cut breaks a connection. What is in flight is lost, unless it is orderly.
func (w *world) cut(c worldConn, both bool) {
	other, ok := w.conns[c]
	if !ok {
		return
	}
	delete(w.conns, c)
	if both && !w.nodes[c.node].dead {
		w.nodes[c.node].ControlDown(w.now, c.id)
	}
	w.after(4*w.latency, func() { // after what was sent before
		if _, ok := w.conns[other]; ok {
			delete(w.conns, other)
			if !w.nodes[other.node].dead {
				w.nodes[other.node].ControlDown(w.now, other.id)
			}
		}
	})
}

func (w *world) control(n *worldNode, o Output) {
	from := worldConn{n.index, o.Conn}
	to, ok := w.conns[from]
	if !ok || n.muted {
		return
	}
	if m, err := control.Parse(o.Data); err == nil && w.script != nil {
		w.note("%s > %s %s", n.Name(), w.nodes[to.node].Name(), dissect(m))
	}
	if w.chance(w.breakChance) {
		w.note("the connection breaks")
		delete(w.conns, to)
		delete(w.conns, from)
		w.after(0, func() {
			n.ControlDown(w.now, from.id)
			if !w.nodes[to.node].dead {
				w.nodes[to.node].ControlDown(w.now, to.id)
			}
		})
		return
	}
	deliver := func(late bool) func() {
		return func() {
			if _, up := w.conns[to]; (up || late) && !w.nodes[to.node].dead && !w.nodes[to.node].muted {
				w.nodes[to.node].Control(w.now, to.id, o.Data)
			}
		}
	}
	w.after(w.latency, deliver(false))
	if w.chance(w.doubleChance) {
		w.after(w.latency, deliver(false))
	}
	if w.chance(w.lateChance) {
		w.after(50*w.latency, deliver(true))
	}
}

// step handles the next event or timer; false when there is none before the limit.
func (w *world) step(limit microproto.Instant) bool {
	w.settle()
	next, which := microproto.Never, -1
	for i, e := range w.queue {
		if e.at < next || (e.at == next && which >= 0 && e.order < w.queue[which].order) {
			next, which = e.at, i
		}
	}
	for _, n := range w.nodes {
		checkTimers(w.t, n.Node)
		if d := n.Deadline(); !n.dead && !n.muted && d < next {
			next, which = d, -1
		}
	}
	if next > limit {
		w.now = limit
		return false
	}
	w.now = max(w.now, next)
	if which >= 0 {
		f := w.queue[which].f
		w.queue = slices.Delete(w.queue, which, which+1)
		f()
	} else {
		for _, n := range w.nodes {
			if !n.dead && !n.muted && n.Deadline() <= w.now {
				n.Advance(w.now)
			}
		}
	}
	w.settle()
	return true
}

// run lets time pass; until returns early when the condition holds.
func (w *world) run(d time.Duration) { w.until(d, func() bool { return false }) }

func (w *world) until(d time.Duration, over func() bool) bool {
	limit := w.now.Add(d)
	for steps := 0; !over(); steps++ {
		if steps > 1e6 {
			w.t.Fatalf("a million steps by %v: something goes round in circles", w.now)
		}
		if !w.step(limit) {
			return over()
		}
	}
	return true
}

func (n *worldNode) state(id SessionID) SessionState {
	s, _ := n.State(id)
	return s
}

// dissect renders a control message for transcripts.
func dissect(m control.Message) string {
	text := fmt.Sprintf("%v seq=%d ack=%d", m.Kind, m.Sequence, m.Ack)
	body, err := m.Decode()
	if err != nil {
		return text
	}
	switch b := body.(type) {
	case *control.Hello:
		text += fmt.Sprintf(" name=%s run=%s version=%s cluster=%q network=%v offer=%q", b.Name, b.Run, b.Version,
			b.Cluster, b.Network, b.Offer)
	case *control.Open:
		text += fmt.Sprintf(" name=%s mode=%v protocols=%v frame=%d receive=%d slots=%v", b.Name, b.Mode, b.Protocols,
			b.FrameBytes, b.ReceiveBytes, b.Slots)
	case *control.OpenAck:
		text += fmt.Sprintf(" frame=%d", b.FrameBytes)
	case *control.Reject:
		text += " reason=" + b.Reason
	case *control.Close:
		if !b.Ack {
			text += fmt.Sprintf(" known=%v accepted=%d", b.To != 0, b.Accepted)
		}
	case *control.Proposal:
		cause := [...]string{"", "scheme", "context", "accept", "rail"}[b.Cause]
		text += fmt.Sprintf(" epoch=%d for=%s mode=%v distance=%v lossy=%v protocols=%v sent=%d reason=%q", b.Epoch, cause,
			b.Mode, b.Distance, b.Lossy, b.Protocols, b.Sent, b.Reason)
	case *control.PathState:
		text += fmt.Sprintf(" network=%v round=%d %s offer=%q reason=%q", b.Network, b.Round,
			[...]string{"", "offered", "ready", "down"}[b.Stage], b.Offer, b.Reason)
	case *control.Drained:
		text += fmt.Sprintf(" epoch=%d", b.Epoch)
	case *control.Switched:
		text += fmt.Sprintf(" epoch=%d sent=%d accepted=%d stored=%d credit=%d", b.Epoch, b.Sent, b.Accepted, b.Stored,
			b.Credit)
	}
	return text
}
