package simulate

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// sharedCores are the cores of a machine that several ranks share. Requests are served in order,
// each by the core that is free first, until its work is done: a part of a sweep, or the protocol's
// work on frames. Peers that yield after each part behave like that.
type sharedCores struct {
	free     []microproto.Instant
	crowding float64
}

// extend keeps a core busy for longer, for more work of the thread that has it.
func (c *sharedCores) extend(core int, now microproto.Instant, d time.Duration) {
	c.free[core] = max(c.free[core], now).Add(d)
}

// take reserves a core for work that is ready at an instant. It returns the core, when the work
// begins and how long it takes there. Relaxing is slowed down by the work of the other cores at its
// beginning.
func (c *sharedCores) take(ready microproto.Instant, d time.Duration, relaxes bool) (core int,
	begin microproto.Instant, took time.Duration) {
	for i, at := range c.free {
		if at < c.free[core] {
			core = i
		}
	}
	begin = max(ready, c.free[core])
	if relaxes && c.crowding > 0 {
		others := 0
		for i, at := range c.free {
			if i != core && at > begin {
				others++
			}
		}
		d += time.Duration(float64(d) * c.crowding * float64(others))
	}
	c.free[core] = begin.Add(d)
	return core, begin, d
}

// coresOf returns the cores that a rank shares with those before it, or new ones if it is the first
// of its machine. It returns nil if the machine has no other rank.
func (e *engine) coresOf(rank int) *sharedCores {
	h := e.model.Hosts
	switch {
	case h[rank].Machine == 0:
		return nil
	case rank > 0 && h[rank-1].Machine == h[rank].Machine:
		return e.hosts[rank-1].cores
	case rank+1 < len(e.hosts) && h[rank+1].Machine == h[rank].Machine:
		return &sharedCores{free: make([]microproto.Instant, max(1, h[rank].Cores)), crowding: h[rank].Crowding}
	}
	return nil
}

// sharesCores reports whether hosts act on each other at once, through shared cores. Then a window
// is an instant, and one thread simulates.
func (e *engine) sharesCores() bool {
	return slices.ContainsFunc(e.hosts, func(m *machine) bool { return m.cores != nil })
}

// delayWake delays a flight for a thread that has blocked and left its core to sleep. If several
// ranks share the machine, only a machine with all cores asleep causes the delay.
func (m *machine) delayWake(f *flight) {
	w := &m.class.Wake
	if w.Takes == 0 || m.host.Relaxing() {
		return
	}
	since := m.host.Busy()
	if m.cores != nil {
		since = max(since, slices.Min(m.cores.free))
	}
	if f.first.Sub(since) <= w.After {
		return
	}
	f.first, f.last = f.first.Add(w.Takes), f.last.Add(w.Takes)
}
