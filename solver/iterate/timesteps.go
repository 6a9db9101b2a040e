package iterate

import "fmt"

// TimeSteps is a worker's place in time. In a stationary run everything is 0.
type TimeSteps struct {
	Total           int       // steps of the run
	Current         int       // in progress, from 1
	Previous        []float64 // own box at the end of the last complete step, dense
	Completed       int       // complete steps
	CompletedSweeps Iteration // in complete steps
	Parity          Iteration // lockstep: iterates of the complete steps, so that slots go on in turn
	staleHalos      uint64    // faces of an old step
	Worst           StepResult
}

// MaxEarly bounds the agreement messages of the next step that a neighbour can send
// before this peer is there: its diagonal, its first frozen face, its share of a
// residual, and that the run is to end early.
const maxEarlyMessages = 5

// Complete notes the end of the step in progress; more: another one comes.
func (s *TimeSteps) Complete(sweeps Iteration, residual float64) (r StepResult, more bool) {
	r = StepResult{Step: s.Current, Sweeps: sweeps, Residual: residual}
	if s.Completed++; s.Worst.Step == 0 || residual > s.Worst.Residual {
		s.Worst = r
	}
	if s.Current == s.Total {
		return r, false
	}
	s.CompletedSweeps += sweeps
	return r, true
}

// Conclude ends the run, or a time step after which another one comes: answer writes
// the own box at its end, begin begins the next.
func (p *Coordination) Finish(answer func(dst []float64), begin func() error) {
	s := &p.Steps
	var o Outcome
	p.Rule.Outcome(&o)
	if s.Total == 0 || o.Reason != Converged {
		p.Done = true
		return
	}
	answer(s.Previous)
	r, more := s.Complete(p.Iterate, o.Residual)
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

// keepEarly keeps an agreement message of the next time step until this peer is
// there.
func (p *Coordination) keepEarlyMessage(c *Channel, step int, msg []byte) error {
	if step > min(p.Steps.Current+1, p.Steps.Total) || p.Done {
		return fmt.Errorf("time step %d, while this peer is at %d of %d", step, p.Steps.Current, p.Steps.Total)
	}
	if len(c.earlyMessages) == maxEarlyMessages {
		return fmt.Errorf("more than %d messages of time step %d, which this peer has not begun", maxEarlyMessages, step)
	}
	c.earlyMessages = append(c.earlyMessages, append([]byte(nil), msg...))
	return nil
}

// replay takes in what was kept.
func (p *Coordination) replayEarlyMessages() error {
	for _, list := range [2][]*Channel{p.Channels, p.AgreementOnly} {
		for _, c := range list {
			early := c.earlyMessages
			c.earlyMessages = nil
			for _, msg := range early {
				if err := p.Agree(0, c.Rank, msg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
