package launch

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// simulated is the other end of a connection.
type simulated struct {
	endpoint
	control   string
	epoch     int
	sweep     uint64
	valued    bool
	got       int // epoch in which it got its values
	relaxing  bool
	ends      []int          // time steps of whose ends it has its block
	known     map[int]string // control addresses of other peers
	mute      bool           // it ends no step before the leader asks for ends again
	started   bool           // the run
	built     bool           // its part, before the start
	displaced bool
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
		a.epoch, a.mute, a.built = msg.Epoch, w.series != nil, false
		a.listen(w)
	case rendezvous.Start:
		a.started, a.valued, a.relaxing = true, a.valued || a.built, a.relaxing || a.built
	case *workload:
		w.work(a, msg)
	case rendezvous.Capture:
		w.capture(&a.endpoint, &msg, a.sweep, a.valued)
	case rendezvous.Host:
		other := w.connect(a.join.Host, a.join.Pid, msg.Rank)
		other.child = a.child
		other.say(event{joined: &other.caller})
	case rendezvous.Resend:
		a.mute = msg.From < 0
		for _, m := range a.ends {
			if m >= msg.From && msg.From >= 0 {
				a.send(rendezvous.Step{Step: m})
			}
		}
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
	if w.r.failure == nil {
		w.checkWork(a, l)
	}
	if !a.valued && l.assign.Repair != nil {
		a.send(rendezvous.Repaired{Epoch: a.epoch, Method: "sor", Residual: nullable.NaN()})
	}
	if !a.valued {
		a.got = a.epoch
	}
	if a.mute = false; w.series != nil {
		a.ends = []int{l.assign.After}
	}
	if !a.started {
		a.built = true
		a.send(rendezvous.Ready{Epoch: a.epoch})
		return
	}
	defer a.send(rendezvous.Ready{Epoch: a.epoch})
	if a.valued, a.relaxing = true, true; l.assign.Resume != nil {
		a.sweep = l.assign.Resume.Iterate
	}
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

// checkWork checks that a peer can begin with its work: all go on from the same iterate, and it gets values unless it has
// some or nobody has any.
func (w *world) checkWork(a *simulated, l *workload) {
	as := &l.assign
	if a.known == nil {
		a.known = map[int]string{}
	}
	for _, m := range as.Members {
		a.known[m.Rank] = m.Control
	}
	if w.resumed == nil {
		w.resumed = map[int]rendezvous.Resume{}
	}
	if r := as.Resume; r != nil {
		was, is := w.resumed[as.Epoch]
		if w.resumed[as.Epoch] = *r; is && (was.Iterate != r.Iterate || was.Again != r.Again) {
			w.fail("two peers go on from different iterates")
		}
		if !r.Again && !a.valued && r.State == nil {
			w.fail("a peer without values gets none")
		}
	}
	if r := as.Repair; r != nil && !a.valued && !slices.Contains(r.Holes, l.box) {
		w.fail("a peer repairs other blocks than its own")
	}
	given := as.Repair != nil || as.Initial || as.Resume != nil
	if !a.valued && !given && slices.ContainsFunc(w.actors, func(o *simulated) bool {
		return o.valued && o.got < as.Epoch && !o.closed && !o.silent && o.of != nil && w.r.members[o.of.rank] == o.of
	}) {
		w.fail("a peer without values gets none")
	}
}

// checkSettled checks, when all peers relax again, that they do so in the same epoch, with values, and know the addresses
// of their neighbours.
func (w *world) checkSettled() {
	for _, m := range w.r.members {
		if m.conn == 0 || !m.valued || !m.ready || m.listens != w.r.epoch {
			w.fail(fmt.Sprintf("%s does not relax in epoch %d", nameOf(m), w.r.epoch))
		}
		a := w.actors[m.conn-1]
		for _, q := range []int{m.rank - 1, m.rank + 1} {
			if q >= 0 && q < len(w.r.members) && a.known != nil && a.known[q] != w.r.members[q].control {
				w.fail(fmt.Sprintf("%s knows address %s of peer %d, which listens at %s", nameOf(m), a.known[q], q, w.r.members[q].control))
			}
		}
	}
}
