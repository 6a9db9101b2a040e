package iterate

import (
	"fmt"
	"slices"
)

// TimeSteps is the state of a peer in a run with time steps. All fields are 0 in a stationary run.
type TimeSteps struct {
	Total           int       // steps of the run
	Current         int       // step in progress, from 1
	Previous        []float64 // values of the peer's box at the end of the last complete step, dense
	Completed       int       // complete steps, with those of an earlier run
	CompletedSweeps Iteration // in complete steps of this run
	Parity          Iteration // in lockstep: iterates of the complete steps, so that slots continue to alternate
	staleHalos      uint64    // dropped halos of past steps
	Worst           StepResult
}

// maxEarlyMessages bounds the agreement messages of the next step that a neighbour can send before this peer
// begins the step: its diagonal, its first captured halo, its residual and requests for an early end.
const maxEarlyMessages = 5

// Complete records the end of the step in progress, for the reason why. It returns the result and whether another step
// follows.
func (s *TimeSteps) Complete(sweeps Iteration, residual float64, why Reason) (r StepResult, more bool) {
	r = StepResult{Step: s.Current, Sweeps: sweeps, Residual: residual}
	if s.Completed++; s.Worst.Step == 0 || residual > s.Worst.Residual {
		s.Worst = r
	}
	if s.Current == s.Total || why != Converged {
		return r, false
	}
	s.CompletedSweeps += sweeps
	return r, true
}

// Finish ends the run, or the time step if another one follows. answer writes the values of the peer's
// box at the end of the step to dst, and begin begins the next step.
func (p *Coordination) Finish(answer func(dst []float64), begin func() error) {
	s := &p.Steps
	var o Outcome
	p.Rule.Outcome(&o)
	if s.Total == 0 || !o.Reason.EndsStep() {
		p.Done = true
		return
	}
	answer(s.Previous)
	r, more := s.Complete(p.Iterate, o.Residual, o.Reason)
	p.outbox = append(p.outbox, Op{Kind: OpStep, Step: &r})
	if !more {
		p.Done = true
		return
	}
	if p.Config.Scheme.Lockstep() {
		s.Parity += p.Iterate
	}
	if p.Fault = begin(); p.Fault == nil {
		p.Fault = p.replayEarlyMessages()
	}
}

// keepEarlyMessage keeps an agreement message of the next time step until this peer begins that step.
func (p *Coordination) keepEarlyMessage(c *Channel, step int, msg []byte) error {
	if step > min(p.Steps.Current+1, p.Steps.Total) || p.Done {
		return fmt.Errorf("a message of time step %d; this peer is at step %d of %d",
			step, p.Steps.Current, p.Steps.Total)
	}
	if len(c.earlyMessages) == maxEarlyMessages {
		return fmt.Errorf("more than %d messages of time step %d, which this peer has not begun",
			maxEarlyMessages, step)
	}
	c.earlyMessages = append(c.earlyMessages, slices.Clone(msg))
	return nil
}

// replayEarlyMessages handles the messages that were kept for this time step.
func (p *Coordination) replayEarlyMessages() error {
	for _, c := range slices.Concat(p.Channels, p.AgreementOnly) {
		early := c.earlyMessages
		c.earlyMessages = nil
		for _, msg := range early {
			if err := p.Agree(0, c.Rank, msg); err != nil {
				return err
			}
		}
	}
	return nil
}
