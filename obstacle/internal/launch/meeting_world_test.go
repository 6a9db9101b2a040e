package launch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/register"
	shipped "github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// meeting is a scene whose peers are the members that are shipped. The messages of one connection stay in their order.
type meeting struct {
	scene
	actors []*party       // all connections, by number − 1
	term   *register.Term // that follows the one whose leader was lost; nil: none was decided
	losses []Loss         // that the keepers know
	lost   bool           // no process leads the run
	led    int            // processes that have led the run after the first
	from   map[int]int64  // kept iterate with which the peers have begun an epoch; −1: none
}

// meetingOf returns a meeting whose peers are about to start.
func meetingOf(t *testing.T, seed uint64, change func(p *Plan)) *meeting {
	w := &meeting{scene: newScene(t, seed, change), from: map[int]int64{}}
	p := &w.plan
	for _, m := range w.r.members {
		var a *party
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
		a.of, a.control = m, fmt.Sprintf("10.0.0.1:%d", a.conn)
		w.join(a, 0)
		w.receive(a, &workload{})
		for w.act(a) {
		}
		a.queue = nil // the run knows that it is ready
		m.control, m.ready, m.assigned, m.informed = a.control, true, true, true
	}
	w.r.active = true
	w.r.beginRelaxation()
	w.r.recovered()
	w.perform(w.flush())
	for w.deliver() { // the peers relax
	}
	return w
}

// connect makes a connection of a process; pid 0 stands for a new one.
func (w *meeting) connect(host string, pid, rank int) *party {
	a := &party{}
	w.open(&a.endpoint, host, pid, rank)
	w.actors = append(w.actors, a)
	return a
}

// perform lets the meeting react to effects.
func (w *meeting) perform(effects []effect) {
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
			if a.peer == nil {
				w.join(a, e.msg.Epoch)
				w.listen(a, e.msg.Epoch)
				continue
			}
			a.inbox = append(a.inbox, shipped.Event{Asked: &shipped.Found{Address: w.r.listens}})
		case refuse:
			a := w.actors[e.conn-1]
			if a.closed = a.peer == nil; !a.closed {
				a.inbox = append(a.inbox, shipped.Event{Asked: &shipped.Found{Err: &rendezvous.RefusedError{}}})
			}
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

func (w *meeting) hangUp(e effect) {
	switch e := e.(type) {
	case retire:
		w.retire(e.of)
	case disconnect:
		a := w.actors[e.of.conn-1]
		a.end("closed by the leader")
	}
}

// handle lets the run handle an event, and the answers to its effects as a shell does.
func (w *meeting) handle(o event) {
	recovering := w.r.active
	w.perform(w.transcript.handle(w.r, w.now, o))
	if recovering && !w.r.active && w.r.failure == nil {
		for _, m := range w.r.members {
			require.Equal(w.t, w.r.epoch, w.actors[m.conn-1].ready, "peer %d is not ready\n%s", m.rank, w.String())
		}
	}
	for len(w.answers) > 0 {
		o := w.answers[0]
		w.answers = w.answers[1:]
		w.perform(w.transcript.handle(w.r, w.now, o))
	}
}

// deliver handles an event that is queued on a random connection, or lets a random peer act. It reports whether there was
// one.
func (w *meeting) deliver() bool {
	w.now += time.Millisecond
	if w.lost {
		return w.anyActs()
	}
	if len(w.exits) > 0 && w.rand.IntN(4) == 0 {
		o := w.exits[0]
		w.exits = w.exits[1:]
		w.handle(o)
		return true
	}
	if len(w.terms) > 0 && w.rand.IntN(4) == 0 {
		t := w.terms[0]
		w.terms = w.terms[1:]
		w.handle(event{decided: &t})
		return true
	}
	for _, i := range w.rand.Perm(2 * len(w.actors)) {
		a := w.actors[i/2]
		if i%2 == 0 && w.act(a) {
			return true
		}
		if i%2 == 0 || len(a.queue) == 0 {
			continue
		}
		o := a.queue[0]
		a.queue = a.queue[1:]
		if o.joined == nil {
			o.of = a.of
		}
		if o.of != nil || o.joined != nil { // else it has no place: nothing reads what it sends
			w.handle(o)
		}
		return true
	}
	return len(w.exits)+len(w.terms) > 0
}

// tick handles a tick.
func (w *meeting) tick() {
	if w.now += w.r.tick; w.lost {
		return
	}
	t := w.observe()
	for _, a := range w.actors {
		if !a.closed && !a.silent && len(a.find(shipped.ToRelax)) > 0 && w.ticks%8 == 0 {
			a.sweep++
			a.relaxed += uint64(a.of.box.Points())
			a.busy += float64(int(1) << (2 * (a.join.Pid % 3))) // processes are not equally fast
			a.send(rendezvous.Beat{Sweep: a.sweep, Residual: 0.1, Relaxed: a.relaxed, Busy: a.busy})
		}
	}
	w.handle(event{tick: t})
}

// settle lets everything be delivered, with ticks, until all peers relax in the same epoch or the run has failed.
func (w *meeting) settle() {
	for range 3000 {
		for w.deliver() {
		}
		if w.r.failure != nil || w.lost && !w.searched() || !w.lost && w.r.finished() {
			return
		}
		ends := slices.ContainsFunc(w.r.members, func(m *member) bool { return m.result != nil }) // then no part moves any more
		if !w.lost && !w.r.active && (ends || len(w.r.pending) == 0) {
			w.agree()
			return
		}
		w.tick()
	}
	require.Fail(w.t, "not all peers relax again", "%s", w.String())
}

// agree checks that all peers relax in the newest epoch, as the run assumes.
func (w *meeting) agree() {
	for _, m := range w.r.members {
		if a := w.actors[m.conn-1]; !a.closed && !a.silent && !m.done() {
			require.Len(w.t, a.find(shipped.ToRelax), 1, "peer %d does not relax\n%s", m.rank, w.String())
			require.Equal(w.t, w.r.epoch, a.find(shipped.ToRelax)[0].Epoch, "peer %d\n%s", m.rank, w.String())
		}
	}
}

// kill ends the process of a peer while a process leads the run.
func (w *meeting) kill(rank int) {
	if !w.lost {
		w.scene.kill(rank)
	}
}

// over lets all peers end the run.
func (w *meeting) over() {
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
		if w.lost && !w.searched() {
			return
		}
		if !w.lost && w.r.finished() {
			for _, m := range w.r.members {
				require.True(w.t, m.result == nil || m.result.Epoch == w.r.epoch, "a result of an old epoch of peer %d", m.rank)
			}
			return
		}
		w.tick()
	}
	require.Fail(w.t, "the run does not end", "%s", w.String())
}
