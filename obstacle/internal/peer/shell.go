package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// shell executes the decisions of a peer: it has the connections, the goroutines and the clock. The goroutine of run owns
// it and the member. Other goroutines send it inputs.
type shell struct {
	member  *member.Member
	created time.Time     // zero of the time of member
	inputs  chan input    // for member
	done    chan struct{} // closed when inputs are no longer handled
	jobs    sync.WaitGroup
	running context.Context // in which the peer works
	ending  func()          // ends running

	next     *rendezvous.Conn             // to the process that was found; nil: none
	assigned *work                        // newest
	entering *epoch                       // nil: none
	working  *epoch                       // the newest that was entered; nil: none
	answer   func(*rendezvous.Conn) error // sends the block and the result
	stepping *stepping                    // newest time step that has ended
	stop     chan struct{}                // closed to end the relaxation early
}

// input is an event from another goroutine.
type input struct {
	member.Event
	conn  *rendezvous.Conn // to the process that was found, with asked
	work  *work            // with assigned
	step  *stepping        // with Step
	epoch *epoch           // that was opened
}

func newShell(o *Options, w *rendezvous.Welcome) *shell {
	return &shell{
		member: member.New(w, w.Spec.PeerTimeout+launch.StopTime, !o.Bound && !o.OrSpare), created: time.Now(), inputs: make(chan input), done: make(chan struct{}),
		stop: make(chan struct{}),
	}
}

// emit passes an input on, unless the peer has ended. It reports whether it has.
func (s *shell) emit(i input) bool {
	select {
	case s.inputs <- i:
		return true
	case <-s.done:
		return false
	}
}

// run takes part in the run until the end.
func (p *peer) run(ctx context.Context) error {
	p.running, p.ending = context.WithCancel(ctx)
	defer p.ending()
	go p.sendEvery(p.running, launch.BeatEvery(p.timeout()), func() rendezvous.Message {
		b := rendezvous.Beat{Residual: nullable.NaN()}
		if s := p.progress.Load(); s != nil {
			b.Step, b.Sweep, b.Residual = s.Step, uint64(s.Sweep), nullable.Number(s.Residual)
			b.Relaxed, b.Busy = s.Relaxed, s.Busy.Seconds()
		}
		if e := p.relaxes.Load(); e != nil {
			b.Severed = e.severed()
		}
		return b
	})
	end, err := p.listen(p.welcome.Epoch)
	if err != nil {
		return err
	}
	if err := end.report(); err != nil {
		end.abort()
		return member.ErrLauncherLeft
	}
	p.entering = p.newEpoch(end)
	p.leader.watch()
	defer func() { p.claim.Release() }()
	defer p.hosted.wait()
	go p.receiveRequests()
	go p.receiveFrom(p.leader.now())
	p.monitor()
	p.finish()
	switch m := p.member; {
	case m.Outcome == member.Failed:
		return m.Failure
	case m.Outcome == member.Reported && m.Lost.CutOff:
		return &ReportedError{m.Lost.Why, ErrCutOff}
	case m.Outcome == member.Reported:
		return &ReportedError{m.Lost.Why, nil}
	}
	return nil
}

// receiveRequests passes the requests of the user on.
func (p *peer) receiveRequests() {
	interrupt, leave := p.Interrupt, p.Leave
	for {
		var r member.Request
		select {
		case <-interrupt: // nil: never
			interrupt, r = nil, member.ToStop
		case <-leave:
			leave, r = nil, member.ToLeave
		case <-p.done:
			return
		}
		p.emit(input{Event: member.Event{Request: r}})
	}
}

// monitor handles inputs until the end.
func (p *peer) monitor() {
	for p.member.Outcome == member.InProgress {
		var passed <-chan time.Time
		var ended <-chan struct{}
		if at, is := p.member.Wake(); is {
			passed, ended = time.After(at-time.Since(p.created)), p.running.Done()
		}
		select {
		case i := <-p.inputs:
			p.handle(i)
		case <-passed:
			p.step(member.Event{})
		case <-ended:
			p.step(member.Event{})
		}
	}
}

