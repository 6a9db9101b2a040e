package iterate

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Coordination is the part of a peer that is the same for every method: its channels, the tree of
// reductions, the time step, the queue of agreement messages and the rule of termination. Every
// implementation of Peer in this module but that of package multilevel embeds one.
type Coordination struct {
	Config        Config
	Source        SnapshotSource
	Channels      []*Channel // channels that take part in snapshots; every edge of the tree is one
	AgreementOnly []*Channel // agreement sessions that take no part in snapshots
	Halos         []*Channel // channels with a halo session; may equal Channels
	Tree          Tree
	Checks        CheckInterval
	EarlyStart    bool          // out of lockstep, relaxation begins before the starting vector is measured
	Now           time.Duration // since the start of the run, as passed by the caller last
	Rule          TerminationRule
	Steps         TimeSteps
	Iterate       Iteration  // newest complete iterate
	CapturedAt    Iteration  // iterate captured by the newest snapshot
	Spent         float64    // work of this peer in sweeps over its box; 0: as many as iterates
	Reference     kernel.Sum // this peer's share of the squared norm of the reference residual
	Best          BestIterate
	outbox        []Op
	agreeLabel    uint64
	stopReason    Reason // at the root: reason of a requested early end, Running if there is none
	StopRequested bool   // an early end was requested here or in the subtree
	Fault         error  // ends the run
	Done          bool
}

// work returns the work of this peer until iterate k, in sweeps over its box.
func (p *Coordination) work(k Iteration) float64 { return max(p.Spent, float64(k)) }

// SnapshotSource gives the rules of termination access to the values of a peer.
type SnapshotSource interface {
	// Capture keeps the newest complete iterate for a snapshot and sets CapturedAt.
	Capture()
	// Release discards the captured values: the snapshot was not the answer.
	Release()
	// PackCaptured writes the halo of Channels[i], taken from the captured values, to dst.
	PackCaptured(i int, dst []byte)
	// Halt announces an early end: no optional work is begun any more. It returns the newest iterate
	// whose computation has begun.
	Halt() Iteration
	// Magnitudes returns the exact sum of squares of the magnitudes m of the vector that was
	// measured last; see Stagnation.
	Magnitudes() kernel.Sum
	// Receive handles a message of a kind that belongs to a method and to no rule of termination.
	Receive(c *Channel, m *Message) error
}

// Pending returns the operation that goes before anything else: a queued message or the end of a time step, then
// the end of the run. It reports whether there is one.
func (p *Coordination) Pending() (Op, bool) {
	switch {
	case p.Queued():
		op := p.outbox[0]
		p.outbox[0] = Op{}
		if p.outbox = p.outbox[1:]; len(p.outbox) == 0 {
			p.outbox = nil
		}
		return op, true
	case p.Fault != nil:
		return Op{Kind: OpFail, Err: p.Fault}, true
	case p.Done:
		return Op{Kind: OpDone}, true
	}
	return Op{}, false
}

// Queued reports whether the outbox holds an operation: a message to send or the end of a time step.
// Queued operations precede all others.
func (p *Coordination) Queued() bool { return len(p.outbox) > 0 }

// Send queues an agreement message.
func (p *Coordination) Send(q Rank, m *Message) {
	p.agreeLabel++
	m.Step = p.Steps.Current
	p.outbox = append(p.outbox, Op{Kind: OpAgree, To: q, Label: p.agreeLabel, Message: m.Encode()})
}

// SendChildren queues an agreement message to every child in the tree.
func (p *Coordination) SendChildren(m *Message) {
	for _, q := range p.Tree.Children {
		p.Send(q, m)
	}
}

// SendParent queues an agreement message to the parent in the tree. It returns false at the root.
func (p *Coordination) SendParent(m *Message) bool {
	if p.Tree.Parent < 0 {
		return false
	}
	p.Send(p.Tree.Parent, m)
	return true
}

