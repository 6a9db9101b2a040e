package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	shipped "github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// party is the other end of a connection: the member of a peer, whose jobs end in an order that the seed decides.
type party struct {
	endpoint
	peer    *shipped.Member // nil before it has a place
	inbox   []shipped.Event // from the run
	jobs    []*begunJob
	control string
	sent    *rendezvous.Assign // newest work
	work    *rendezvous.Assign // of the epoch that it enters, or works in
	held    problem.Box        // of the values that it has while it does not relax
	sweep   uint64
	relaxed uint64  // points, in the epoch
	busy    float64 // seconds that this has taken
	relaxes bool    // from the beginning of the relaxation until the values are kept
	ends    string  // reason for which the relaxation ends; "": it does not
	ready   int     // newest epoch that it has announced
	result  rendezvous.Result
	hungUp  bool // nothing waits for the leader any more
}

// begunJob is a job that has not ended.
type begunJob struct {
	shipped.Do
	err error // with which it ends
}

// valued reports whether the peer has values.
func (a *party) valued() bool { return a.relaxes || !a.held.Empty() }

// find returns the jobs in progress of some kinds.
func (a *party) find(kinds ...shipped.Job) (out []*begunJob) {
	for _, b := range a.jobs {
		if slices.Contains(kinds, b.Job) {
			out = append(out, b)
		}
	}
	return out
}

func (a *party) interrupt(err error, kinds ...shipped.Job) {
	for _, b := range a.find(kinds...) {
		b.err = err
	}
}

// join makes the member of a peer that takes part from an epoch on.
func (w *meeting) join(a *party, epoch int) {
	a.peer = shipped.New(&rendezvous.Welcome{Rank: a.of.rank, Epoch: epoch, Spec: w.r.Spec}, w.r.PeerTimeout+StopTime, false)
}

// listen says that a peer has opened the endpoint of an epoch.
func (w *meeting) listen(a *party, epoch int) {
	a.control = fmt.Sprintf("10.0.0.1:%d", 100*epoch+int(a.conn))
	l := rendezvous.Listen{Control: a.control, Epoch: epoch, Box: a.held, Sweep: a.sweep, Idle: !a.relaxes}
	if kept := iterate.Iteration(a.sweep / 10 * 10); w.r.exact() && kept > 0 && a.valued() {
		next := iterate.Rank((a.of.rank + 1) % len(w.r.members))
		l.Holding = held(next, kept)
	}
	a.send(l)
}

// receive lets a peer react to a message, at once or later.
func (w *meeting) receive(a *party, msg rendezvous.Message) {
	if a.closed || a.silent {
		return
	}
	switch msg := msg.(type) {
	case *workload:
		a.sent = &msg.assign
		a.inbox = append(a.inbox, shipped.Event{Assigned: &shipped.Assigned{
			Epoch: msg.assign.Epoch, Box: a.of.box, Resumes: msg.assign.Resume != nil, Repairs: msg.assign.Repair != nil,
		}})
	case rendezvous.Capture:
		w.capture(&a.endpoint, &msg, a.sweep, a.valued())
	case rendezvous.Host:
		other := w.connect(a.join.Host, a.join.Pid, msg.Rank)
		other.child = a.child
		other.say(event{joined: &other.caller})
	case rendezvous.Keep:
		if a.child != 0 { // it ends with this process
			a.send(rendezvous.Keeping{})
			return
		}
		address := fmt.Sprintf("10.0.0.1:%d", 5000+int(a.conn))
		a.send(rendezvous.Keeping{Address: address})
		a.inbox = append(a.inbox, shipped.Event{Keeps: address})
	case *record:
		w.losses = msg.losses
		a.inbox = append(a.inbox, shipped.Event{Message: msg.Record})
	default:
		a.inbox = append(a.inbox, shipped.Event{Message: msg})
	}
}

// act lets a peer handle what it has received, or ends one of its jobs. It reports whether there was one.
func (w *meeting) act(a *party) bool {
	if a.closed || a.silent || a.peer == nil {
		return false
	}
	for _, i := range w.rand.Perm(len(a.jobs) + 1) {
		if i < len(a.jobs) {
			if w.endJob(a, a.jobs[i]) {
				return true
			}
		} else if len(a.inbox) > 0 {
			o := a.inbox[0]
			a.inbox = a.inbox[1:]
			w.step(a, o)
			return true
		}
	}
	if at, is := a.peer.Wake(); is && w.now >= at {
		w.step(a, shipped.Event{})
		return true
	}
	return false
}

