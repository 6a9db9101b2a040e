package solver

import "fmt"

// stepping is a worker's place in time. In a stationary run everything is 0.
type stepping struct {
	of     int       // steps of the run
	at     int       // in progress, from 1
	before []float64 // own box at the end of the last complete step, dense
	done   int       // complete steps
	swept  Iteration // in complete steps
	parity Iteration // lockstep: iterates of the complete steps, so that slots go on in turn
	stale  uint64    // faces of an old step
	worst  StepResult
}

// maxEarly bounds the agreement messages of the next step that a neighbour can send
// before this peer is there: its diagonal, its first frozen face, its share of a
// residual, and that the run is to end early.
const maxEarly = 5

// complete notes the end of the step in progress; more: another one comes.
func (s *stepping) complete(sweeps Iteration, residual float64) (r StepResult, more bool) {
	r = StepResult{Step: s.at, Sweeps: sweeps, Residual: residual}
	if s.done++; s.worst.Step == 0 || residual > s.worst.Residual {
		s.worst = r
	}
	if s.at == s.of {
		return r, false
	}
	s.swept += sweeps
	return r, true
}

// conclude ends the run, or a time step after which another one comes: answer writes
// the own box at its end, begin begins the next.
func (p *party) conclude(answer func(dst []float64), begin func() error) {
	s := &p.steps
	var o Outcome
	p.end.outcome(&o)
	if s.of == 0 || o.Reason != Converged {
		p.done = true
		return
	}
	answer(s.before)
	r, more := s.complete(p.iterate, o.Residual)
	p.outbox = append(p.outbox, Op{Kind: OpStep, Step: &r})
	if !more {
		p.done = true
		return
	}
	if inLockstep(p.run.Scheme) {
		s.parity += p.iterate
	}
	if p.fault = begin(); p.fault == nil {
		p.fault = p.replay()
	}
}

// keepEarly keeps an agreement message of the next time step until this peer is
// there.
func (p *party) keepEarly(c *channel, step int, msg []byte) error {
	if step > min(p.steps.at+1, p.steps.of) || p.done {
		return fmt.Errorf("time step %d, while this peer is at %d of %d", step, p.steps.at, p.steps.of)
	}
	if len(c.early) == maxEarly {
		return fmt.Errorf("more than %d messages of time step %d, which this peer has not begun", maxEarly, step)
	}
	c.early = append(c.early, append([]byte(nil), msg...))
	return nil
}

// replay takes in what was kept.
func (p *party) replay() error {
	for _, list := range [2][]*channel{p.channels, p.corners} {
		for _, c := range list {
			early := c.early
			c.early = nil
			for _, msg := range early {
				if err := p.Agree(0, c.rank, msg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