// finish ends all that the peer has begun.
func (p *peer) finish() {
	close(p.done)
	p.ending()
	p.leader.end()
	if p.working != nil && p.working.runner != nil {
		p.quit(p.working)
	}
	for _, e := range []*epoch{p.entering, p.working} {
		if e != nil {
			e.abort()
		}
	}
	if !errors.Is(p.member.Failure, member.ErrRelaxes) {
		p.jobs.Wait()
	}
}

func (p *peer) handle(i input) {
	switch {
	case i.conn != nil:
		p.next = i.conn
	case i.work != nil:
		p.assigned = i.work
	case i.epoch != nil:
		p.entering = i.epoch
	case i.step != nil:
		p.stepping = i.step
	}
	if e, is := i.Message.(rendezvous.Epoch); is && p.working != nil {
		i.Halts = p.working.stops(p.welcome.Rank, e.Lost)
	}
	if i.Ended != nil && i.Ended.Err != nil {
		_, another := errors.AsType[*connectError](i.Ended.Err)
		i.Loss = another || lostRank(i.Ended.Err) >= 0
	}
	p.step(i.Event)
}

// step lets the member handle an event, and executes the effects.
func (p *peer) step(o member.Event) {
	o.Known, o.Over = p.keeping.newest(), p.running.Err() != nil || p.leader.over()
	_, o.Held = p.values.held()
	for _, e := range p.member.Step(time.Since(p.created), o) {
		p.perform(e)
	}
}

func (p *peer) perform(e member.Effect) {
	switch e := e.(type) {
	case member.Do:
		p.do(e)
	case member.Accept:
		p.entering.work, p.entering.assign = p.assigned, &p.assigned.assign
	case member.Supersede:
		for _, e := range []*epoch{p.entering, p.working} {
			if e != nil {
				e.cancel()
			}
		}
	case member.Abort:
		for _, of := range []*epoch{p.entering, p.working} {
			if of != nil && of.endpoint.epoch == e.Epoch {
				of.abort()
			}
		}
	case member.Abandon:
		p.values.abandon()
	case member.Quit:
		p.quit(p.working)
	case member.Surrender:
		p.surrender(e)
	case member.BeginSteps:
		p.ends.begin(p.working.work, p.welcome.Spec.Balance, p.box())
	case member.Hold:
		if !p.stepping.allow(e) {
			p.step(member.Event{Ended: &member.Ended{Job: member.ToHold, Number: e.Number, Err: member.ErrNextEpoch}})
		}
	case member.SendEnd:
		conn := p.leader.now()
		go func() { // the end of the peer does not wait for it
			err := p.ends.send(conn, e.Step)
			p.emit(input{Event: member.Event{Ended: &member.Ended{Job: member.ToSend, Number: e.Number, Err: err}}})
		}()
	case member.Stop:
		close(p.stop)
	case member.Send:
		conn := p.leader.now()
		go func() { _ = conn.Send(e.Message) }()
	case member.HangUp:
		p.ending()
		p.leader.end()
	case member.Logged:
		levels := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel}
		p.log.WithLevel(levels[e.Level]).Fields(e.Fields).Msg(e.Text)
	default:
		p.follow(e)
	}
}

// follow executes an effect on the connection to the leader.
func (p *peer) follow(e member.Effect) {
	switch e := e.(type) {
	case member.Ask:
		p.jobs.Go(func() {
			conn, address, err := p.askAll(p.running, e)
			if !p.emit(input{Event: member.Event{Asked: &member.Found{Address: address, Err: err}}, conn: conn}) && conn != nil {
				conn.Close()
			}
		})
	case member.Use:
		p.Options.Rendezvous = e.Address
		if !p.leader.replace(p.next) {
			p.step(member.Event{Closed: true})
			return
		}
		go p.receiveFrom(p.next)
	case member.Detect:
		_ = p.leader.now().CloseWhenDead(e.Silence)
	case member.Propose:
		p.jobs.Go(func() { p.emit(input{Event: member.Event{Decided: p.keeping.propose(p.running, e)}}) })
	case member.Learn:
		p.keeping.adopt(e)
	case member.Reach:
		p.keeping.leaderReached(e.Is)
	case member.Lead:
		p.keeping.lead(p, e.Term)
	}
}

