package simulate

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/internal/keepers"
)

// paths tells which processes of a run reach each other, by the events of its model. It implements keepers.World. A
// process that has taken the place of a lost one runs on another machine, on the side of the process that leads.
type paths struct {
	model *cluster.Model
	ranks int
}

// latencyOf returns the one-way latency between the machines of two ranks.
func latencyOf(m *cluster.Model, a, b int) time.Duration {
	x, y := &m.Hosts[a], &m.Hosts[b]
	d := m.Networks[x.Network].Latency
	if x.Site != y.Site {
		d += m.Networks[y.Network].Latency + m.WAN[m.WANOf(x.Site, y.Site)].Latency
	}
	return d
}

// machineOf returns the rank of the machine that a process runs on, or is next to. The launcher is next to rank 0.
func machineOf(p *keepers.Process) int { return max(0, p.Rank) }

// Latency implements keepers.World.
func (w *paths) Latency(a, b *keepers.Process) time.Duration {
	return max(1, latencyOf(w.model, machineOf(a), machineOf(b)))
}

// Connected implements keepers.World.
func (w *paths) Connected(a, b *keepers.Process, at time.Duration) bool {
	return w.obstruction(a, b, at) == nil
}

// obstruction returns the event that prevents messages between two processes at a time, of several the one that lasts
// longest; nil: they pass.
func (w *paths) obstruction(a, b *keepers.Process, at time.Duration) (by *cluster.Event) {
	for i := range w.model.Events {
		ev := &w.model.Events[i]
		if inForce(ev, at) && (ev.Lost && (concerns(ev, a) || concerns(ev, b)) || w.separates(ev, a, b)) {
			by = longer(by, ev)
		}
	}
	return by
}

// down returns the event by which the machine of a process is silent, or the process was killed; nil: none.
func (w *paths) down(p *keepers.Process, at time.Duration) (by *cluster.Event) {
	for i := range w.model.Events {
		if ev := &w.model.Events[i]; inForce(ev, at) && (ev.Lost || ev.Killed) && concerns(ev, p) {
			by = longer(by, ev)
		}
	}
	return by
}

// inForce reports whether an event has begun and is not over.
func inForce(ev *cluster.Event, at time.Duration) bool {
	return ev.At <= at && (ev.Until == 0 || ev.Until > at)
}

// longer returns the one of two events that lasts longer. The first may be nil.
func longer(a, b *cluster.Event) *cluster.Event {
	if a != nil && (a.Until == 0 || b.Until > 0 && b.Until <= a.Until) {
		return a
	}
	return b
}

// concerns reports whether an event of one machine, or of the launcher, is one of a process. That of a lost process
// does not concern the one that has taken its place.
func concerns(ev *cluster.Event, p *keepers.Process) bool {
	if ev.Launcher || p.Rank == keepers.Launcher {
		return ev.Launcher && p.Rank == keepers.Launcher
	}
	return !ev.IsCut() && ev.Rank == p.Rank && (p.Since == 0 || ev.At > p.Since)
}

// separates reports whether a cut is between two processes.
func (w *paths) separates(ev *cluster.Event, a, b *keepers.Process) bool {
	if !ev.IsCut() {
		return false
	}
	x, y := w.side(ev, a), w.side(ev, b)
	return x != 0 && y != 0 && x != y
}

// side returns on which side of a cut a process is: 1 or 2, or 0 if it is on none.
func (w *paths) side(ev *cluster.Event, p *keepers.Process) int {
	for p.By != nil && p.Since >= ev.At {
		p = p.By
	}
	if ev.Cut == [2]string{} {
		if apart := p.Rank == keepers.Launcher; apart && ev.Launcher || !apart && slices.Contains(ev.Apart, p.Rank) {
			return 1
		}
		return 2
	}
	at := w.model.Hosts[machineOf(p)].Site
	halves := ev.Cut[1] == "" || ev.Cut[0] == ev.Cut[1]
	switch name := w.model.Sites[at]; {
	case halves && name == ev.Cut[0] && w.upperHalf(machineOf(p)), !halves && name == ev.Cut[1]:
		return 2
	case name == ev.Cut[0]:
		return 1
	}
	return 0
}

// upperHalf reports whether a rank is in the upper half of its site.
func (w *paths) upperHalf(rank int) bool {
	below, all := 0, 0
	for r := range w.ranks {
		if w.model.Hosts[r].Site == w.model.Hosts[rank].Site {
			all++
			if r < rank {
				below++
			}
		}
	}
	return 2*below >= all
}
