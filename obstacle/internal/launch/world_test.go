package launch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// world is a scene whose peers are models. The messages of one connection stay in their order.
type world struct {
	scene
	resumed map[int]rendezvous.Resume // by epoch
	seed    uint64
	series  *series      // nil for a stationary problem
	actors  []*simulated // all connections, by number − 1
}

// worldOf returns a world whose peers begin to relax.
func worldOf(t *testing.T, seed uint64, change func(p *Plan)) *world {
	w := emptyWorld(t, seed, change)
	for _, m := range w.r.members {
		a := w.process(m)
		m.caller, m.child, m.name = a.caller, a.child, fmt.Sprintf("process %d", a.child)
		a.of, a.control, a.started, a.valued, a.relaxing = m, fmt.Sprintf("10.0.0.1:%d", a.conn), true, true, true
		m.control, m.ready, m.assigned, m.informed = a.control, true, true, true
	}
	w.r.active = true
	w.r.beginRelaxation()
	w.r.recovered()
	w.perform(w.flush())
	return w
}

// gatheringWorld returns a world whose peers are about to join.
func gatheringWorld(t *testing.T, seed uint64, change func(p *Plan)) *world {
	w := emptyWorld(t, seed, change)
	w.r.beginJoining()
	for _, m := range w.r.members {
		if m.reserved {
			continue
		}
		a := w.process(m)
		m.child, m.name, m.awaited = a.child, fmt.Sprintf("process %d", a.child), a.child != 0
		if a.child == 0 { // users count processes
			a.join.Rank /= w.plan.Parts
		}
		a.say(event{joined: &a.caller})
	}
	return w
}

// process connects the process of a peer, or another peer of its process.
func (w *world) process(m *member) (a *simulated) {
	first := m.rank - m.rank%w.plan.Parts
	if first != m.rank {
		host := w.actors[first]
		a = w.connect(host.join.Host, host.join.Pid, m.rank)
		a.child = host.child
		return a
	}
	a = w.connect(fmt.Sprintf("host %d", m.rank/w.plan.Parts%2), 0, m.rank)
	if w.plan.Spawn != nil {
		w.kids++
		a.child = w.kids
		w.children[a.child] = m
	}
	return a
}

// emptyWorld returns a world without peers.
func emptyWorld(t *testing.T, seed uint64, change func(p *Plan)) *world {
	w := &world{scene: newScene(t, seed, change), seed: seed}
	var err error
	w.series, err = newSeries(&w.plan)
	require.NoError(t, err)
	return w
}

// succeed lets another process lead the run: all peers lose their connections, and return there.
func (w *world) succeed() {
	old := w.r
	w.plan.Spawn = nil
	w.r = newRun(w.plan, "run", nil)
	w.r.Partition, w.r.losses = old.Partition, old.losses
	w.r.self, w.r.listens = process{host: "host 0", pid: 101}, "10.0.0.1:5001"
	w.series = emptySeries(&w.plan)
	w.terms, w.exits, w.looks, w.children = nil, nil, nil, map[child]*member{}
	t := register.Term{Number: old.term.Number + 1, Epoch: old.epoch, Leader: w.r.listens, Keepers: []string{w.r.listens}}
	fmt.Fprintf(w, "%v the leader is lost\n", w.now)
	w.r.succeed(t, nil)
	w.perform(w.flush())
	for _, a := range slices.Clone(w.actors) {
		a.queue = nil
		if a.closed || a.of == nil || a.silent {
			a.closed = true
			continue
		}
		a.closed = true
		b := w.connect(a.join.Host, a.join.Pid, a.of.rank)
		b.control, b.epoch, b.sweep, b.valued, b.relaxing = a.control, a.epoch, a.sweep, a.valued, a.relaxing
		b.ends, b.mute, b.started = a.ends, w.series != nil, a.started
		b.join.Standing = &rendezvous.Standing{
			Epoch: a.epoch, Settled: a.relaxing, Valued: a.valued, Sweep: a.sweep, Control: a.control, Steps: a.ends,
		}
		b.say(event{joined: &b.caller})
	}
}

// connect makes a connection of a process; pid 0 stands for a new one.
func (w *world) connect(host string, pid, rank int) *simulated {
	a := &simulated{}
	w.open(&a.endpoint, host, pid, rank)
	w.actors = append(w.actors, a)
	return a
}

// perform lets the world react to effects.
func (w *world) perform(effects []effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case send:
			if e.to.conn != 0 {
				w.receive(w.actors[e.to.conn-1], e.msg)
			}
		case relax:
			w.now = 0
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
		case beginSteps:
			require.NoError(w.t, w.series.start(0, nil, e.suspended))
		case collectSteps:
			w.series.collect(e.first)
		case displace:
			if e.of.conn != 0 {
				w.actors[e.of.conn-1].displaced = !e.back
			}
		case restartSteps:
			w.series.restart(e.epoch)
			w.answers = append(w.answers, event{restarted: true})
		case propose:
			w.terms = append(w.terms, e.want)
		}
	}
}

