package launch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// world is a run with peers that need neither processes nor a clock. They answer the effects of the run with events, in
// an order that a seed decides. The messages of one connection stay in their order.
type world struct {
	t *testing.T
	transcript
	r        *run
	rand     *rand.Rand
	now      time.Duration
	actors   []*simulated // all connections, by number − 1
	kids     child
	pids     int
	ticks    int
	looks    []*member
	answers  []event         // to effects, at once
	terms    []register.Term // that were proposed
	exits    []event         // of processes that the run has started
	children map[child]*member
}

// simulated is the other end of a connection.
type simulated struct {
	caller
	child    child
	of       *member // nil before it has a place
	queue    []event // of is set when they are delivered
	control  string
	epoch    int
	sweep    uint64
	valued   bool
	relaxing bool
	silent   bool // its host vanished
	closed   bool
}

// worldOf returns a world whose peers are about to start.
func worldOf(t *testing.T, seed uint64, change func(p *Plan)) *world {
	p := rehearsalPlan(t)
	p.PeerTimeout, p.Suspect, p.Recover, p.Parts = 2*time.Second, 500*time.Millisecond, rendezvous.RecoverLocal, 1
	cut, err := problem.Slabs(p.Problem.N, 4, nil)
	require.NoError(t, err)
	p.Partition = cut
	if change != nil {
		change(&p)
	}
	w := &world{t: t, r: newRun(p, "run", nil), rand: rand.New(rand.NewPCG(seed, 1))}
	w.children = map[child]*member{}
	w.r.self, w.r.listens = process{host: "leader", pid: 1}, "127.0.0.1:1"
	for _, m := range w.r.members {
		var a *simulated
		if first := m.rank - m.rank%p.Parts; first == m.rank {
			a = w.connect(fmt.Sprintf("host %d", m.rank/p.Parts%2), 0, m.rank)
			if p.Spawn != nil {
				w.kids++
				a.child = w.kids
				w.children[a.child] = m
			}
		} else {
			host := w.actors[first]
			a = w.connect(host.join.Host, host.join.Pid, m.rank)
			a.child = host.child
		}
		m.caller, m.child, m.name = a.caller, a.child, fmt.Sprintf("process %d", a.child)
		a.of, a.control, a.valued, a.relaxing = m, fmt.Sprintf("10.0.0.1:%d", a.conn), true, true
		m.control, m.ready, m.assigned, m.informed = a.control, true, true, true
	}
	w.r.begin(0)
	effects := w.r.take()
	w.list(effects)
	w.perform(effects)
	return w
}

// connect makes a connection of a process; pid 0 stands for a new one.
func (w *world) connect(host string, pid, rank int) *simulated {
	if pid == 0 {
		w.pids++
		pid = 100 + w.pids
	}
	a := &simulated{}
	w.actors = append(w.actors, a)
	a.caller = caller{conn: connection(len(w.actors)), join: rendezvous.Join{Rank: rank, Host: host, Pid: pid}}
	a.remote, a.here = "10.0.0.1:9", w.r.listens
	return a
}

// say queues an event of a connection.
func (a *simulated) say(o event) {
	if !a.closed && !a.silent {
		a.queue = append(a.queue, o)
	}
}

func (a *simulated) send(m rendezvous.Message) { a.say(event{message: m}) }

// end ends a connection from the other side.
func (a *simulated) end(why string) {
	a.say(event{closed: errors.New(why)})
	a.closed = true
}