// do begins a job.
func (p *peer) do(d member.Do) {
	if d.Job == member.ToOpen {
		p.copies.endEpoch(d.Epoch - 1)
		p.entering = nil
		p.jobs.Go(func() {
			e, err := p.open(d.Epoch)
			if !p.emit(input{Event: member.Event{Ended: &member.Ended{Job: d.Job, Number: d.Number, Err: err}}, epoch: e}) && e != nil {
				e.abort()
			}
		})
		return
	}
	o := order{Do: d, epoch: p.entering, ctx: p.running, lost: p.member.Lost, to: p.leader.now()}
	switch d.Job {
	case member.ToPrepare:
		p.working, p.entering = p.entering, nil
		if p.idle == 0 {
			p.idle = host.PeakBytes()
		}
		p.working.unhook = context.AfterFunc(p.running, p.working.abort) // without a leader no other peer waits
	case member.ToAnnounce, member.ToRelax, member.ToAwait, member.ToKeep, member.ToAnswer:
		o.epoch = p.working
	}
	if o.epoch != nil && !p.member.Surrendered {
		o.ctx = o.epoch.ctx
	}
	if o.answer = p.answer; d.Job == member.ToRelax {
		p.beginToRelax(o.epoch)
	}
	p.jobs.Go(func() {
		err := errGoexit
		defer func() {
			if why := recover(); why != nil {
				panic(why)
			}
			p.emit(input{Event: member.Event{Ended: &member.Ended{Job: d.Job, Number: d.Number, Err: err}}})
		}()
		err = p.execute(&o)
	})
}

// errGoexit is the error of a job whose goroutine a user's code has ended.
var errGoexit = errors.New("the code of the iteration has called runtime.Goexit")

// order is a job with what it needs, as that was when the job began.
type order struct {
	member.Do
	epoch  *epoch          // nil if the peer answers without having worked in any
	ctx    context.Context // of the epoch
	lost   *rendezvous.Lost
	to     *rendezvous.Conn // the process that leads
	answer func(*rendezvous.Conn) error
}

// execute does a job.
func (p *peer) execute(o *order) (err error) {
	e := o.epoch
	switch o.Job {
	case member.ToReport:
		if e.report() != nil {
			return member.ErrLauncherLeft
		}
	case member.ToResume:
		return p.resume(e.work)
	case member.ToRepair:
		return p.repair(o.ctx, e.endpoint, e.work)
	case member.ToConnect:
		return e.connect(o.ctx, e.links())
	case member.ToPrepare:
		e.runner, err = p.prepare(e)
		return err
	case member.ToAnnounce:
		return p.announce(e)
	case member.ToRelax:
		return p.relax(e)
	case member.ToAwait:
		select {
		case <-e.others:
		case <-o.ctx.Done():
		}
	case member.ToKeep:
		p.keepAnswer(e, o.lost)
	case member.ToAnswer:
		if err = o.answer(o.to); err != nil {
			o.to.Close() // receiveFrom notices it, too
		}
	}
	return err
}

// quit ends the work in an epoch, and frees what it used.
func (p *peer) quit(e *epoch) {
	if r := e.runner; r != nil {
		if e.relaxed {
			all := e.sessions()
			for i := range all {
				p.former.sent.AddSession(&all[i])
			}
		}
		p.values.release(r)
		e.abort() // the leader sends Bye when it has every result, so no peer needs messages in transit
		r.Close()
		e.runner = nil
	}
	p.answer = nil
	e.abort()
	e.unhook()
	e.cancel()
	p.arrays.Return()
}