func (w *world) hangUp(e effect) {
	switch e := e.(type) {
	case retire:
		w.retire(e.of)
	case finish:
		w.actors[e.of.conn-1].displaced = true
	case disconnect:
		a := w.actors[e.of.conn-1]
		a.end("closed by the leader")
	}
}

// handle lets the run handle an event, and the answers to its effects as a shell does.
func (w *world) handle(o event) {
	for w.answers = []event{o}; len(w.answers) > 0; {
		o := w.answers[0]
		w.answers = w.answers[1:]
		if w.series != nil {
			o.steps = w.series.known()
		}
		active := w.r.active
		effects := w.transcript.handle(w.r, w.now, o)
		w.perform(effects)
		if active && !w.r.active && w.r.failure == nil && w.r.epoch > 0 {
			w.checkSettled()
		}
	}
}

// deliver handles an event that is queued on a random connection, and reports whether there was one.
func (w *world) deliver() bool {
	var ready []*simulated
	for _, a := range w.actors {
		if len(a.queue) > 0 && !w.blocked(a) {
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
	if w.series != nil && !a.displaced {
		w.place(a, &o)
	}
	w.handle(o)
	return true
}

// blocked reports whether there is no room yet for the end of a time step that a peer sends next.
func (w *world) blocked(a *simulated) bool {
	_, is := a.queue[0].message.(rendezvous.Step)
	return is && !a.displaced && w.series.next[a.of.rank] > w.series.done+1 && !w.series.suspended[a.of.rank]
}

// place does with messages about time steps what a shell does before it hands them over.
func (w *world) place(a *simulated, o *event) {
	switch m := o.message.(type) {
	case rendezvous.Listen:
		w.series.resume(a.of.rank, m.Epoch)
	case rendezvous.Step:
		box := w.r.Partition.Box(iterate.Rank(a.of.rank))
		data := make([]byte, blocks.Bytes(box))
		err := w.series.put(a.of.rank, 0, data)
		if err == nil {
			err = w.series.complete(a.of.rank, m, int64(len(data)))
		}
		if err != nil {
			w.fail("the end of a time step does not fit: " + err.Error())
		}
	}
}

// endSteps lets peers end their time steps, none before another one has ended the step before.
func (w *world) endSteps() {
	for _, a := range w.actors {
		if a.of == nil || a.closed || a.silent || !a.relaxing || a.mute || w.series == nil {
			continue
		}
		if m := w.series.done + 1; m <= w.r.Problem.Steps() && m > 0 && a.newestEnd() == m-1 && a.epoch == w.r.epoch {
			a.ends = append(a.ends, m)[max(0, len(a.ends)-rendezvous.MaxHeld+1):]
			a.send(rendezvous.Step{Step: m})
		}
	}
}

func (a *simulated) newestEnd() int {
	if len(a.ends) == 0 {
		return 0
	}
	return a.ends[len(a.ends)-1]
}

// tick handles a tick.
func (w *world) tick() {
	w.now += w.r.tick
	t := w.observe()
	for _, a := range w.actors {
		if a.of != nil && !a.closed && !a.silent && a.relaxing && w.ticks%8 == 0 {
			a.sweep++
			a.send(rendezvous.Beat{Sweep: a.sweep, Residual: 0.1})
		}
	}
	if w.ticks%4 == 0 {
		w.endSteps()
	}
	w.handle(event{tick: t})
}

// settle lets everything be delivered, with ticks, until all peers relax in the same epoch or the run has failed.
func (w *world) settle() {
	for range 3000 {
		for w.deliver() {
		}
		if w.r.failure != nil || !w.r.active && (len(w.r.pending) == 0 || slices.ContainsFunc(w.r.members, (*member).done)) {
			return
		}
		w.tick()
	}
	w.fail("not all peers relax again")
}

// over lets all peers end the run.
func (w *world) over() {
	for range 3000 {
		if w.r.failure == nil {
			for _, a := range w.actors {
				if a.of != nil && !a.closed && a.of.result == nil && len(a.queue) == 0 && !(w.series != nil && w.series.done < w.r.Problem.Steps()) {
					a.finish(Converged)
				}
			}
		}
		for w.deliver() {
		}
		if w.r.finished() {
			for _, m := range w.r.members {
				if m.result != nil && m.result.Epoch != w.r.epoch {
					w.fail(nameOf(m) + " has the result of another epoch")
				}
			}
			return
		}
		w.tick()
	}
	w.fail("the run does not end")
}