// perform lets the world react to effects.
func (w *world) perform(effects []effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case send:
			if e.to.conn != 0 {
				w.receive(w.actors[e.to.conn-1], e.msg)
			}
		case welcome:
			a := w.actors[e.of.conn-1]
			if a.of = e.of; a.closed {
				w.answers = append(w.answers, event{of: e.of, refused: errors.New("broken pipe")})
				continue
			}
			if e.msg.Epoch >= a.epoch && a.control == "" {
				a.epoch = e.msg.Epoch
				a.listen(w)
			}
		case refuse:
			w.actors[e.conn-1].closed = true
		case start:
			if w.rand.IntN(4) == 0 {
				w.answers = append(w.answers, event{of: e.of, started: &started{err: errors.New("no memory")}})
				continue
			}
			w.kids++
			name := fmt.Sprintf("process %d", w.kids)
			w.answers = append(w.answers, event{of: e.of, child: w.kids, started: &started{name: name}})
			a := w.connect("leader", 0, e.seat)
			a.child, w.children[w.kids] = w.kids, e.of
			a.say(event{joined: &a.caller})
		case retire, disconnect, finish:
			w.hangUp(e)
		case look:
			w.looks = append(w.looks, e.at)
		case propose:
			w.terms = append(w.terms, e.want)
		}
	}
}

func (w *world) hangUp(e effect) {
	switch e := e.(type) {
	case retire:
		w.endChild(e.of.child)
		if e.of.conn != 0 {
			a := w.actors[e.of.conn-1]
			a.closed, a.queue = true, nil
		}
	case disconnect:
		a := w.actors[e.of.conn-1]
		a.end("closed by the leader")
	}
}

// handle lets the run handle an event, and the answers to its effects as a shell does.
func (w *world) handle(o event) {
	w.perform(w.transcript.handle(w.r, w.now, o))
	for len(w.answers) > 0 {
		o := w.answers[0]
		w.answers = w.answers[1:]
		w.perform(w.transcript.handle(w.r, w.now, o))
	}
}

// listen says that a peer has entered its epoch.
func (a *simulated) listen(w *world) {
	a.control = fmt.Sprintf("10.0.0.1:%d", 100*a.epoch+int(a.conn))
	l := rendezvous.Listen{Control: a.control, Epoch: a.epoch, Sweep: a.sweep, Idle: !a.relaxing}
	if a.valued {
		l.Box = a.of.box
		if kept := iterate.Iteration(a.sweep / 10 * 10); w.r.exact() && kept > 0 {
			next := iterate.Rank((a.of.rank + 1) % len(w.r.members))
			l.Holding = held(next, kept)
		}
	}
	a.send(l)
}

// receive lets a peer react to a message.
func (w *world) receive(a *simulated, msg rendezvous.Message) {
	if a.closed || a.silent {
		return
	}
	switch msg := msg.(type) {
	case rendezvous.Epoch:
		a.epoch = msg.Epoch
		a.listen(w)
	case *workload:
		if w.work(a, msg); a.relaxing {
			a.send(rendezvous.Ready{Epoch: a.epoch})
		}
	case rendezvous.Capture:
		w.capture(a, &msg)
	case rendezvous.Host:
		other := w.connect(a.join.Host, a.join.Pid, msg.Rank)
		other.child = a.child
		other.say(event{joined: &other.caller})
	case rendezvous.Keep:
		a.send(rendezvous.Keeping{Address: fmt.Sprintf("10.0.0.1:%d", 5000+int(a.conn))})
	case rendezvous.Stop:
		a.finish(Interrupted)
	case rendezvous.Lost:
		a.finish(Failed)
	case rendezvous.Bye:
		a.end("end of stream")
	}
}

// work lets a peer begin the work of an epoch.
func (w *world) work(a *simulated, l *workload) {
	if l.assign.Epoch != a.epoch {
		return
	}
	if !a.valued && l.assign.Repair != nil {
		a.send(rendezvous.Repaired{Epoch: a.epoch, Method: "sor", Residual: nullable.NaN()})
	}
	if a.valued, a.relaxing = true, true; l.assign.Resume != nil {
		a.sweep = l.assign.Resume.Iterate
	}
}

