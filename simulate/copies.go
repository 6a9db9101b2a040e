package simulate

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// copies are the kept iterates of a run with Recovery.Exact, of all its epochs.
type copies struct {
	every   time.Duration  // least time between two kept iterates
	buddies []iterate.Rank // by rank
	ranks   []rankCopies   // what the machine of each rank has
	newest  iterate.Iteration
	from    map[iterate.Rank]iterate.Rank // who has the newest iterate of each lost rank
	known   bool                          // the newest iterate is known of each rank
}

// rankCopies are the copies that the machine of a rank has.
type rankCopies struct {
	buddy.Store
	points map[iterate.Iteration]uint64 // by kept iterate: relaxed by the rank until then
}

// newCopies returns the copies of a run, nil if it keeps none.
func newCopies(r *Config) *copies {
	n, longest := r.ranks(), 0
	if r.Recover == nil || !r.Recover.Exact || r.Solver.Problem.Steps() > 0 {
		return nil
	}
	for rank := range n {
		longest = max(longest, r.Solver.Partition.Box(iterate.Rank(rank)).Points())
	}
	_, volume := r.scale()
	c := &copies{
		every:   cmp.Or(r.Solver.KeepEvery, buddy.KeepEvery(int(volume)*longest)),
		buddies: buddiesOf(r), ranks: make([]rankCopies, n),
	}
	for rank := range c.ranks {
		c.ranks[rank].points = map[iterate.Iteration]uint64{}
	}
	return c
}

// buddiesOf returns the buddies of all ranks.
func buddiesOf(r *Config) []iterate.Rank {
	machines := make([]string, r.ranks())
	for rank := range machines {
		machines[rank] = strconv.Itoa(r.machineOf(rank))
	}
	return buddy.Of(machines)
}

// Keep implements World.
func (m *machine) Keep(_ *virtual.Host, op *iterate.Op) bool {
	c := m.e.run.resumed.copies
	if c == nil {
		return true // the peers are those of Config.New
	}
	m.begun = min(m.begun, m.now)
	p, k, own := m.settled(), iterate.Iteration(op.Label), &c.ranks[m.index]
	if op.Kind == iterate.OpKept {
		own.Complete(k, p.Box().Points(), p.Solution)
		maps.DeleteFunc(own.points, func(old iterate.Iteration, _ uint64) bool { return old < k })
		return true
	}
	own.Begin(k, op.Message)
	own.points[k] = m.points
	f, to := m.flight(), int32(c.buddies[m.index])
	*f = flight{from: m.index, kept: &buddy.Copy{Iterate: k, State: op.Message, Values: m.values()}}
	m.post(to, m.now.Add(m.e.copyTimes[m.index]+m.e.latency(m.index, to)), evCopy, f)
	return false
}

// values returns the values of the machine's block.
func (m *machine) values() []float64 {
	p := m.settled()
	u := make([]float64, p.Box().Points())
	p.Solution(u)
	return u
}

// copyArrived stores the copy of another rank's block and answers, unless one of the two peers has been lost. A copy
// that one of them was too silent for arrives again when both can be reached.
func (m *machine) copyArrived(f *flight) {
	switch at := m.undisturbed(f.from); {
	case at > m.now && at != microproto.Never:
		m.schedule(at, evCopy, f)
		return
	case at <= m.now:
		m.e.run.resumed.copies.ranks[m.index].Add(iterate.Rank(f.from), f.kept)
		m.post(f.from, m.now.Add(m.e.latency(m.index, f.from)), evStored, nil)
	}
	m.land(f)
}

// undisturbed returns when messages pass between this machine and another one: now, when the events that prevent that
// are over, or never.
func (m *machine) undisturbed(other int32) microproto.Instant {
	at := m.reachable(other)
	for _, rank := range []int32{m.index, other} {
		by := m.e.recovery.silentBy[rank]
		switch {
		case m.e.hosts[rank].retired || m.e.lost[rank] && (by == nil || by.Until == 0):
			return microproto.Never
		case m.e.lost[rank]:
			at = max(at, m.e.instant(by.Until))
		}
	}
	return at
}

