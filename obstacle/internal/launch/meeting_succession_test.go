package launch

import (
	"errors"

	"github.com/p2pdc/p2pdc/internal/register"
	shipped "github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// loseLeader ends the process that leads the run, with the processes that it has started.
func (w *meeting) loseLeader() {
	if w.lost || w.r.failure != nil {
		return
	}
	w.lost, w.term = true, nil
	w.looks, w.terms, w.exits = nil, nil, nil
	for _, a := range w.actors {
		a.queue = nil
		a.inbox = append(a.inbox, shipped.Event{Closed: true})
		a.closed = a.closed || a.peer == nil || a.child != 0 || joined(&a.join) == w.r.self
	}
}

// search lets a peer whose leader was lost find another one. The keepers decide on the first that proposes itself.
func (w *meeting) search(a *party, e shipped.Effect) {
	answer := func(o shipped.Event) { a.inbox = append(a.inbox, o) }
	switch e := e.(type) {
	case shipped.Propose:
		if w.rand.IntN(4) == 0 {
			answer(shipped.Event{Decided: &register.Term{}})
			return
		}
		if w.term == nil {
			w.term = &e.Want
		}
		answer(shipped.Event{Decided: w.term})
	case shipped.Lead:
		w.lead(a, e.Term)
	case shipped.Ask:
		if w.lost {
			answer(shipped.Event{Asked: &shipped.Found{Err: errors.New("no answer")}})
			return
		}
		gone := &party{}
		gone.closed = true
		w.actors[a.conn-1], w.ends[a.conn-1] = gone, &gone.endpoint
		w.actors, w.ends = append(w.actors, a), append(w.ends, &a.endpoint)
		a.conn, a.here = connection(len(w.actors)), w.r.listens
		a.join = rendezvous.Join{Rank: a.of.rank, Host: a.join.Host, Pid: a.join.Pid, Standing: &rendezvous.Standing{
			Epoch: e.Epoch, Settled: a.ready == e.Epoch, Valued: a.valued(), Sweep: a.sweep, Control: a.control, Steps: e.Steps,
		}}
		a.queue = []event{{joined: &a.caller}}
	}
}

// lead lets the process of a peer lead the run by a term.
func (w *meeting) lead(a *party, t register.Term) {
	w.r = newRun(w.plan, "run", nil)
	for _, l := range w.losses {
		w.r.losses = append(w.r.losses, &l)
	}
	w.r.self, w.r.listens = joined(&a.join), t.Leader
	w.r.succeed(t, nil)
	w.lost = false
	w.led++
}

// searched reports whether a peer still searches for a process that leads the run.
func (w *meeting) searched() bool {
	for _, a := range w.actors {
		if !a.closed && !a.silent && a.peer != nil {
			return true
		}
	}
	return false
}

// anyActs lets a random peer act, and reports whether there was one.
func (w *meeting) anyActs() bool {
	for _, i := range w.rand.Perm(len(w.actors)) {
		if w.act(w.actors[i]) {
			return true
		}
	}
	return false
}
