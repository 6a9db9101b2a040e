package iterate

import "fmt"

// TimeSteps is a worker's place in time. In a stationary run everything is 0.
type TimeSteps struct {
	Of      int       // steps of the run
	Current int       // in progress, from 1
	Before  []float64 // own box at the end of the last complete step, dense
	Done    int       // complete steps
	Swept   Iteration // in complete steps
	Parity  Iteration // lockstep: iterates of the complete steps, so that slots go on in turn
	stale   uint64    // faces of an old step
	Worst   StepResult
}

// MaxEarly bounds the agreement messages of the next step that a neighbour can send
// before this peer is there: its diagonal, its first frozen face, its share of a
// residual, and that the run is to end early.
const MaxEarly = 5

// Complete notes the end of the step in progress; more: another one comes.
func (s *TimeSteps) Complete(sweeps Iteration, residual float64) (r StepResult, more bool) {
	r = StepResult{Step: s.Current, Sweeps: sweeps, Residual: residual}
	if s.Done++; s.Worst.Step == 0 || residual > s.Worst.Residual {
		s.Worst = r
	}
	if s.Current == s.Of {
		return r, false
	}
	s.Swept += sweeps
	return r, true
}

// Conclude ends the run, or a time step after which another one comes: answer writes
// the own box at its end, begin begins the next.
func (p *Coordination) Conclude(answer func(dst []float64), begin func() error) {
	s := &p.Steps
	var o Outcome
	p.Rule.Outcome(&o)
	if s.Of == 0 || o.Reason != Converged {
		p.Done = true
		return
	}
	answer(s.Before)
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
		p.Fault = p.replay()
	}
}

// keepEarly keeps an agreement message of the next time step until this peer is
// there.
func (p *Coordination) keepEarly(c *Channel, step int, msg []byte) error {
	if step > min(p.Steps.Current+1, p.Steps.Of) || p.Done {
		return fmt.Errorf("time step %d, while this peer is at %d of %d", step, p.Steps.Current, p.Steps.Of)
	}
	if len(c.early) == MaxEarly {
		return fmt.Errorf("more than %d messages of time step %d, which this peer has not begun", MaxEarly, step)
	}
	c.early = append(c.early, append([]byte(nil), msg...))
	return nil
}

// replay takes in what was kept.
func (p *Coordination) replay() error {
	for _, list := range [2][]*Channel{p.Channels, p.Corners} {
		for _, c := range list {
			early := c.early
			c.early = nil
			for _, msg := range early {
				if err := p.Agree(0, c.Rank, msg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
