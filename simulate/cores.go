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

// thread relaxes the parts of a process, one after the other.
type thread struct {
	core  int                // that it runs on
	until microproto.Instant // the parts that wait for it
}

// take reserves a core for work that is ready at an instant. It returns the core, when the work begins and how long it
// takes there. Relaxing has a thread, whose parts relax one at a time. It is slowed down by the work of the other cores
// at its beginning.
func (c *sharedCores) take(ready microproto.Instant, d time.Duration, relaxes *thread) (core int,
	begin microproto.Instant, took time.Duration) {
	for i, at := range c.free {
		if at < c.free[core] {
			core = i
		}
	}
	if relaxes != nil && relaxes.until > ready {
		core = relaxes.core
	}
	begin = max(ready, c.free[core])
	if relaxes != nil && c.crowding > 0 {
		others := 0
		for i, at := range c.free {
			if i != core && at > begin {
				others++
			}
		}
		d += time.Duration(float64(d) * c.crowding * float64(others))
	}
	c.free[core] = begin.Add(d)
	if relaxes != nil {
		*relaxes = thread{core, c.free[core]}
	}
	return core, begin, d
}

// station is what the ranks of a process share: its place in the network, and the thread that relaxes.
type station struct {
	line   line
	port   port
	thread thread
}

// findStations makes the stations of the hosts, and the cores of the machines that several ranks share.
func (e *engine) findStations(peers int) {
	ranks := map[int]int{}
	e.stations, e.cores = make([]*station, len(e.model.Hosts)), map[int]*sharedCores{}
	for rank := range peers {
		host, machine := e.run.hostOf(rank), e.run.machineOf(rank)
		if e.stations[host] == nil {
			e.stations[host] = &station{}
		}
		if ranks[machine]++; ranks[machine] == 2 {
			h := &e.model.Hosts[host]
			e.cores[machine] = &sharedCores{free: make([]microproto.Instant, max(1, h.Cores)), crowding: h.Crowding}
		}
	}
}

// coresOf returns the cores that a rank shares with others; nil: it shares none.
func (e *engine) coresOf(rank int) *sharedCores { return e.cores[e.run.machineOf(rank)] }

func (e *engine) stationOf(rank int) *station { return e.stations[e.run.hostOf(rank)] }

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