func (w *meeting) step(a *party, o shipped.Event) {
	o.Held = a.held
	_, o.Halts = o.Message.(rendezvous.Epoch)
	o.Halts = o.Halts && w.r.Scheme == "sync"
	for _, e := range a.peer.Step(w.now, o) {
		w.react(a, e)
	}
	switch a.peer.Outcome {
	case shipped.InProgress:
		return
	case shipped.Failed:
		if !errors.Is(a.peer.Failure, shipped.ErrLauncherLeft) {
			a.send(rendezvous.Result{
				Epoch: a.peer.Epoch, Reason: Failed, Error: a.peer.Failure.Error(), Lost: -1,
			})
		}
	}
	a.end("end of stream")
}

// react lets the peer's shell execute an effect.
func (w *meeting) react(a *party, e shipped.Effect) {
	switch e := e.(type) {
	case shipped.Do:
		b := &begunJob{Do: e}
		if a.jobs = append(a.jobs, b); a.hungUp {
			b.err = errors.New("closed")
		}
		if e.Job == shipped.ToRelax {
			a.relaxed, a.busy = 0, 0
			if a.relaxes = true; a.ends != Interrupted {
				a.ends = ""
			}
			w.relaxes(a)
		}
	case shipped.Accept:
		a.work = a.sent
	case shipped.Supersede:
		a.interrupt(context.Canceled, shipped.ToRepair, shipped.ToConnect, shipped.ToPrepare, shipped.ToAwait)
	case shipped.Abort, shipped.HangUp:
		_, gone := e.(shipped.HangUp)
		a.hungUp = a.hungUp || gone
		a.interrupt(errors.New("closed"), shipped.ToConnect, shipped.ToPrepare, shipped.ToRelax)
	case shipped.Abandon:
		a.interrupt(shipped.ErrNextEpoch, shipped.ToRelax)
	case shipped.Quit:
		a.relaxes = false
	case shipped.Surrender:
		a.result = rendezvous.Result{Epoch: e.Epoch, Reason: Failed, Error: e.Why.Why, Lost: e.Why.Rank}
	case shipped.Stop:
		a.ends = Interrupted
	case shipped.Send:
		a.send(e.Message)
	default:
		w.search(a, e)
	}
}

// endJob ends a job of a peer, and reports whether it can.
func (w *meeting) endJob(a *party, b *begunJob) bool {
	if b.Job == shipped.ToRelax && b.err == nil && a.ends == "" {
		return false
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(other *begunJob) bool { return other == b })
	switch b.Job {
	case shipped.ToReport:
		w.listen(a, b.Epoch)
	case shipped.ToResume:
		if a.sweep, a.held = a.work.Resume.Iterate, a.of.box; a.work.Resume.Again {
			a.sweep, a.held = 0, problem.Box{}
		}
	case shipped.ToRepair:
		if b.err == nil {
			a.held = a.of.box
			a.send(rendezvous.Repaired{Epoch: b.Epoch, Method: "sor", Residual: nullable.NaN()})
		}
	case shipped.ToAnnounce:
		if b.err == nil {
			a.ready = b.Epoch
			a.send(rendezvous.Ready{Epoch: b.Epoch})
		}
	case shipped.ToRelax:
		a.result = rendezvous.Result{Epoch: b.Epoch, Reason: a.ends, Lost: -1}
		if b.err != nil {
			a.result.Reason, a.result.Error = Failed, b.err.Error()
		}
		if errors.Is(b.err, shipped.ErrNextEpoch) {
			a.held, a.relaxes = a.of.box, false
		}
	case shipped.ToKeep:
		a.held, a.relaxes = a.of.box, false
	case shipped.ToAnswer:
		a.say(event{bytes: blocks.Bytes(a.of.box)})
		a.send(a.result)
	}
	w.step(a, shipped.Event{Ended: &shipped.Ended{Job: b.Job, Number: b.Number, Err: b.err}})
	return true
}

// relaxes checks that all peers begin an epoch with the same kept iterate, or none of them with one.
func (w *meeting) relaxes(a *party) {
	from := int64(-1)
	if r := a.work.Resume; r != nil {
		from = int64(r.Iterate)
	}
	epoch := a.work.Epoch
	if known, is := w.from[epoch]; is {
		require.Equal(w.t, known, from, "peer %d begins epoch %d with another iterate\n%s", a.of.rank, epoch, w.String())
	}
	w.from[epoch] = from
}

// finish lets the relaxation of a peer end for a reason.
func (a *party) finish(reason string) {
	if a.of != nil && len(a.find(shipped.ToRelax)) > 0 && a.ends == "" {
		a.ends = reason
	}
}
