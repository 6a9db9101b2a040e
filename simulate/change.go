package simulate

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// nextChange returns when the next change is due.
func (e *engine) nextChange() microproto.Instant {
	if len(e.changes) == 0 || e.began == microproto.Never {
		return microproto.Never
	}
	return e.instant(e.changes[0].at)
}

// applyChange begins or ends an event of the model.
func (e *engine) applyChange() {
	c := e.changes[0]
	e.changes = e.changes[1:]
	switch ev := c.ev; {
	case ev.Lost || ev.Killed:
		if ev.Rank < len(e.lost) {
			e.lose(ev, c.on, e.instant(c.at))
		}
	case ev.Slow > 0:
		e.setSpeed(c)
	case c.on:
		e.cuts = append(e.cuts, ev)
	default:
		e.cuts = slices.DeleteFunc(e.cuts, func(o *cluster.Event) bool { return o == ev })
	}
}

// setSpeed changes a machine's speed. Of several slow events in force, the one that began last
// counts.
func (e *engine) setSpeed(c modelChange) {
	rank := c.ev.Rank
	if rank >= len(e.slow) {
		return
	}
	if c.on {
		e.slowed = append(e.slowed, c.ev)
	} else {
		e.slowed = slices.DeleteFunc(e.slowed, func(o *cluster.Event) bool { return o == c.ev })
	}
	e.slow[rank] = 1
	for _, ev := range e.slowed {
		if ev.Rank == rank {
			e.slow[rank] = ev.Slow
		}
	}
}

// disconnected reports whether nothing passes between two ranks now.
func (e *engine) disconnected(a, b int) bool {
	return slices.ContainsFunc(e.cuts, func(c *cluster.Event) bool { return e.separates(c, a, b) })
}

// separates reports whether a cut is between two ranks.
func (e *engine) separates(c *cluster.Event, a, b int) bool {
	sa, sb := e.model.Sites[e.model.Hosts[a].Site], e.model.Sites[e.model.Hosts[b].Site]
	if c.Cut[1] == "" || c.Cut[0] == c.Cut[1] {
		return sa == c.Cut[0] && sb == sa && e.upperHalf(a) != e.upperHalf(b)
	}
	return sa == c.Cut[0] && sb == c.Cut[1] || sa == c.Cut[1] && sb == c.Cut[0]
}

// upperHalf reports whether a rank is in the upper half of its site.
func (e *engine) upperHalf(rank int) bool {
	below, all := 0, 0
	for r := range e.hosts {
		if e.model.Hosts[r].Site == e.model.Hosts[rank].Site {
			all++
			if r < rank {
				below++
			}
		}
	}
	return 2*below >= all
}
