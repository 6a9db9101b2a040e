package keepers

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
)

// Times of obstacle/internal/keep and obstacle/internal/peer.
const (
	retryTime  = 100 * time.Millisecond // least time between two attempts; the most is three times as long
	voteTime   = time.Second            // bound of the attempt of a process that wants to lead
	turnTime   = 200 * time.Millisecond // after which the next keeper proposes itself
	leadTime   = 5 * time.Second        // least bound of the search for a leader
	askTime    = 3 * time.Second        // largest bound of one attempt to find it; Suspect bounds it, too
	searchTime = 50 * time.Millisecond  // between two attempts
	roundsOver = 10                     // in which nothing listens anywhere, after which the search ends
)

// One-way latencies of a connection: TCP and TLS take four before the client can send, and the challenge of the server
// comes after the client's last message of TLS.
const (
	dialLegs   = 6 // until the client has the challenge
	refuseLegs = 2 // until it knows that nothing listens
)

// attempt is a proposal in progress.
type attempt struct {
	proposal *register.Proposal
	dialed   map[*process]bool // connections that are open; looked up only
	serial   int               // of the newest retry timer
	done     func(t register.Term)
}

// propose tries to decide what follows a term. done is called once with the result, which may be that of another
// process. limit bounds the attempt, after which done is called with the zero Term; Never: there is no bound.
func (g *Group) propose(p *process, base, want register.Term, limit time.Duration, done func(t register.Term)) {
	a := &attempt{dialed: map[*process]bool{}, done: done}
	var out []register.Message
	a.proposal, out = register.NewProposal(p.address, base, want, p.round+1)
	p.round, p.attempt = a.proposal.Round(), a
	if limit != Never {
		g.after(limit, func() {
			if p.attempt == a {
				p.attempt = nil
				done(register.Term{})
			}
		})
	}
	g.pump(p, a, out)
}

// pump sends messages of a proposal. Those to the process itself are answered at once.
func (g *Group) pump(p *process, a *attempt, out []register.Message) {
	for ; len(out) > 0; out = out[1:] {
		m := out[0]
		if m.To != p.address {
			g.request(p, a, m)
		} else if reply, ok := p.keeper.Step(m); ok {
			out = append(out, a.proposal.Step(reply)...)
		}
	}
	if t, ok := a.proposal.Result(); ok {
		p.attempt = nil
		g.adopt(p, t)
		a.done(t)
		return
	}
	a.serial++
	serial := a.serial
	g.after(retryTime+time.Duration(g.c.Rand.Int64N(int64(2*retryTime))), func() {
		if p.attempt == a && a.serial == serial && p.acts() {
			again := a.proposal.Retry()
			p.round = max(p.round, a.proposal.Round())
			g.pump(p, a, again)
		}
	})
}

// request sends a message to another keeper, and its reply back.
func (g *Group) request(p *process, a *attempt, m register.Message) {
	to := g.at(m.To)
	legs := 1
	if to == nil {
		return
	}
	if !a.dialed[to] {
		legs += dialLegs
	}
	g.send(p, to, legs, func() {
		a.dialed[to] = true
		if to.keeper == nil {
			return
		}
		reply, ok := to.keeper.Step(m)
		g.adopt(to, to.keeper.Newest())
		if !ok {
			return
		}
		g.send(to, p, 1, func() {
			if p.attempt == a {
				g.pump(p, a, a.proposal.Step(reply))
			}
		})
	})
}

// at returns the process with an address; nil: there is none.
func (g *Group) at(address string) *process {
	for _, p := range g.all {
		if p.address == address {
			return p
		}
	}
	return nil
}
