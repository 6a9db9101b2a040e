package peer

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// input is an event from another goroutine.
type input struct {
	event
	conn *rendezvous.Conn // to the process that was found
}

// step lets the member handle an event, and executes the effects. Only the goroutine of receive calls it.
func (p *peer) step(ctx context.Context, o event) {
	o.known, o.over = p.keeping.newest(), ctx.Err() != nil || p.leader.over()
	p.deciding.Lock()
	effects := p.member.step(time.Since(p.joined), o)
	p.deciding.Unlock()
	for _, e := range effects {
		p.perform(ctx, e)
	}
}

func (p *peer) perform(ctx context.Context, e effect) {
	switch e := e.(type) {
	case ask:
		go func() {
			conn, address, err := p.askAll(ctx, e)
			p.inputs <- input{event: event{asked: &found{address, err}}, conn: conn}
		}()
	case use:
		if p.Options.Rendezvous = e.address; !p.leader.replace(p.in) {
			p.step(ctx, event{closed: true})
		}
	case detect:
		_ = p.in.CloseWhenDead(e.silence)
	case propose:
		go func() { p.inputs <- input{event: event{decided: p.keeping.propose(ctx, e)}} }()
	case learn:
		p.keeping.adopt(e)
	case reach:
		p.keeping.leaderReached(e.is)
	case lead:
		p.keeping.lead(p, e.term)
	case logged:
		levels := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel}
		p.log.WithLevel(levels[e.level]).Fields(e.fields).Msg(e.text)
	}
}

// findLeader searches for the process that leads after the loss of the leader. It returns false if there is none, or if
// the run goes on without this peer.
func (p *peer) findLeader(ctx context.Context) bool {
	p.step(ctx, event{closed: true})
	for p.member.contact != connected && p.member.contact != alone {
		var passed <-chan time.Time
		var ended <-chan struct{}
		if at, is := p.member.wake(); is {
			passed, ended = time.After(at-time.Since(p.joined)), ctx.Done()
		}
		select {
		case i := <-p.inputs:
			if i.conn != nil {
				p.in = i.conn
			}
			p.step(ctx, i.event)
		case <-passed:
			p.step(ctx, event{})
		case <-ended:
			p.step(ctx, event{})
		}
	}
	return p.member.contact == connected
}

// keepers returns the addresses of the keepers of the newest term that is known.
func (p *peer) keepers() []string {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	return p.member.term.Keepers
}
