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
	hosts []int // by rank
	used  int   // hosts that the run uses
}

// latencyOf returns the one-way latency between two hosts.
func latencyOf(m *cluster.Model, a, b int) time.Duration {
	x, y := &m.Hosts[a], &m.Hosts[b]
	d := m.Networks[x.Network].Latency
	if x.Site != y.Site {
		d += m.Networks[y.Network].Latency + m.WAN[m.WANOf(x.Site, y.Site)].Latency
	}
	return d
}

// hostOf returns the host that a process runs on, or is next to. The launcher is next to the first.
func (w *paths) hostOf(p *keepers.Process) int {
	if p.Rank == keepers.Launcher {
		return 0
	}
	return w.hosts[p.Rank]
}

// Latency implements keepers.World.
func (w *paths) Latency(a, b *keepers.Process) time.Duration {
	return max(1, latencyOf(w.model, w.hostOf(a), w.hostOf(b)))
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
		if inForce(ev, at) && (ev.Lost && (w.concerns(ev, a) || w.concerns(ev, b)) || w.separates(ev, a, b)) {
			by = longer(by, ev)
		}
	}
	return by
}

// down returns the event by which the machine of a process is silent, or the process was killed; nil: none.
func (w *paths) down(p *keepers.Process, at time.Duration) (by *cluster.Event) {
	for i := range w.model.Events {
		if ev := &w.model.Events[i]; inForce(ev, at) && (ev.Lost || ev.Killed) && w.concerns(ev, p) {
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
func (w *paths) concerns(ev *cluster.Event, p *keepers.Process) bool {
	if ev.Launcher || p.Rank == keepers.Launcher {
		return ev.Launcher && p.Rank == keepers.Launcher
	}
	return !ev.IsCut() && ev.Rank == w.hostOf(p) && (p.Since == 0 || ev.At > p.Since)
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
		if apart := p.Rank == keepers.Launcher; apart && ev.Launcher || !apart && slices.Contains(ev.Apart, w.hostOf(p)) {
			return 1
		}
		return 2
	}
	at := w.model.Hosts[w.hostOf(p)].Site
	halves := ev.Cut[1] == "" || ev.Cut[0] == ev.Cut[1]
	switch name := w.model.Sites[at]; {
	case halves && name == ev.Cut[0] && w.upperHalf(w.hostOf(p)), !halves && name == ev.Cut[1]:
		return 2
	case name == ev.Cut[0]:
		return 1
	}
	return 0
}

// upperHalf reports whether a host is in the upper half of its site.
func (w *paths) upperHalf(host int) bool {
	below, all := 0, 0
	for h := range w.used {
		if w.model.Hosts[h].Site == w.model.Hosts[host].Site {
			all++
			if h < host {
				below++
			}
		}
	}
	return 2*below >= all
}
