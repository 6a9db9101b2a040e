package sim

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// world is the virtual.World of a cluster's peers.
type world struct{ c *Cluster }

func (w world) peer(h *virtual.Host) *peer { return w.c.peers[h.Rank] }

// Now implements virtual.World.
func (w world) Now() microproto.Instant { return w.c.clock.Now() }

// Wake implements virtual.World.
func (w world) Wake(h *virtual.Host, at microproto.Instant) { w.c.clock.At(at, h.Turn) }

// Alarm implements virtual.World.
func (w world) Alarm(h *virtual.Host, at microproto.Instant) { w.c.clock.At(at, h.Due) }

// Carry implements virtual.World. Links are never full.
func (w world) Carry(h *virtual.Host, rail int, f microproto.Frame) bool {
	if rail == 0 {
		w.peer(h).send(f)
	} else {
		w.c.fabric.send(h.Rank, f)
	}
	return true
}

// Control implements virtual.World.
func (w world) Control(h *virtual.Host, o *p2psap.Output) {
	switch p := w.peer(h); o.Kind {
	case p2psap.OutControl:
		w.c.control(p, *o)
	case p2psap.OutDial:
		w.c.dial(p, o.Peer)
	case p2psap.OutDisconnect:
		w.c.disconnect(p, o.Conn)
	}
}

// Relax implements virtual.World.
func (w world) Relax(h *virtual.Host, op iterate.Op) time.Duration {
	p := w.peer(h)
	p.worker.Relax(op)
	p.points += uint64(op.Points)
	return w.c.Scenario.costAt(p.rank, time.Duration(w.c.clock.Now())).Relax(op.Points)
}

// Relaxed implements virtual.World.
func (world) Relaxed(*virtual.Host) {}

// Sends implements virtual.World.
func (w world) Sends(h *virtual.Host) time.Duration { return w.peer(h).cost.Send }

// Receives implements virtual.World.
func (world) Receives(*virtual.Host, bool) time.Duration { return 0 }

// Opened implements virtual.World.
func (w world) Opened(h *virtual.Host) {
	if s := w.c.Scenario.Stop; s.At > 0 && s.Rank == h.Rank {
		w.c.clock.After(s.At, func() {
			w.peer(h).worker.Stop(w.c.clock.Now().Sub(h.Began), s.Why)
			h.Touch()
		})
	}
}

// Stepped implements virtual.World.
func (w world) Stepped(h *virtual.Host, r *iterate.StepResult) {
	if w.c.stepped != nil {
		w.c.stepped(w.peer(h), r)
	}
}

// Finished implements virtual.World.
func (w world) Finished(h *virtual.Host) { w.peer(h).countMoves() }

// Fail implements virtual.World.
func (w world) Fail(h *virtual.Host, err error) { w.c.fail(w.peer(h), err) }

// Failed implements virtual.World.
func (w world) Failed() bool { return w.c.fault != nil }
