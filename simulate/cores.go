package simulate

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// cores are the processors of a machine that several ranks share. Who asks first is served
// first, by the core that is free first, until its work is done: a part of a sweep, or what the
// protocol does with frames. That is what peers do who yield after each part.
type sharedCores struct {
	free     []microproto.Instant
	crowding float64
}

// extend keeps a core longer, for what a thread does that has it: whoever waits for it comes
// later by as much.
func (c *sharedCores) extend(core int, now microproto.Instant, d time.Duration) {
	c.free[core] = max(c.free[core], now).Add(d)
}

// take finds a core for work that is ready at an instant: which, from when, and how long it
// takes there. Work that relaxes is slowed down by what the other cores are at when it begins.
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

// together are the cores that a rank shares with those before it, or new ones if it is the
// first of its machine; nil: no other rank is there.
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

// shares tells that hosts act on each other at once, through cores that they share: then a
// window is an instant, and one thread goes through them.
func (e *engine) sharesCores() bool {
	for _, m := range e.hosts {
		if m.cores != nil {
			return true
		}
	}
	return false
}

// awake delays what a flight brings to a thread that has blocked, and left its core to sleep:
// one of several waits for a core that is awake, if there is none else.
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
