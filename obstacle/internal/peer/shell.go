package peer

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// shell executes the decisions of a peer: it has the connections, the goroutines and the clock. The goroutine of run owns
// it and the member. Other goroutines send it inputs.
type shell struct {
	member  *member
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
	stop     chan struct{}                // closed to end the relaxation early
}

// input is an event from another goroutine.
type input struct {
	event
	conn  *rendezvous.Conn // to the process that was found, with asked
	work  *work            // with assigned
	epoch *epoch           // that was opened
}

func newShell(o *Options, w *rendezvous.Welcome) *shell {
	return &shell{
		member: newMember(w, !o.Bound && !o.OrSpare), created: time.Now(), inputs: make(chan input), done: make(chan struct{}),
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
		return b
	})
	end, err := p.listen(p.welcome.Epoch)
	if err != nil {
		return err
	}
	if err := end.report(); err != nil {
		end.abort()
		return errLauncherLeft
	}
	p.entering = p.newEpoch(end)
	p.leader.watch()
	go p.ends.send(p.running)
	defer func() { p.claim.Release() }()
	defer p.hosted.Wait()
	go p.receiveRequests()
	go p.receiveFrom(p.leader.now())
	p.monitor()
	p.finish()
	switch m := p.member; {
	case m.outcome == failed:
		return m.failure
	case m.outcome == reported && m.lost.CutOff:
		return &ReportedError{m.lost.Why, ErrCutOff}
	case m.outcome == reported:
		return &ReportedError{m.lost.Why, nil}
	}
	return nil
}

// receiveRequests passes the requests of the user on.
func (p *peer) receiveRequests() {
	interrupt, leave := p.Interrupt, p.Leave
	for {
		var r request
		select {
		case <-interrupt: // nil: never
			interrupt, r = nil, toStop
		case <-leave:
			leave, r = nil, toLeave
		case <-p.done:
			return
		}
		p.emit(input{event: event{request: r}})
	}
}

// monitor handles inputs until the end.
func (p *peer) monitor() {
	for p.member.outcome == inProgress {
		var passed <-chan time.Time
		var ended <-chan struct{}
		if at, is := p.member.wake(); is {
			passed, ended = time.After(at-time.Since(p.created)), p.running.Done()
		}
		select {
		case i := <-p.inputs:
			p.handle(i)
		case <-passed:
			p.step(event{})
		case <-ended:
			p.step(event{})
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
	p.jobs.Wait()
}

func (p *peer) handle(i input) {
	switch {
	case i.conn != nil:
		p.next = i.conn
	case i.work != nil:
		p.assigned = i.work
	case i.epoch != nil:
		p.entering = i.epoch
	}
	if e, is := i.message.(rendezvous.Epoch); is && p.working != nil {
		i.halts = p.working.stops(p.welcome.Rank, e.Lost)
	}
	p.step(i.event)
}

// step lets the member handle an event, and executes the effects.
func (p *peer) step(o event) {
	o.known, o.over = p.keeping.newest(), p.running.Err() != nil || p.leader.over()
	_, o.held = p.values.held()
	for _, e := range p.member.step(time.Since(p.created), o) {
		p.perform(e)
	}
}

func (p *peer) perform(e effect) {
	switch e := e.(type) {
	case do:
		p.do(e)
	case accept:
		p.entering.work, p.entering.assign = p.assigned, &p.assigned.assign
	case supersede:
		for _, e := range []*epoch{p.entering, p.working} {
			if e != nil {
				e.cancel()
			}
		}
	case abort:
		for _, of := range []*epoch{p.entering, p.working} {
			if of != nil && of.endpoint.epoch == e.epoch {
				of.abort()
			}
		}
	case abandon:
		p.values.abandon()
	case quit:
		p.quit(p.working)
	case surrender:
		p.surrender(e)
	case stop:
		close(p.stop)
	case send:
		conn := p.leader.now()
		go func() { _ = conn.Send(e.msg) }()
	case hangUp:
		p.ending()
		p.leader.end()
	case logged:
		levels := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel}
		p.log.WithLevel(levels[e.level]).Fields(e.fields).Msg(e.text)
	default:
		p.follow(e)
	}
}

// follow executes an effect on the connection to the leader.
func (p *peer) follow(e effect) {
	switch e := e.(type) {
	case ask:
		p.jobs.Go(func() {
			conn, address, err := p.askAll(p.running, e)
			if !p.emit(input{event: event{asked: &found{address, err}}, conn: conn}) && conn != nil {
				conn.Close()
			}
		})
	case use:
		p.Options.Rendezvous = e.address
		if !p.leader.replace(p.next) {
			p.step(event{closed: true})
			return
		}
		go p.receiveFrom(p.next)
	case detect:
		_ = p.leader.now().CloseWhenDead(e.silence)
	case propose:
		p.jobs.Go(func() { p.emit(input{event: event{decided: p.keeping.propose(p.running, e)}}) })
	case learn:
		p.keeping.adopt(e)
	case reach:
		p.keeping.leaderReached(e.is)
	case lead:
		p.keeping.lead(p, e.term)
	}
}

// do begins a job.
func (p *peer) do(d do) {
	if d.job == toOpen {
		p.copies.endEpoch(d.epoch - 1)
		p.entering = nil
		p.jobs.Go(func() {
			e, err := p.open(d.epoch)
			if !p.emit(input{event: event{ended: &ended{d.job, d.number, err}}, epoch: e}) && e != nil {
				e.abort()
			}
		})
		return
	}
	o := order{do: d, epoch: p.entering, ctx: p.running, lost: p.member.lost}
	switch d.job {
	case toPrepare:
		p.working, p.entering = p.entering, nil
		if p.idle == 0 {
			p.idle = host.PeakBytes()
		}
		p.working.unhook = context.AfterFunc(p.running, p.working.abort) // without a leader no other peer waits
	case toAnnounce, toRelax, toAwait, toKeep, toDrain, toAnswer:
		o.epoch = p.working
	}
	if o.epoch != nil && !p.member.surrendered {
		o.ctx = o.epoch.ctx
	}
	o.to.conn, o.to.replaced = p.leader.current()
	if o.answer = p.answer; d.job == toRelax {
		p.beginToRelax(o.epoch)
	}
	p.jobs.Go(func() {
		err := p.execute(&o)
		p.emit(input{event: event{ended: &ended{d.job, d.number, err}}})
	})
}

// order is a job with what it needs, as that was when the job began.
type order struct {
	do
	epoch  *epoch          // nil if the peer answers without having worked in any
	ctx    context.Context // of the epoch
	lost   *rendezvous.Lost
	to     leading
	answer func(*rendezvous.Conn) error
}

// leading is the connection to the process that leads the run.
type leading struct {
	conn     *rendezvous.Conn
	replaced <-chan struct{} // closed when another process leads
}

// execute does a job.
func (p *peer) execute(o *order) (err error) {
	e := o.epoch
	switch o.job {
	case toResume:
		return p.resume(e.work)
	case toRepair:
		return p.repair(o.ctx, e.endpoint, e.work)
	case toConnect:
		return e.connect(o.ctx, e.links())
	case toPrepare:
		e.runner, err = p.prepare(e)
		return err
	case toAnnounce:
		return p.announce(e)
	case toRelax:
		return p.relax(e)
	case toAwait:
		select {
		case <-e.others:
		case <-o.ctx.Done():
		}
	case toKeep:
		p.keepAnswer(e, o.lost)
	case toDrain:
		return p.drain(o.ctx, o.to)
	case toAnswer:
		if err = o.answer(o.to.conn); err != nil {
			o.to.conn.Close() // receiveFrom notices it, too
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
