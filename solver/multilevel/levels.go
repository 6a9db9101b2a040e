package multilevel

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Levels is the Peer of a method of the whole grid: red-black SOR or multigrid, every
// peer at the same place of the method. What a peer does is a sequence of stages (see
// stage), the same on all of them; ghosts are exchanged between stages, and what
// decides is the total of exact sums. So the answer, and the number of cycles, are
// bitwise those of one peer, on any partition and any number of threads.
//
// All of its messages go over halo sessions that are synchronous whatever the scheme:
// a value that does not come would only have to be sent again (ADR 33).
type Levels struct {
	config problem.Config
	exec   problem.Executor
	box    problem.Box
	tree   iterate.Tree
	wires  []*wire
	course course
	total  total
	steps  iterate.TimeSteps
	stage  *stage // in progress; nil: the course knows the next
	at     int    // step, or leg, of the stage
	packs  packing
	piece  func(i int)    // bound once: a closure a call would allocate
	wish   iterate.Reason // an early end was asked for, here or below
	said   []iterate.Op   // ends of time steps
	fault  error
	done   bool
}

// NewLevels builds the own part of the grid; all arrays are allocated here.
func NewLevels(c problem.Config) (*Levels, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := (Method{c.Method.Name}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	g := &Levels{config: c, exec: c.Executor, box: c.Partition.Box(c.Rank), tree: problem.TreeOf(c.Partition, c.Rank)}
	if g.exec == nil {
		g.exec = problem.Sequential{}
	}
	g.piece = g.runPiece
	links := levelLinks(&c, c.Rank)
	for i, n := range c.Partition.Neighbours(c.Rank) {
		g.wires = append(g.wires, &wire{to: n, link: links[i]})
	}
	g.total.init(g)
	if g.steps.Total = c.Problem.Steps(); g.steps.Total > 0 {
		if g.steps.Previous, err = c.Problem.Before(g.box, c.Initial); err != nil {
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
	s.Current = min(s.Current+1, s.Total)
	p := g.config.Problem.AtStep(s.Current)
	err := p.ValidateHead()
	if err == nil {
		err = g.course.begin(p)
	}
	if err != nil && s.Total > 0 {
		err = fmt.Errorf("time step %d, t = %v: %w", s.Current, g.config.Problem.Evolution.Time(s.Current), err)
	}
	return err
}

// Next says what to do now; see Peer.
func (g *Levels) Next(time.Duration) iterate.Op {
	for {
		if len(g.said) > 0 {
			op := g.said[0]
			g.said = g.said[1:]
			return op
		}
		if g.fault != nil {
			return iterate.Op{Kind: iterate.OpFail, Err: g.fault}
		}
		if g.done {
			return iterate.Op{Kind: iterate.OpDone}
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
func (g *Levels) proceed(s *stage) (iterate.Op, bool) {
	switch s.kind {
	case stageCompute:
		if g.at < len(s.steps) {
			p := &s.steps[g.at]
			if !p.Send {
				return iterate.Op{Kind: iterate.OpRelax, Part: p.Part, Points: p.Box.Points() * max(1, s.passes)}, true
			}
			g.at++
			return g.sendLeg(s.x, p.Face), true
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
				return iterate.Op{}, false
			} else if !came {
				return iterate.Op{Kind: iterate.OpWait}, true
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
	return iterate.Op{}, false
}

// carry does a gather or a scatter.
func (g *Levels) carry(s *stage) (op iterate.Op, more bool) {
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
func (g *Levels) Relax(op iterate.Op) {
	s := g.stage
	if op.Kind != iterate.OpRelax || s == nil || s.kind != stageCompute || g.at >= len(s.steps) ||
		s.steps[g.at].Send || s.steps[g.at].Part != op.Part {
		return
	}
	p := &s.steps[g.at]
	if s.whole != nil {
		s.whole()
	} else {
		g.exec.For(p.Chunks, g.piece)
	}
	g.at++
}

// runPiece does piece i of the current part.
func (g *Levels) runPiece(i int) {
	p := &g.stage.steps[g.at]
	g.stage.piece(problem.Chunk(p.Box, p.Axis, i, p.Chunks), i)
}

// conclude ends the run, or a time step after which another one comes.
func (g *Levels) conclude() {
	s, c := &g.steps, &g.course
	if s.Total == 0 || c.reason != iterate.Converged {
		g.done = true
		return
	}
	c.copyOut(s.Previous)
	r, more := s.Complete(c.cycle, c.residual)
	g.said = append(g.said, iterate.Op{Kind: iterate.OpStep, Step: &r})
	if !more {
		g.done = true
		return
	}
	g.fault = g.begin()
}

// Agree refuses: there are no agreement sessions.
func (g *Levels) Agree(_ time.Duration, q iterate.Rank, _ []byte) error {
	return fmt.Errorf("solver: an agreement message from rank %d; method %s has none", q, g.config.Method.Name)
}

// Stop asks for an early end; the wish travels up with the next total.
func (g *Levels) Stop(_ time.Duration, why iterate.Reason) {
	if why != iterate.Running && why != iterate.Converged && g.wish == iterate.Running {
		g.wish = why
	}
}

// Outcome tells how the run ended, or how far it has come. Sweeps are cycles.
func (g *Levels) Outcome() iterate.Outcome {
	s, c := &g.steps, &g.course
	o := iterate.Outcome{
		Reason: c.reason, Sweeps: s.CompletedSweeps + c.cycle, Iterate: c.cycle, Residual: c.residual, Work: c.spent,
		Steps: s.Completed, WorstResidual: s.Worst.Residual, WorstStep: s.Worst.Step,
	}
	if !g.done {
		o.Reason = iterate.Running
	}
	return o
}

// Progress tells how far the run has come.
func (g *Levels) Progress() iterate.Progress {
	return iterate.Progress{Step: g.steps.Current, Sweep: g.steps.CompletedSweeps + g.course.cycle, Residual: g.course.residual}
}

// Solution writes the own block; see Peer. During a cycle it is what the cycle has
// made of it so far, of a nonstationary problem the end of the last complete step.
func (g *Levels) Solution(dst []float64) {
	if g.steps.Total > 0 {
		copy(dst, g.steps.Previous)
	} else {
		g.course.copyOut(dst)
	}
	(-g.config.Units.Scale).Apply(dst)
}

// Box is the own box.
func (g *Levels) Box() problem.Box { return g.box }

// Links are the peers that share a face, in the partition's order.
func (g *Levels) Links() []iterate.Link { return levelLinks(&g.config, g.config.Rank) }
