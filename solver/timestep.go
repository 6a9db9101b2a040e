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

// begin begins the run of a stationary problem, or the next time step: it evaluates
// the problem at that time and prepares what the step starts from.
func (w *Worker) begin() error {
	s := &w.steps
	s.at = min(s.at+1, s.of)
	p := w.config.Problem.AtStep(s.at)
	if err := p.validateHead(); err != nil {
		return w.config.inStep(s.at, err)
	}
	if err := w.block.build(p); err != nil {
		return w.config.inStep(s.at, err)
	}
	if s.of > 0 {
		w.block.remember(s.before, w.config.Problem.Evolution.Step())
	}
	w.thaw()
	w.iterate, w.stepper = 0, nil
	for _, f := range w.faces {
		f.begin(s.at)
	}
	w.pass.begin()
	w.opening.begin(w)
	w.end = newEnding(&w.party)
	w.setup = newSetup(len(w.tree.children), w.block.diagonal)
	return w.config.inStep(s.at, w.settle())
}

// begin forgets the faces of the step before; what has come of the new one stays.
func (f *face) begin(step int) {
	f.channel.begin(step)
	f.move, f.told = handover{}, load{}
	f.toldAt = 0
}

// inStep adds the time step to an error; at 0 the run is stationary.
func (c *Config) inStep(at int, err error) error {
	if err != nil && at > 0 {
		return fmt.Errorf("time step %d, t = %v: %w", at, c.Problem.Evolution.Time(at), err)
	}
	return err
}

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

// conclude ends the run or the time step.
func (w *Worker) conclude() {
	w.party.conclude(func(dst []float64) {
		answer := w.cur
		if w.frozen != nil {
			answer = w.frozen
		}
		w.block.copyOut(dst, answer)
	}, w.begin)
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

// opening exchanges the first faces of a time step over the halo sessions that are
// asynchronous by the scheme, made synchronous for that while: what a step starts
// from must arrive. Both ends of a session switch once both have come so far, so
// nobody is a step ahead of a neighbour on the other side of it.
type opening struct {
	phase openingPhase
	at    int // faces sent
}

type openingPhase int

const (
	openingDone openingPhase = iota
	openingAdapt
	openingSend
	openingGather
)

func (o *opening) begin(w *Worker) {
	*o = opening{}
	if !w.config.Reconfigure || w.steps.at < 2 {
		return
	}
	for _, f := range w.faces {
		if f.scheme.Asynchronous() {
			o.phase = openingAdapt
		}
	}
}

// open is the next operation of a step's opening, false when there is none.
func (w *Worker) open() (Op, bool) {
	o := &w.opening
	switch o.phase {
	case openingAdapt:
		o.phase = openingSend
		return Op{Kind: OpAdapt}, true
	case openingSend:
		if w.stepper == nil {
			return Op{Kind: OpWait}, true // the step δ is being agreed on
		}
		for o.at < len(w.faces) {
			f := w.faces[o.at]
			if o.at++; f.scheme.Asynchronous() {
				op := w.send(0, f.channel, 0)
				f.sent = false // it arrives; there is nothing to repeat
				return op, true
			}
		}
		o.phase = openingGather
	}
	if o.phase == openingDone {
		return Op{}, false
	}
	for _, f := range w.faces {
		if f.scheme.Asynchronous() && !f.takeOpening() {
			return Op{Kind: OpWait}, true
		}
	}
	o.phase = openingDone
	return Op{Kind: OpAdapt, Asynchronous: true}, true
}
