package multilevel

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// peer is a peer of red-black SOR or multigrid. It runs a sequence of stages (see stage) that is the same on
// all peers. Ghosts are exchanged between stages, and all decisions depend on exact sums over all peers. The
// answer and the number of cycles are therefore bitwise those of one peer, on any partition and with any number
// of threads.
//
// All messages use synchronous halo sessions, whatever the scheme: a lost value would only have to be sent
// again (ADR 33).
type peer struct {
	config       problem.Config
	exec         problem.Executor
	box          problem.Box
	tree         iterate.Tree
	channels     []*channel
	driver       cycleDriver
	allReduce    allReduce
	steps        iterate.TimeSteps
	stage        *stage // in progress; nil: the driver provides the next
	at           int    // step, or neighbour, of the stage
	packing      packTask
	runPieceFunc func(i int)    // bound once: a closure per call would allocate
	stopWanted   iterate.Reason // an early end was requested here or by a child
	ops          []iterate.Op   // to return next: ends of time steps, kept iterates
	now          time.Duration  // of the newest call of Next
	fault        error
	done         bool
}

// derivedFactor is the factor by which ghost values of coarse grids, such as residuals and corrections, may exceed the largest iterate:
// coefficients over the squares of spacings.
const derivedFactor = 1e30

// newPeer creates a peer and allocates all its arrays.
func newPeer(c problem.Config) (*peer, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := (Method{c.Method.Name}).Check(&c); err != nil {
		return nil, err
	}
	var err error
	g := &peer{config: c, exec: c.Executor, box: c.Partition.Box(c.Rank), tree: problem.TreeOf(c.Partition, c.Rank)}
	g.runPieceFunc = g.runPiece
	links := linksOf(&c, c.Rank)
	for i, n := range c.Partition.Neighbours(c.Rank) {
		g.channels = append(g.channels, &channel{
			to: n, link: links[i], screen: kernel.Screen{Infinite: true, Most: c.Largest()}, ghosts: kernel.Screen{Most: derivedFactor * c.Largest()},
		})
	}
	g.allReduce.init(g)
	if g.steps, err = c.TimeSteps(g.box); err != nil {
		return nil, err
	}
	if err = g.driver.init(g); err != nil {
		return nil, err
	}
	return g, g.begin()
}

// begin begins the run of a stationary problem, or the next time step.
func (g *peer) begin() error {
	s := &g.steps
	s.Current = min(s.Current+1, s.Total)
	p := g.config.Problem.AtStep(s.Current)
	err := p.ValidateStatement()
	if err == nil {
		err = g.driver.begin(p)
	}
	return g.config.StepError(s.Current, err)
}

// Next returns the next operation (see iterate.Peer).
func (g *peer) Next(now time.Duration) iterate.Op {
	g.now = now
	for {
		if len(g.ops) > 0 {
			op := g.ops[0]
			g.ops = g.ops[1:]
			return op
		}
		if g.fault != nil {
			return iterate.Op{Kind: iterate.OpFail, Err: g.fault}
		}
		if g.done {
			return iterate.Op{Kind: iterate.OpDone}
		}
		if op, ok := g.allReduce.advance(); ok {
			return op
		} else if g.fault != nil {
			continue
		}
		if g.stage == nil {
			if g.stage, g.at = g.driver.next(), 0; g.stage == nil {
				g.finish()
				continue
			}
			if len(g.ops) > 0 {
				continue // they precede the stage
			}
		}
		if op, ok := g.proceed(g.stage); ok {
			return op
		}
	}
}

// proceed returns the next operation of a stage. When the stage is complete, it sets g.stage to nil and returns
// false.
func (g *peer) proceed(s *stage) (iterate.Op, bool) {
	switch s.kind {
	case stageCompute:
		if g.at < len(s.steps) {
			p := &s.steps[g.at]
			if !p.Send {
				return iterate.Op{Kind: iterate.OpRelax, Part: p.Part, Points: p.Box.Points() * max(1, s.passes)}, true
			}
			g.at++
			return g.sendExchange(s.x, p.Face), true
		}
	case stageSend:
		if g.at < len(s.x.neighbours) {
			g.at++
			return g.sendExchange(s.x, g.at-1), true
		}
	case stageAwait:
		for ; g.at < len(s.x.neighbours); g.at++ {
			if came, err := s.x.receive(g.at); err != nil {
				g.fault = err
				return iterate.Op{}, false
			} else if !came {
				return iterate.Op{Kind: iterate.OpWait}, true
			}
		}
	case stageDo:
		s.do() // it may fail
	case stageTransfer:
		var op iterate.Op
		var more bool
		if op, more, g.fault = s.transfer.proceed(); more || g.fault != nil {
			return op, more
		}
	default:
		return g.allReduce.proceed()
	}
	g.stage = nil
	return iterate.Op{}, false
}

