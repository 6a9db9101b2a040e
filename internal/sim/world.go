package sim

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Now implements virtual.World.
func (p *peer) Now() microproto.Instant { return p.c.clock.Now() }

// Wake implements virtual.World.
func (p *peer) Wake(h *virtual.Host, at microproto.Instant) { p.c.clock.At(at, h.Turn) }

// Alarm implements virtual.World.
func (p *peer) Alarm(h *virtual.Host, at microproto.Instant) { p.c.clock.At(at, h.Due) }

// Carry implements virtual.World. Links are never full.
func (p *peer) Carry(_ *virtual.Host, rail int, f microproto.Frame) bool {
	if rail == 0 {
		p.send(f)
	} else {
		p.c.fabric.send(p.rank, f)
	}
	return true
}

// Control implements virtual.World.
func (p *peer) Control(_ *virtual.Host, o *p2psap.Output) {
	switch o.Kind {
	case p2psap.OutControl:
		p.c.control(p, *o)
	case p2psap.OutDial:
		p.c.dial(p, o.Peer)
	case p2psap.OutDisconnect:
		p.c.disconnect(p, o.Conn)
	}
}

// Relax implements virtual.World.
func (p *peer) Relax(_ *virtual.Host, op iterate.Op) time.Duration {
	p.worker.Relax(op)
	p.points += uint64(op.Points)
	return p.c.Scenario.costAt(p.rank, time.Duration(p.c.clock.Now())).Relax(op.Points)
}

// Relaxed implements virtual.World.
func (*peer) Relaxed(*virtual.Host) {}

// Sends implements virtual.World.
func (p *peer) Sends(*virtual.Host) time.Duration { return p.cost.Send }

// Receives implements virtual.World.
func (*peer) Receives(*virtual.Host, bool) time.Duration { return 0 }

// Opened implements virtual.World.
func (p *peer) Opened(h *virtual.Host) {
	if s := p.c.Scenario.Stop; s.At > 0 && s.Rank == p.rank {
		p.c.clock.After(s.At, func() {
			p.worker.Stop(p.c.clock.Now().Sub(h.Began), s.Why)
			h.Touch()
		})
	}
}

// Stepped implements virtual.World.
func (p *peer) Stepped(_ *virtual.Host, r *iterate.StepResult) {
	if p.c.stepped != nil {
		p.c.stepped(p, r)
	}
}

// Keep implements virtual.World. The peers of these runs keep no iterates.
func (p *peer) Keep(*virtual.Host, *iterate.Op) bool { return true }

// Finished implements virtual.World. It adds up how often the sessions have changed their rail.
func (p *peer) Finished(h *virtual.Host) {
	h.Sessions(func(id p2psap.SessionID, _ bool) {
		if i, err := p.node.Info(id); err == nil {
			p.c.moves += uint64(i.Moves)
		}
	})
}

// Fail implements virtual.World.
func (p *peer) Fail(_ *virtual.Host, err error) { p.c.fail(p, err) }

// Failed implements virtual.World.
func (p *peer) Failed() bool { return p.c.fault != nil }
