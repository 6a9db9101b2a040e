package solver

import (
	"fmt"
	"time"
)

// Levels is the Peer of a method of the whole grid: red-black SOR or multigrid, every
// peer at the same place of the method. What a peer does is a sequence of stages (see
// stage), the same on all of them; ghosts are exchanged between stages, and what
// decides is the total of exact sums. So the answer, and the number of cycles, are
// bitwise those of one peer, on any partition and any number of threads.
//
// All of its messages go over halo sessions that are synchronous whatever the scheme:
// a value that does not come would only have to be sent again (ADR 35).
type Levels struct {
	config Config
	exec   Executor
	box    Box
	tree   tree
	wires  []*wire
	course course
	total  total
	steps  stepping
	stage  *stage // in progress; nil: the course knows the next
	at     int    // step, or leg, of the stage
	packs  packing
	piece  func(i int) // bound once: a closure a call would allocate
	wish   Reason      // an early end was asked for, here or below
	said   []Op        // ends of time steps
	fault  error
	done   bool
}

// NewLevels builds the own part of the grid; all arrays are allocated here.
func NewLevels(c Config) (*Levels, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := (wholeGrid{c.Method.Name}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	g := &Levels{config: c, exec: c.Executor, box: c.Partition.Box(c.Rank), tree: treeOf(c.Partition, c.Rank)}
	if g.exec == nil {
		g.exec = Sequential{}
	}
	g.piece = g.runPiece
	links := levelLinks(&c, c.Rank)
	for i, n := range c.Partition.Neighbours(c.Rank) {
		g.wires = append(g.wires, &wire{to: n, link: links[i]})
	}
	g.total.init(g)
	if g.steps.of = c.Problem.Steps(); g.steps.of > 0 {
		if g.steps.before, err = c.Problem.before(g.box, c.Initial); err != nil {
			return nil, err
		}
	}
	if err = g.course.init(g); err != nil {
		return nil, err
	}
	return g, g.begin()
}

// begin begins the run of a stationary problem, or the next time step.
func (g *Levels) begin() error {
	s := &g.steps
	s.at = min(s.at+1, s.of)
	p := g.config.Problem.AtStep(s.at)
	err := p.validateHead()
	if err == nil {
		err = g.course.begin(p)
	}
	if err != nil && s.of > 0 {
		err = fmt.Errorf("time step %d, t = %v: %w", s.at, g.config.Problem.Evolution.Time(s.at), err)
	}
	return err
}

// Next says what to do now; see Peer.
func (g *Levels) Next(time.Duration) Op {
	for {
		if len(g.said) > 0 {
			op := g.said[0]
			g.said = g.said[1:]
			return op
		}
		if g.fault != nil {
			return Op{Kind: OpFail, Err: g.fault}
		}
		if g.done {
			return Op{Kind: OpDone}
		}
		if op, ok := g.total.advance(); ok {
			return op
		} else if g.fault != nil {
			continue
		}
		if g.stage == nil {
			if g.stage, g.at = g.course.next(), 0; g.stage == nil {
				g.conclude()
				continue
			}
		}
		if op, ok := g.proceed(g.stage); ok {
			return op
		}
	}
}

// proceed goes on with a stage: the operation that it wants next. Once it is complete
// g.stage is nil, and there is none.
func (g *Levels) proceed(s *stage) (Op, bool) {
	switch s.kind {
	case stageCompute:
		if g.at < len(s.steps) {
			p := &s.steps[g.at]
			if !p.send {
				return Op{Kind: OpRelax, Part: p.part, Points: p.box.Points() * max(1, s.passes)}, true
			}
			g.at++
			return g.sendLeg(s.x, p.face), true
		}
	case stageSend:
		if g.at < len(s.x.legs) {
			g.at++
			return g.sendLeg(s.x, g.at-1), true
		}
	case stageAwait:
		for ; g.at < len(s.x.legs); g.at++ {
			if came, err := s.x.read(g.at); err != nil {
				g.fault = err
				return Op{}, false
			} else if !came {
				return Op{Kind: OpWait}, true
			}
		}
	case stageDo:
		s.do() // it may fail
	case stageGather, stageScatter:
		return g.carry(s)
	default:
		return g.total.proceed()
	}
	g.stage = nil
	return Op{}, false
}

// carry does a gather or a scatter.
func (g *Levels) carry(s *stage) (op Op, more bool) {
	if s.kind == stageGather {
		op, more, g.fault = s.gather.proceed()
	} else {
		op, more, g.fault = s.scatter.proceed()
	}
	if !more && g.fault == nil {
		g.stage = nil
	}
	return op, more
}

// Relax does the part that Next asked for; any other op is ignored.
func (g *Levels) Relax(op Op) {
	s := g.stage
	if op.Kind != OpRelax || s == nil || s.kind != stageCompute || g.at >= len(s.steps) ||
		s.steps[g.at].send || s.steps[g.at].part != op.Part {
		return
	}
	p := &s.steps[g.at]
	if s.whole != nil {
		s.whole()
	} else {
		g.exec.For(p.chunks, g.piece)
	}
	g.at++
}

// runPiece does piece i of the current part.
func (g *Levels) runPiece(i int) {
	p := &g.stage.steps[g.at]
	g.stage.piece(chunk(p.box, p.axis, i, p.chunks), i)
}

// conclude ends the run, or a time step after which another one comes.
func (g *Levels) conclude() {
	s, c := &g.steps, &g.course
	if s.of == 0 || c.reason != Converged {
		g.done = true
		return
	}
	c.copyOut(s.before)
	r, more := s.complete(c.cycle, c.residual)
	g.said = append(g.said, Op{Kind: OpStep, Step: &r})
	if !more {
		g.done = true
		return
	}
	g.fault = g.begin()
}

// Agree refuses: there are no agreement sessions.
func (g *Levels) Agree(_ time.Duration, q Rank, _ []byte) error {
	return fmt.Errorf("solver: an agreement message from rank %d; method %s has none", q, g.config.Method.Name)
}

// Stop asks for an early end; the wish travels up with the next total.
func (g *Levels) Stop(_ time.Duration, why Reason) {
	if why != Running && why != Converged && g.wish == Running {
		g.wish = why
	}
}

// Outcome tells how the run ended, or how far it has come. Sweeps are cycles.
func (g *Levels) Outcome() Outcome {
	s, c := &g.steps, &g.course
	o := Outcome{
		Reason: c.reason, Sweeps: s.swept + c.cycle, Iterate: c.cycle, Residual: c.residual, Work: c.spent,
		Steps: s.done, Worst: s.worst.Residual, WorstStep: s.worst.Step,
	}
	if !g.done {
		o.Reason = Running
	}
	return o
}

// Progress tells how far the run has come.
func (g *Levels) Progress() Progress {
	return Progress{Step: g.steps.at, Sweep: g.steps.swept + g.course.cycle, Residual: g.course.residual}
}

// Solution writes the own block; see Peer. During a cycle it is what the cycle has
// made of it so far, of a nonstationary problem the end of the last complete step.
func (g *Levels) Solution(dst []float64) {
	if g.steps.of > 0 {
		copy(dst, g.steps.before)
	} else {
		g.course.copyOut(dst)
	}
	(-g.config.units.scale).apply(dst)
}

// Box is the own box.
func (g *Levels) Box() Box { return g.box }

// Links are the peers that share a face, in the partition's order.
func (g *Levels) Links() []Link { return levelLinks(&g.config, g.config.Rank) }