// Relax computes the part that Next requested and ignores any other op.
func (g *peer) Relax(op iterate.Op) {
	s := g.stage
	if op.Kind != iterate.OpRelax || s == nil || s.kind != stageCompute || g.at >= len(s.steps) ||
		s.steps[g.at].Send || s.steps[g.at].Part != op.Part {
		return
	}
	p := &s.steps[g.at]
	if s.runAll != nil {
		s.runAll()
	} else {
		g.exec.For(p.Chunks, g.runPieceFunc)
	}
	g.at++
}

// runPiece computes piece i of the current part.
func (g *peer) runPiece(i int) {
	p := &g.stage.steps[g.at]
	g.stage.runPiece(problem.Chunk(p.Box, p.Axis, i, p.Chunks), i)
}

// finish ends the run, or begins the next time step.
func (g *peer) finish() {
	s, c := &g.steps, &g.driver
	if s.Total == 0 || !c.reason.EndsStep() {
		g.done = true
		return
	}
	c.copyOut(s.Previous, c.u)
	r, more := s.Complete(c.cycle, c.residual, c.reason)
	g.ops = append(g.ops, iterate.Op{Kind: iterate.OpStep, Step: &r})
	if !more {
		g.done = true
		return
	}
	g.fault = g.begin()
}

// Agree returns an error: there are no agreement sessions.
func (g *peer) Agree(_ time.Duration, q iterate.Rank, _ []byte) error {
	return fmt.Errorf("multilevel: agreement message from rank %d; method %s uses none", q, g.config.Method.Name)
}

// Stop requests an early end. The next reduction propagates the request.
func (g *peer) Stop(_ time.Duration, why iterate.Reason) {
	if why != iterate.Running && why != iterate.Converged && g.stopWanted == iterate.Running {
		g.stopWanted = why
	}
}

// Outcome returns the result of the run or its state so far. Sweeps are cycles.
func (g *peer) Outcome() iterate.Outcome {
	s, c := &g.steps, &g.driver
	o := iterate.Outcome{
		Reason: c.reason, Sweeps: s.CompletedSweeps + c.cycle, Iterate: c.cycle, Residual: c.residual, Work: c.spent,
		Steps: s.Completed, WorstResidual: s.Worst.Residual, WorstStep: s.Worst.Step,
	}
	switch {
	case !g.done:
		o.Reason = iterate.Running
	case g.answersBest():
		o.Iterate, o.Residual = c.best.At, c.best.Residual
	default:
		o.State = c.leave()
	}
	return o
}

// answersBest reports whether the kept values are the answer of a stationary run that has ended.
func (g *peer) answersBest() bool {
	c := &g.driver
	return g.done && c.reason != iterate.Converged && c.best.Better(c.residual)
}

// answer returns the values of the block that are the answer, or the newest ones.
func (g *peer) answer() []float64 {
	if g.answersBest() {
		return g.driver.best.Values
	}
	return g.driver.u
}

// Progress returns the progress of the run.
func (g *peer) Progress() iterate.Progress {
	s, c := &g.steps, &g.driver
	return iterate.Progress{
		Step: s.Current, Sweep: s.CompletedSweeps + c.cycle, Residual: c.residual, Omega: c.method.omega(),
	}
}

// Solution writes the own box's values (see iterate.Peer). During a cycle these are intermediate values; for a
// nonstationary problem they are the end of the last complete step.
func (g *peer) Solution(dst []float64) {
	if g.steps.Total > 0 {
		copy(dst, g.steps.Previous)
	} else {
		g.driver.copyOut(dst, g.answer())
	}
	(-g.config.Units.Scale).Apply(dst)
}

// Values writes a part of the newest iterate; see problem.Peer.
func (g *peer) Values(dst []float64, part problem.Box) {
	d := &g.driver
	d.block.CopyPart(dst, d.u, part)
	(-g.config.Units.Scale).Apply(dst[:part.Points()])
}

// Box returns the own box.
func (g *peer) Box() problem.Box { return g.box }

// Links returns the peers that share a face, in the partition's order.
func (g *peer) Links() []iterate.Link { return linksOf(&g.config, g.config.Rank) }
