package keepers

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
)

// office is the state of a process that leads the run. It does what obstacle/internal/launch does with its keepers.
type office struct {
	epoch     int
	due       bool       // an epoch begins when the next term is decided
	returning bool       // peers that lost their leader have not come yet
	linked    []bool     // by rank: it has a connection to the peer
	asked     []*process // by rank: asked to keep the register
	keeps     []*process // by rank: keeps it
}

func newOffice(t register.Term, ranks int) *office {
	return &office{
		epoch: t.Epoch, linked: make([]bool, ranks), asked: make([]*process, ranks), keeps: make([]*process, ranks),
	}
}

// askKeepers asks peers to keep the register, those on other machines first, until there are enough.
func (g *Group) askKeepers(l *process) {
	o, left := l.office, g.c.Keepers-1
	taken := make([]bool, len(g.members))
	var hosts []int
	if l.Rank != Launcher {
		hosts = append(hosts, g.c.Hosts[l.Rank])
	}
	for rank, m := range g.members {
		if taken[rank] = m == l || o.asked[rank] == m; o.asked[rank] == m {
			hosts = append(hosts, g.c.Hosts[rank])
			left--
		}
	}
	for _, other := range []bool{true, false} { // machines
		for rank, m := range g.members {
			if left <= 0 || taken[rank] || !o.linked[rank] || other && slices.Contains(hosts, g.c.Hosts[rank]) {
				continue
			}
			taken[rank], o.asked[rank], hosts = true, m, append(hosts, g.c.Hosts[rank])
			left--
			g.send(l, m, 1, func() { g.keep(l, m) })
		}
	}
}

// keep makes a peer a keeper, which answers its leader.
func (g *Group) keep(l, m *process) {
	if m.keeper == nil {
		m.keeper = register.NewKeeper(m.address, register.Term{})
	}
	g.send(m, l, 1, func() {
		if l.office != nil && g.members[m.Rank] == m {
			l.office.keeps[m.Rank] = m
			g.proposeTerm(l)
		}
	})
}

// proposeTerm proposes a term if one is due or the keepers are to change, unless a proposal is under way.
func (g *Group) proposeTerm(l *process) {
	o := l.office
	if l.attempt != nil || o.returning {
		return
	}
	want := register.Term{Epoch: o.epoch, Leader: l.address, Keepers: g.keeperAddresses(l)}
	if o.due {
		want.Epoch++
	} else if slices.Equal(want.Keepers, l.term.Keepers) {
		return
	}
	g.propose(l, l.term, want, Never, func(t register.Term) { g.termDecided(l, t) })
	g.bound(l)
}

// bound ends the part of a leader whose epoch most keepers do not agree to in time.
func (g *Group) bound(l *process) {
	a := l.attempt
	if a == nil || !l.office.due {
		return
	}
	g.after(g.c.Timeout, func() {
		if l.attempt == a && l.office != nil && l.office.due {
			g.depose(l)
		}
	})
}

// keeperAddresses returns the wanted keepers: the leader and peers that keep, an odd number.
func (g *Group) keeperAddresses(l *process) []string {
	out := []string{l.address}
	for rank, m := range g.members {
		if o := l.office; o.keeps[rank] == m && o.linked[rank] && m != l && len(out) < g.c.Keepers {
			out = append(out, m.address)
		}
	}
	return out[:len(out)-(len(out)+1)%2]
}

// termDecided handles the answer to a proposal of a leader.
func (g *Group) termDecided(l *process, t register.Term) {
	o := l.office
	if t.Leader != l.address {
		g.depose(l)
		return
	}
	for rank, m := range g.members {
		if o.linked[rank] && m != l {
			g.send(l, m, 1, func() {
				g.adopt(m, t)
				if m.keeper != nil && m.leader == l && m.keeper.Newest().Leader == l.address {
					m.keeper.LeaderReached(true)
				}
				m.record = m.record || m.keeper != nil && slices.Contains(t.Keepers, m.address)
			})
		}
	}
	if o.due && t.Epoch > o.epoch {
		o.due, o.epoch = false, t.Epoch
		g.emit(Event{Kind: Granted, Process: &l.Process, Term: t})
	}
	g.proposeTerm(l)
}

// depose ends the part of a process that must not lead any more, and of the peers that it reaches.
func (g *Group) depose(l *process) {
	for _, p := range g.all {
		if p != l && p.leader == l {
			g.send(l, p, 1, func() { g.stop(p) })
		}
	}
	g.stop(l)
}

// BeginEpoch makes the leader that a process is begin an epoch without some ranks. Granted follows, at once if the
// leader alone decides, unless most keepers are out of its reach.
func (g *Group) BeginEpoch(now time.Duration, by *Process, lost []int) {
	g.Advance(now)
	l := g.find(by)
	if l == nil || l.office == nil {
		return
	}
	for _, rank := range lost {
		l.office.linked[rank] = false
	}
	first := !l.office.due
	l.office.due = true
	if l.attempt != nil && first {
		g.bound(l)
	}
	g.proposeTerm(l)
}

// Replace lets a new process take the place of a rank, given by the leader that a process is.
func (g *Group) Replace(now time.Duration, by *Process, rank int) {
	g.Advance(now)
	l := g.find(by)
	p := g.add(Process{Rank: rank, Since: now, By: by})
	p.leader = l
	g.members[rank] = p
	g.send(l, p, 1, func() { g.adopt(p, l.term) })
	g.Changed(now)
}

// Move must be called when the peer of a rank has moved to another machine.
func (g *Group) Move(now time.Duration, rank int) {
	g.Advance(now)
	g.members[rank].Since = now
	g.Changed(now)
}

// Recovered must be called when all peers relax in an epoch that a leader has begun.
func (g *Group) Recovered(now time.Duration, by *Process) {
	g.Advance(now)
	l := g.find(by)
	if l == nil || l.office == nil {
		return
	}
	for rank, m := range g.members {
		l.office.linked[rank] = m.leader == l || m == l
	}
	g.askKeepers(l)
}

// find returns the state of a process.
func (g *Group) find(p *Process) *process {
	for _, q := range g.all {
		if &q.Process == p {
			return q
		}
	}
	return nil
}