// timeCopies returns by rank how long a copy of its block takes on the lines to its buddy, if all ranks send theirs at
// once.
func (e *engine) timeCopies() []time.Duration {
	c := e.run.resumed.copies
	if c == nil {
		return nil
	}
	bytes := func(rank int) float64 { return 8 * float64(e.hosts[rank].block) }
	load := map[*sharedLink]float64{} // bytes
	for rank, to := range c.buddies {
		for _, l := range e.sharedLinks(rank, int(to)) {
			load[l] += bytes(rank)
		}
	}
	out := make([]time.Duration, len(e.hosts))
	for rank, to := range c.buddies {
		x, y := &e.routes[rank], &e.routes[to]
		took := bytes(rank) * max(x.each, x.shaper.each, y.each)
		for _, l := range e.sharedLinks(rank, int(to)) {
			took = max(took, load[l]*l.each)
		}
		out[rank] = time.Duration(took)
	}
	return out
}

// sharedLinks returns the shared links between two ranks.
func (e *engine) sharedLinks(from, to int) (links []*sharedLink) {
	x, y := &e.routes[from], &e.routes[to]
	if x.site != y.site {
		links = append(links, e.wanLink(x.site, y.site))
	}
	if y.plane != nil {
		links = append(links, y.plane)
	}
	return links
}

// goBack decides from which iterate all ranks go on, and sets when the next epoch begins: the survivors tell what they
// have, and the launcher passes the copies of lost ranks on to their new processes.
func (e *engine) goBack() {
	r, c := &e.recovery, e.run.resumed.copies
	held := make([]*buddy.Holding, len(e.hosts))
	var lost []int
	for rank, m := range e.hosts {
		if r.given[rank] {
			lost = append(lost, rank)
			continue
		}
		c.ranks[rank].Freeze(m.settled().Progress().Sweep, m.values())
		h := c.ranks[rank].Holding()
		held[rank] = &h
	}
	c.newest, c.from, c.known = buddy.Newest(held)
	for i := range r.losses {
		r.losses[i].From = c.newest
	}
	fresh := append(lost, e.moved()...) // peers
	latency := e.farthest()
	at := e.now.Add(2 * latency)
	var fetch, deliver time.Duration
	if c.known {
		fetch = e.carryTime(fresh, func(rank int) int {
			if holder, lost := c.from[iterate.Rank(rank)]; lost {
				rank = int(holder)
			}
			return e.run.hostOf(rank)
		})
		deliver = e.carryTime(fresh, e.target)
		at = at.Add(2*latency + fetch)
	}
	at = e.replaced(at, latency)
	r.connecting = at.Add(latency + deliver + e.listsTime(len(fresh)) + e.newsTime(fresh))
	r.ready = r.connecting.Add(time.Duration(e.began))
}

// carryTime returns how long blocks of ranks take between the process that leads and the machines where they are, or
// go.
func (e *engine) carryTime(blocks []int, where func(rank int) int) time.Duration {
	all, longest := 0.0, 0.0
	for _, rank := range blocks {
		if at := where(rank); at != e.run.resumed.leads() {
			bytes := 8 * float64(e.hosts[rank].block)
			all += bytes / e.launcherRate()
			longest = max(longest, bytes/e.model.Networks[e.model.Hosts[at].Network].Rate)
		}
	}
	return seconds(max(all, longest))
}

// resume lets the next epoch go on from the newest iterate that is known of each rank, or begin again.
func (c *copies) resume(s *resumption) {
	n := len(c.ranks)
	s.starts, s.states, s.points = nil, nil, make([]uint64, n)
	if !c.known {
		for rank := range c.ranks {
			c.ranks[rank].Discard()
			clear(c.ranks[rank].points)
		}
		return
	}
	s.starts, s.states = make([][]float64, n), make([][]byte, n)
	for rank := range c.ranks {
		own := &c.ranks[rank]
		k := own.Own(c.newest)
		if holder, lost := c.from[iterate.Rank(rank)]; lost {
			k = c.ranks[holder].Other(iterate.Rank(rank), c.newest)
		}
		s.starts[rank], s.states[rank], s.points[rank] = k.Values, k.State, own.points[c.newest]
		own.Resume(k)
	}
}