func (w *world) capture(a *simulated, c *rendezvous.Capture) {
	box := a.of.box
	out := rendezvous.Captured{Number: c.Number, Box: box, Sweep: a.sweep, Residual: nullable.NaN(), Copy: c.Copy}
	points := 0
	switch {
	case c.Copy != nil:
		points, out.State = w.r.members[c.Copy.Rank].box.Points(), []byte{1}
	case a.valued:
		for _, b := range c.Boxes {
			for d := range 3 {
				b.Lo[d], b.Hi[d] = max(b.Lo[d], box.Lo[d]), min(b.Hi[d], box.Hi[d])
			}
			points += b.Points()
		}
	}
	a.say(event{message: out, values: make([]float64, points)})
}

// finish lets a peer send its block and its result.
func (a *simulated) finish(reason string) {
	if a.of == nil || !a.relaxing && reason == Converged {
		return
	}
	if a.relaxing {
		a.say(event{bytes: blocks.Bytes(a.of.box)})
	}
	a.send(rendezvous.Result{Epoch: a.epoch, Reason: reason, Lost: -1})
}

// deliver handles an event that is queued on a random connection, and reports whether there was one.
func (w *world) deliver() bool {
	var ready []*simulated
	for _, a := range w.actors {
		if len(a.queue) > 0 {
			ready = append(ready, a)
		}
	}
	if len(w.exits) > 0 && w.rand.IntN(4) == 0 {
		o := w.exits[0]
		w.exits = w.exits[1:]
		w.handle(o)
		return true
	}
	if n := len(ready) + len(w.terms); n == 0 {
		return len(w.exits) > 0
	} else if w.rand.IntN(n) >= len(ready) {
		t := w.terms[0]
		w.terms = w.terms[1:]
		w.handle(event{decided: &t})
		return true
	}
	a := ready[w.rand.IntN(len(ready))]
	o := a.queue[0]
	a.queue = a.queue[1:]
	w.now += time.Millisecond
	if o.joined != nil {
		w.handle(o)
		return true
	}
	if o.of = a.of; o.of == nil { // it has no place: nothing reads what it sends
		return true
	}
	w.handle(o)
	return true
}

// tick handles a tick.
func (w *world) tick() {
	w.now += w.r.tick
	t := &tick{}
	for _, m := range w.looks {
		if m.conn != 0 {
			t.seen = append(t.seen, sight{of: m, known: true, silent: time.Duration(m.quietTicks) * w.r.tick})
		}
	}
	w.looks, w.ticks = nil, w.ticks+1
	for _, a := range w.actors {
		if a.of != nil && !a.closed && !a.silent && a.relaxing && w.ticks%8 == 0 {
			a.sweep++
			a.send(rendezvous.Beat{Sweep: a.sweep, Residual: 0.1})
		}
	}
	w.handle(event{tick: t})
}

// settle lets everything be delivered, with ticks, until all peers relax in the same epoch or the run has failed.
func (w *world) settle() {
	for range 3000 {
		for w.deliver() {
		}
		if w.r.failure != nil || !w.r.active && len(w.r.pending) == 0 {
			return
		}
		w.tick()
	}
	require.Fail(w.t, "not all peers relax again", "%s", w.String())
}

// kill ends the process of a peer, with all its connections.
func (w *world) kill(rank int) {
	m := w.r.members[rank]
	if m.conn == 0 {
		return
	}
	p := processOf(m)
	w.endChild(m.child)
	for _, a := range w.actors {
		if joined(&a.join) == p {
			a.end("end of stream")
		}
	}
}

// endChild ends a process that the run has started.
func (w *world) endChild(c child) {
	if m := w.children[c]; m != nil {
		delete(w.children, c)
		w.exits = append(w.exits, event{of: m, child: c, exited: true, exit: errors.New("signal: killed")})
	}
}

// over lets all peers end the run.
func (w *world) over() {
	for range 3000 {
		if w.r.failure == nil {
			for _, a := range w.actors {
				if a.of != nil && !a.closed && a.of.result == nil && len(a.queue) == 0 {
					a.finish(Converged)
				}
			}
		}
		for w.deliver() {
		}
		if w.r.finished() {
			return
		}
		w.tick()
	}
	require.Fail(w.t, "the run does not end", "%s", w.String())
}
