package launch

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// scene is a run whose peers need neither processes nor a clock. A seed decides the order of events. world has peers that
// are models, meeting has members as they are shipped.
type scene struct {
	t *testing.T
	transcript
	plan     Plan
	r        *run
	rand     *rand.Rand
	now      time.Duration
	ends     []*endpoint // of all connections, by number − 1
	kids     child
	pids     int
	ticks    int
	looks    []*member
	answers  []event         // to effects, at once
	terms    []register.Term // that were proposed
	exits    []event         // of processes that the run has started
	children map[child]*member
}

// endpoint is the other end of a connection.
type endpoint struct {
	caller
	child  child
	of     *member // nil before it has a place
	queue  []event // to the run; of is set when they are delivered
	silent bool    // its host vanished
	closed bool
}

// newScene returns a run of four parts without peers.
func newScene(t *testing.T, seed uint64, change func(p *Plan)) scene {
	p := rehearsalPlan(t)
	p.PeerTimeout, p.Suspect, p.JoinTime = 2*time.Second, 500*time.Millisecond, 5*time.Second
	p.Recover, p.Parts = rendezvous.RecoverLocal, 1
	cut, err := problem.Slabs(p.Problem.N, 4, nil)
	require.NoError(t, err)
	p.Partition = cut
	if change != nil {
		change(&p)
	}
	w := scene{t: t, plan: p, r: newRun(p, "run", nil), rand: rand.New(rand.NewPCG(seed, 1)), children: map[child]*member{}}
	w.r.self, w.r.listens = process{host: "leader", pid: 1}, "127.0.0.1:1"
	return w
}

// say queues an event of a connection.
func (a *endpoint) say(o event) {
	if !a.closed && !a.silent {
		a.queue = append(a.queue, o)
	}
}

func (a *endpoint) send(m rendezvous.Message) { a.say(event{message: m}) }

// end ends a connection from the other side.
func (a *endpoint) end(why string) {
	a.say(event{closed: errors.New(why)})
	a.closed = true
}

// open makes a connection of a process; pid 0 stands for a new one.
func (w *scene) open(a *endpoint, host string, pid, rank int) {
	if pid == 0 {
		w.pids++
		pid = 100 + w.pids
	}
	w.ends = append(w.ends, a)
	a.caller = caller{conn: connection(len(w.ends)), join: rendezvous.Join{Rank: rank, Host: host, Pid: pid}}
	a.remote, a.here = "10.0.0.1:9", w.r.listens
}

// flush returns the effects of what is no event.
func (w *scene) flush() []effect {
	effects := w.r.take()
	w.list(effects)
	return effects
}

// observe returns a tick, with the answers of the kernel about silent peers.
func (w *scene) observe() *tick {
	t := &tick{}
	for _, m := range w.looks {
		if m.conn != 0 {
			t.seen = append(t.seen, sight{of: m, known: true, silent: time.Duration(m.quietTicks) * w.r.tick})
		}
	}
	w.looks, w.ticks = nil, w.ticks+1
	return t
}

// capture sends what the leader asks of the values of a peer.
func (w *scene) capture(a *endpoint, c *rendezvous.Capture, sweep uint64, valued bool) {
	box := a.of.box
	out := rendezvous.Captured{Number: c.Number, Box: box, Sweep: sweep, Residual: nullable.NaN(), Copy: c.Copy}
	points := 0
	switch {
	case c.Copy != nil:
		points, out.State = w.r.members[c.Copy.Rank].box.Points(), []byte{1}
	case valued:
		for _, b := range c.Boxes {
			for d := range 3 {
				b.Lo[d], b.Hi[d] = max(b.Lo[d], box.Lo[d]), min(b.Hi[d], box.Hi[d])
			}
			points += b.Points()
		}
	}
	a.say(event{message: out, values: make([]float64, points)})
}

// kill ends the process of a peer, with all its connections.
func (w *scene) kill(rank int) {
	m := w.r.members[rank]
	if m.conn == 0 || processOf(m) == w.r.self {
		return
	}
	p := processOf(m)
	w.endChild(m.child)
	for _, a := range w.ends {
		if joined(&a.join) == p {
			a.end("end of stream")
		}
	}
}

// endChild ends a process that the run has started.
func (w *scene) endChild(c child) {
	if m := w.children[c]; m != nil {
		delete(w.children, c)
		w.exits = append(w.exits, event{of: m, child: c, exited: true, exit: errors.New("signal: killed")})
	}
}

// retire ends a connection, and the process if the run has started it.
func (w *scene) retire(m *member) {
	w.endChild(m.child)
	if m.conn != 0 {
		a := w.ends[m.conn-1]
		a.closed, a.queue = true, nil
	}
}

// silence lets processes of the host of a peer fall silent.
func (w *scene) silence(m *member) {
	for _, a := range w.ends {
		a.silent = a.silent || m.conn != 0 && a.join.Host == m.join.Host && w.rand.IntN(3) == 0
	}
}

// vary changes a plan by the bits that all random runs share.
func vary(p *Plan, bits uint64) {
	if bits&1 != 0 {
		p.Recover = rendezvous.RecoverExact
	}
	if bits&2 != 0 {
		p.Parts = 2
	}
	if bits&4 != 0 {
		spawning(p)
	}
	if bits&8 != 0 {
		p.Keepers = 3
	}
	p.Elastic = bits&16 != 0
}
