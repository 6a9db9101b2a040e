package solver

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// party is a peer's side of what all peers of a run agree on, whatever the method:
// the tree, the place in time, messages, and the rule that ends the run. Every kind of
// peer embeds one.
type party struct {
	run        runConfig
	subject    subject
	channels   []*channel // one a neighbour: edges of the tree are some of them
	corners    []*channel // of agreement sessions with peers that share no edge of the tree
	halos      []*channel // of halo sessions; may be the same as channels
	tree       tree
	rhythm     rhythm
	now        time.Duration // since the run's start, as last told
	end        ending
	steps      stepping
	iterate    Iteration  // newest complete one
	frozenAt   Iteration  // of the snapshot in progress or agreed
	reference  kernel.Sum // own share of ‖r(u⁰)‖²
	outbox     []Op
	agreeLabel uint64
	wish       Reason // root: an early end was asked for
	wished     bool   // it was, here or below
	fault      error  // ends the run
	done       bool
}

// subject is the peer whose part of the assembled vector a rule of termination judges.
type subject interface {
	freeze()                           // keep the newest complete iterate as the snapshot's; sets frozenAt
	thaw()                             // the snapshot was not the answer
	packFrozen(i int, dst []byte)      // what channel i sends of what is frozen
	halt() Iteration                   // the run is to end early: begin no work that can be left out; the newest iterate begun
	magnitudes() kernel.Sum            // of the vector that was measured last, see stagnation
	hear(c *channel, m *message) error // messages of kinds that no rule of termination knows
}

func (p *party) popOutbox() Op {
	op := p.outbox[0]
	p.outbox[0] = Op{}
	p.outbox = p.outbox[1:]
	if len(p.outbox) == 0 {
		p.outbox = nil
	}
	return op
}

// tell queues an agreement message.
func (p *party) tell(q Rank, m *message) {
	p.agreeLabel++
	m.step = p.steps.at
	p.outbox = append(p.outbox, Op{Kind: OpAgree, To: q, Label: p.agreeLabel, Message: m.encode()})
}

func (p *party) tellChildren(m *message) {
	for _, q := range p.tree.children {
		p.tell(q, m)
	}
}

// tellParent sends up; false at the root.
func (p *party) tellParent(m *message) bool {
	if p.tree.parent < 0 {
		return false
	}
	p.tell(p.tree.parent, m)
	return true
}

// Agree tells that an agreement message came from q. The error names q; the run
// cannot go on after one. msg is not kept.
func (p *party) Agree(now time.Duration, q Rank, msg []byte) error {
	p.now = max(p.now, now)
	c := p.channelOf(q)
	if c == nil {
		return fmt.Errorf("solver: an agreement message from rank %d, which is no neighbour of rank %d", q, p.run.Rank)
	}
	m, err := decodeMessage(msg, c.bytes)
	switch {
	case err != nil:
	case m.step < p.steps.at && m.kind != msgStop:
		return nil // the step is over, and with it what the message was for
	case m.step > p.steps.at && m.kind != msgStop:
		err = p.keepEarly(c, m.step, msg)
	default:
		err = p.dispatch(c, &m)
	}
	if err != nil {
		return fmt.Errorf("solver: agreement message from rank %d: %w", q, err)
	}
	return nil
}

// dispatch checks that the message comes along the right edge of the tree.
func (p *party) dispatch(c *channel, m *message) error {
	q := c.rank
	switch m.kind {
	case msgDiagonal, msgResidual, msgEstimate, msgStop, msgFinished, msgReach:
		if p.tree.child(q) < 0 {
			return fmt.Errorf("kind %d, which only children in the tree send", m.kind)
		}
	case msgStep, msgVerdict, msgClose, msgHeard, msgHalt, msgLast:
		if p.tree.parent != q {
			return fmt.Errorf("kind %d, which only the parent in the tree sends", m.kind)
		}
	case msgFace:
		if c.bytes == 0 {
			return fmt.Errorf("a frozen face, while the boxes share none")
		}
	}
	switch m.kind {
	case msgResidual, msgVerdict, msgFace, msgEstimate, msgHeard, msgFinished, msgClose, msgHalt, msgReach, msgLast:
		return p.end.agree(c, m)
	case msgStop:
		if m.reason == Running || m.reason == Converged || m.reason == Stagnated {
			return fmt.Errorf("a stop for reason %d", m.reason)
		}
		p.want(m.reason)
		return nil
	}
	return p.subject.hear(c, m)
}

// want passes the wish for an early end on, once.
func (p *party) want(r Reason) {
	if p.wished {
		return
	}
	p.wished = true
	if !p.tellParent(&message{kind: msgStop, reason: r}) {
		p.wish = r
		p.end.wished()
	}
}

// Stopping reports whether the root knows that an early end was asked for.
func (p *party) Stopping() bool { return p.wish != Running }

// channelOf returns the channel to a peer, nil if there is none.
func (p *party) channelOf(q Rank) *channel {
	if c := find(p.channels, q); c != nil {
		return c
	}
	return find(p.corners, q)
}

func find(list []*channel, q Rank) *channel {
	for _, c := range list {
		if c.rank == q {
			return c
		}
	}
	return nil
}

// Stop asks for an early end (interrupt, time). The wish travels to the root, which
// ends the run with the best iterate; a run that is about to end anyway may end for
// its own reason.
func (p *party) Stop(_ time.Duration, why Reason) {
	if why == Running || why == Converged || p.done {
		return
	}
	p.want(why)
}

// Outcome tells how the run ended, or how far it has come.
func (p *party) Outcome() Outcome {
	s := &p.steps
	o := Outcome{
		Sweeps: s.swept + p.iterate, Iterate: p.iterate, Residual: notYet(),
		Steps: s.done, Worst: s.worst.Residual, WorstStep: s.worst.Step, Stale: s.stale,
	}
	p.end.outcome(&o)
	if !p.done {
		o.Reason = Running
	}
	return o
}

// Progress tells how far the run has come.
func (p *party) Progress() Progress {
	return Progress{Step: p.steps.at, Sweep: p.steps.swept + p.iterate, Residual: p.end.progress()}
}
