package launch

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

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
	ends     []int // time steps of whose ends it has its block
	mute     bool  // it ends no step before the leader asks for ends again
	silent   bool  // its host vanished
	closed   bool
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
		a.epoch, a.mute = msg.Epoch, w.series != nil
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
	if !a.valued && l.assign.Repair != nil {
		a.send(rendezvous.Repaired{Epoch: a.epoch, Method: "sor", Residual: nullable.NaN()})
	}
	if a.mute = false; w.series != nil {
		a.ends = []int{l.assign.After}
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
