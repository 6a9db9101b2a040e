package iterate

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Coordination is a peer's side of what all peers of a run agree on, whatever the method:
// the tree, the place in time, messages, and the rule that ends the run. Every kind of
// peer embeds one.
type Coordination struct {
	Config        Config
	Source        SnapshotSource
	Channels      []*Channel // one a neighbour: edges of the tree are some of them
	AgreementOnly []*Channel // of agreement sessions with peers that share no edge of the tree
	Halos         []*Channel // of halo sessions; may be the same as channels
	Tree          Tree
	Checks        CheckInterval
	Now           time.Duration // since the run's start, as last told
	Rule          TerminationRule
	Steps         TimeSteps
	Iterate       Iteration  // newest complete one
	CapturedAt    Iteration  // of the snapshot in progress or agreed
	Reference     kernel.Sum // own share of ‖r(u⁰)‖²
	outbox        []Op
	agreeLabel    uint64
	stopReason    Reason // root: an early end was asked for
	StopRequested bool   // it was, here or below
	Fault         error  // ends the run
	Done          bool
}

// SnapshotSource is the peer whose part of the assembled vector a rule of termination judges.
type SnapshotSource interface {
	Capture()                             // keep the newest complete iterate as the snapshot's; sets frozenAt
	Release()                             // the snapshot was not the answer
	PackCaptured(i int, dst []byte)       // what channel i sends of what is frozen
	Halt() Iteration                      // the run is to end early: begin no work that can be left out; the newest iterate begun
	Magnitudes() kernel.Sum               // of the vector that was measured last, see stagnation
	Receive(c *Channel, m *Message) error // messages of kinds that no rule of termination knows
}

// Queued reports whether there is an operation that has to be carried out before anything else: a
// message to be sent, or the end of a time step.
func (p *Coordination) Queued() bool { return len(p.outbox) > 0 }

// PopOutbox returns the first of these operations.
func (p *Coordination) Pop() Op {
	op := p.outbox[0]
	p.outbox[0] = Op{}
	p.outbox = p.outbox[1:]
	if len(p.outbox) == 0 {
		p.outbox = nil
	}
	return op
}

// Send queues an agreement message.
func (p *Coordination) Send(q Rank, m *Message) {
	p.agreeLabel++
	m.Step = p.Steps.Current
	p.outbox = append(p.outbox, Op{Kind: OpAgree, To: q, Label: p.agreeLabel, Message: m.Encode()})
}

// SendChildren queues an agreement message for every child in the tree.
func (p *Coordination) SendChildren(m *Message) {
	for _, q := range p.Tree.Children {
		p.Send(q, m)
	}
}

// SendParent sends up; false at the root.
func (p *Coordination) SendParent(m *Message) bool {
	if p.Tree.Parent < 0 {
		return false
	}
	p.Send(p.Tree.Parent, m)
	return true
}

// Agree tells that an agreement message came from q. The error names q; the run
// cannot go on after one. msg is not kept.
func (p *Coordination) Agree(now time.Duration, q Rank, msg []byte) error {
	p.Now = max(p.Now, now)
	c := p.ChannelOf(q)
	if c == nil {
		return fmt.Errorf("solver: an agreement message from rank %d, which is no neighbour of rank %d", q, p.Config.Rank)
	}
	m, err := decodeMessage(msg, c.Bytes)
	switch {
	case err != nil:
	case m.Step < p.Steps.Current && m.Kind != MsgStop:
		return nil // the step is over, and with it what the message was for
	case m.Step > p.Steps.Current && m.Kind != MsgStop:
		err = p.keepEarlyMessage(c, m.Step, msg)
	default:
		err = p.dispatch(c, &m)
	}
	if err != nil {
		return fmt.Errorf("solver: agreement message from rank %d: %w", q, err)
	}
	return nil
}

// dispatch checks that the message comes along the right edge of the tree.
func (p *Coordination) dispatch(c *Channel, m *Message) error {
	q := c.Rank
	switch m.Kind {
	case MsgDiagonal, MsgResidual, MsgEstimate, MsgStop, MsgFinished, MsgReach:
		if p.Tree.Child(q) < 0 {
			return fmt.Errorf("kind %d, which only children in the tree send", m.Kind)
		}
	case MsgStep, MsgVerdict, MsgClose, MsgEstimateReply, MsgHalt, MsgLast:
		if p.Tree.Parent != q {
			return fmt.Errorf("kind %d, which only the parent in the tree sends", m.Kind)
		}
	case MsgCaptured:
		if findChannel(p.Channels, q) == nil {
			return fmt.Errorf("captured values from a peer that exchanges none")
		}
	}
	switch m.Kind {
	case MsgResidual, MsgVerdict, MsgCaptured, MsgEstimate, MsgEstimateReply, MsgFinished, MsgClose, MsgHalt, MsgReach, MsgLast:
		return p.Rule.receive(c, m)
	case MsgStop:
		if m.Reason == Running || m.Reason == Converged || m.Reason == Stagnated {
			return fmt.Errorf("a stop for reason %d", m.Reason)
		}
		p.requestStop(m.Reason)
		return nil
	}
	return p.Source.Receive(c, m)
}

// requestStop passes the wish for an early end on, once.
func (p *Coordination) requestStop(r Reason) {
	if p.StopRequested {
		return
	}
	p.StopRequested = true
	if !p.SendParent(&Message{Kind: MsgStop, Reason: r}) {
		p.stopReason = r
		p.Rule.stopRequested()
	}
}

// Stopping reports whether the root knows that an early end was asked for.
func (p *Coordination) Stopping() bool { return p.stopReason != Running }

// ChannelOf returns the channel to a peer, nil if there is none.
func (p *Coordination) ChannelOf(q Rank) *Channel {
	if c := findChannel(p.Channels, q); c != nil {
		return c
	}
	return findChannel(p.AgreementOnly, q)
}

func findChannel(list []*Channel, q Rank) *Channel {
	for _, c := range list {
		if c.Rank == q {
			return c
		}
	}
	return nil
}

// Stop asks for an early end (interrupt, time). The wish travels to the root, which
// ends the run with the best iterate; a run that is about to end anyway may end for
// its own reason.
func (p *Coordination) Stop(_ time.Duration, why Reason) {
	if why == Running || why == Converged || p.Done {
		return
	}
	p.requestStop(why)
}

// Outcome tells how the run ended, or how far it has come.
func (p *Coordination) Outcome() Outcome {
	s := &p.Steps
	o := Outcome{
		Sweeps: s.CompletedSweeps + p.Iterate, Iterate: p.Iterate, Residual: UnknownResidual(),
		Steps: s.Completed, WorstResidual: s.Worst.Residual, WorstStep: s.Worst.Step, StaleHalos: s.staleHalos,
	}
	p.Rule.Outcome(&o)
	if !p.Done {
		o.Reason = Running
	}
	return o
}

// Progress tells how far the run has come.
func (p *Coordination) Progress() Progress {
	return Progress{Step: p.Steps.Current, Sweep: p.Steps.CompletedSweeps + p.Iterate, Residual: p.Rule.progress()}
}
