package keepers

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
)

// search is that of a peer for the process that leads, after the loss of its leader.
type search struct {
	lost    register.Term // of the lost leader
	since   time.Duration
	round   int
	open    int // processes that have not answered in this round
	nobody  bool
	refused bool // the run goes on without this peer
}

// leaderLost makes a peer search for the process that leads. Without other keepers it ends with its leader.
func (g *Group) leaderLost(p, l *process) {
	if p.leader != l || !p.acts() {
		return
	}
	p.leader, p.quiet = nil, Never
	if p.keeper != nil {
		p.keeper.LeaderReached(false)
		g.adopt(p, latest(p.keeper.Newest(), p.term))
	}
	if len(p.term.Keepers) < 2 {
		g.stop(p)
		return
	}
	p.search = &search{lost: p.term, since: g.now}
	g.searchRound(p, p.search)
}

func latest(a, b register.Term) register.Term {
	if a.Number > b.Number {
		return a
	}
	return b
}

// searchRound proposes the process itself if it is its turn, and asks who leads.
func (g *Group) searchRound(p *process, s *search) {
	if p.search != s || !p.acts() {
		return
	}
	if !g.turn(p, s) {
		g.ask(p, s)
		return
	}
	want := register.Term{Epoch: s.lost.Epoch, Leader: p.address, Keepers: []string{p.address}}
	for _, address := range s.lost.Keepers {
		if address != s.lost.Leader && address != p.address {
			want.Keepers = append(want.Keepers, address)
		}
	}
	want.Keepers = want.Keepers[:len(want.Keepers)-(len(want.Keepers)+1)%2]
	g.propose(p, s.lost, want, voteTime, func(t register.Term) {
		if t.Number > 0 && t.Leader == p.address {
			g.lead(p, t)
		}
		g.ask(p, s)
	})
}

// turn reports whether a process should propose itself. The keepers do so one after the other, in the order of the term.
func (g *Group) turn(p *process, s *search) bool {
	if p.keeper == nil || !p.record || p.office != nil || p.keeper.Newest().Number > s.lost.Number {
		return false
	}
	before := time.Duration(0)
	for _, address := range s.lost.Keepers {
		if address == p.address {
			return g.now-s.since >= before*turnTime
		}
		if address != s.lost.Leader {
			before++
		}
	}
	return false
}

// ask asks all processes that may lead for the place of a peer, at once.
func (g *Group) ask(p *process, s *search) {
	if p.search != s || !p.acts() {
		return
	}
	if p.keeper != nil {
		g.adopt(p, latest(p.keeper.Newest(), p.term))
	}
	var asked []*process
	for _, address := range slices.Concat([]string{p.term.Leader}, p.term.Keepers, s.lost.Keepers) {
		if q := g.at(address); !slices.Contains(asked, q) {
			asked = append(asked, q)
		}
	}
	s.open, s.nobody = len(asked), true
	s.round++
	round := s.round
	for _, q := range asked {
		once := false
		answered := func(listens bool) {
			if once || p.search != s || s.round != round {
				return
			}
			once = true
			s.nobody = s.nobody && !listens
			if s.open--; s.open == 0 {
				g.roundOver(p, s)
			}
		}
		g.after(min(askTime, g.c.Suspect), func() { answered(true) })
		if q != p && !g.c.Connected(&p.Process, &q.Process, g.now) {
			continue
		}
		if !q.acts() {
			g.after(refuseLegs*g.latency(p, q), func() { answered(false) })
			continue
		}
		g.send(p, q, dialLegs+1, func() { g.reseat(p, q, s, func() { answered(true) }) })
	}
}

// roundOver begins another round, or ends a search without success.
func (g *Group) roundOver(p *process, s *search) {
	late := g.now-s.since > max(leadTime, g.c.Timeout)
	if s.refused || late || s.nobody && s.round > roundsOver+1 {
		g.stop(p)
		return
	}
	g.after(searchTime, func() { g.searchRound(p, s) })
}

// reseat handles a peer that asks for its place, and answers it.
func (g *Group) reseat(p, l *process, s *search, refused func()) {
	o := l.office
	switch {
	case o == nil:
		g.send(l, p, 1, refused) // it may lead later, or another one
	case p.search != s: // it has found another one
	case !o.returning || g.members[p.Rank] != p:
		g.send(l, p, 1, func() {
			s.refused = true
			refused()
		})
	default:
		o.linked[p.Rank] = true
		g.send(l, p, 1, func() { g.returned(p, l, s) })
		if !slices.Contains(o.linked, false) {
			g.led(l)
		}
	}
}

// returned makes a peer follow its new leader.
func (g *Group) returned(p, l *process, s *search) {
	if p.search != s {
		return
	}
	p.search, p.leader = nil, l
	g.adopt(p, l.term)
	if p.keeper != nil {
		p.keeper.LeaderReached(true)
	}
	g.Changed(g.now)
}

// lead makes a process lead the run. It waits for the peers.
func (g *Group) lead(p *process, t register.Term) {
	o := newOffice(t, len(g.members))
	o.returning = true
	p.office = o
	p.keeper.LeaderReached(true) // it is this process
	g.emit(Event{Kind: Elected, Process: &p.Process, Term: t})
	g.after(2*g.c.Suspect, func() {
		if p.office == o && o.returning {
			g.led(p)
		}
	})
}

// led ends the return of the peers.
func (g *Group) led(l *process) {
	o := l.office
	o.returning = false
	var missing []int
	for rank, linked := range o.linked {
		if !linked {
			missing = append(missing, rank)
		}
	}
	g.emit(Event{Kind: Led, Process: &l.Process, Term: l.term, Missing: missing})
	if len(missing) == 0 {
		g.askKeepers(l)
	}
}
