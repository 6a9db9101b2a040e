package simulate

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/internal/keepers"
)

// nextChange returns when the next change is due.
func (e *engine) nextChange() microproto.Instant {
	at := microproto.Never
	if e.began == microproto.Never {
		return at
	}
	if len(e.changes) > 0 {
		at = e.instant(e.changes[0].at)
	}
	at = min(at, e.decision)
	if g := e.run.resumed.group; g != nil && g.Next() != keepers.Never {
		at = min(at, e.instant(g.Next()))
	}
	return at
}

// applyChange begins or ends an event of the model, or lets the keepers do what is due at an instant.
func (e *engine) applyChange(at microproto.Instant) {
	if len(e.changes) == 0 || e.instant(e.changes[0].at) > at {
		e.run.resumed.group.Advance(e.since(at))
		e.followKeepers(at)
		if e.decision <= at && !e.stopped {
			e.checkMoves(at)
		}
		return
	}
	c := e.changes[0]
	e.changes = e.changes[1:]
	switch ev := c.ev; {
	case ev.Launcher && !ev.IsCut():
		e.loseLauncher(ev, at)
	case ev.Lost || ev.Killed:
		if ev.Rank < e.run.used() {
			e.lose(ev, c.on, at)
		}
	case ev.Slow > 0:
		e.setSpeed(c)
	case c.on:
		e.cuts = append(e.cuts, ev)
		e.hear(at)
	default:
		e.cuts = slices.DeleteFunc(e.cuts, func(o *cluster.Event) bool { return o == ev })
		e.hear(at)
	}
}

// setSpeed changes a machine's speed. Of several slow events in force, the one that began last
// counts.
func (e *engine) setSpeed(c modelChange) {
	if c.on {
		e.slowed = append(e.slowed, c.ev)
	} else {
		e.slowed = slices.DeleteFunc(e.slowed, func(o *cluster.Event) bool { return o == c.ev })
	}
	for rank := range e.slow {
		e.slow[rank] = 1
		for _, ev := range e.slowed {
			if ev.Rank == e.run.hostOf(rank) {
				e.slow[rank] = ev.Slow
			}
		}
	}
}

// disconnected reports whether nothing passes between two ranks now.
func (e *engine) disconnected(a, b int) bool {
	return slices.ContainsFunc(e.cuts, func(c *cluster.Event) bool { return e.separates(c, a, b) })
}

// separates reports whether a cut is between two ranks.
func (e *engine) separates(c *cluster.Event, a, b int) bool {
	w := e.run.paths()
	return w.separates(c, e.process(a), e.process(b))
}

// process returns the process that has the place of a rank.
func (e *engine) process(rank int) *keepers.Process {
	if g := e.run.resumed.group; g != nil {
		return g.Member(rank)
	}
	return &keepers.Process{Rank: rank}
}