// Agree passes in an agreement message from q; see Peer.
func (p *Coordination) Agree(now time.Duration, q Rank, msg []byte) error {
	p.Now = max(p.Now, now)
	c := p.ChannelOf(q)
	if c == nil {
		return fmt.Errorf("iterate: an agreement message from rank %d, which is not a neighbour of rank %d",
			q, p.Config.Rank)
	}
	m, err := decodeMessage(msg, c.Bytes)
	if err == nil {
		err = m.check(p.screenOf(c))
	}
	switch {
	case err != nil:
	case m.Step < p.Steps.Current && m.Kind != MsgStop:
		return nil // the time step has ended; its messages are obsolete
	case m.Step > p.Steps.Current && m.Kind != MsgStop:
		err = p.keepEarlyMessage(c, m.Step, msg)
	default:
		err = p.dispatch(c, &m)
	}
	if err != nil {
		return fmt.Errorf("iterate: agreement message from rank %d: %w", q, err)
	}
	return nil
}

// dispatch checks that the sender is allowed to send a message of this kind, and passes the message to its handler.
func (p *Coordination) dispatch(c *Channel, m *Message) error {
	q := c.Rank
	switch m.Kind {
	case MsgDiagonal, MsgResidual, MsgEstimate, MsgStop, MsgFinished, MsgReach, MsgKept:
		if p.Tree.Child(q) < 0 {
			return fmt.Errorf("message kind %d, which only children in the tree send", m.Kind)
		}
	case MsgStep, MsgVerdict, MsgClose, MsgEstimateReply, MsgHalt, MsgLast, MsgKeptAll:
		if p.Tree.Parent != q {
			return fmt.Errorf("message kind %d, which only the parent in the tree sends", m.Kind)
		}
	case MsgCaptured:
		if findChannel(p.Channels, q) == nil {
			return fmt.Errorf("captured values from a peer that takes no part in snapshots")
		}
	}
	switch m.Kind {
	case MsgResidual, MsgVerdict, MsgCaptured, MsgEstimate, MsgEstimateReply,
		MsgFinished, MsgClose, MsgHalt, MsgReach, MsgLast, MsgKept, MsgKeptAll:
		return p.Rule.receive(c, m)
	case MsgStop:
		if m.Reason == Running || m.Reason == Converged || m.Reason == Stagnated {
			return fmt.Errorf("a stop request with reason %d, which does not end a run early", m.Reason)
		}
		p.requestStop(m.Reason)
		return nil
	}
	return p.Source.Receive(c, m)
}

// requestStop forwards the first request for an early end towards the root.
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

// Stop requests an early end of the run; see Peer.
func (p *Coordination) Stop(_ time.Duration, why Reason) {
	if why == Running || why == Converged || p.Done {
		return
	}
	p.requestStop(why)
}

// Outcome returns the result of the run, or its state so far; see Peer.
func (p *Coordination) Outcome() Outcome {
	s := &p.Steps
	o := Outcome{
		Sweeps: s.CompletedSweeps + p.Iterate, Iterate: p.Iterate, Residual: UnknownResidual(),
		Steps: s.Completed, WorstResidual: s.Worst.Residual, WorstStep: s.Worst.Step, StaleHalos: s.staleHalos,
	}
	p.Rule.Outcome(&o)
	if !p.Done {
		o.Reason = Running
	} else if p.AnswersBest() {
		o.Iterate, o.Residual = p.Best.At, p.Best.Residual
	}
	return o
}

// Offer returns an array for the newest complete iterate, of which a check in lockstep begins, nil if it is not needed.
func (p *Coordination) Offer() []float64 { return p.Best.Offer(p.Rule.progress()) }

// AnswersBest reports whether Best.Values are the answer of the run, which has ended.
func (p *Coordination) AnswersBest() bool {
	var o Outcome
	p.Rule.Outcome(&o)
	return p.Done && o.Reason != Converged && p.Best.Better(o.Residual)
}

// Progress returns the state of the run for display; see Peer.
func (p *Coordination) Progress() Progress {
	return Progress{Step: p.Steps.Current, Sweep: p.Steps.CompletedSweeps + p.Iterate, Residual: p.Rule.progress()}
}
