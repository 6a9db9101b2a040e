package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Step is the end of a time step.
type Step struct {
	Step     int           // from 1
	Ended    time.Duration // since the first relaxation of the run: the last rank has ended it
	Sweeps   float64       // points relaxed / points, since the step began last
	Residual float64       // relative, as the ranks agreed
}

// series holds the ends of time steps as the launcher does, to which the ranks send their blocks. A rank ends step m+2
// after all ranks have begun it, and each has sent its block of step m by then. So at most two steps beyond the
// complete ones have blocks.
type series struct {
	problem *problem.Problem
	ring    [4][]float64 // by step mod 4: the last two complete steps and the next two
	done    int          // complete steps
	list    []Step
	worst   int // the step with the largest agreed residual; 0: none
	before  []float64
	end     []float64 // of the worst step
}

// stepEnd is the end of a time step at a rank.
type stepEnd struct {
	iterate.StepResult
	at   microproto.Instant
	sent microproto.Instant // the launcher has the rank's block
}

// newSeries returns the series of a run, nil for a stationary problem.
func newSeries(p *problem.Problem) (*series, error) {
	if p == nil || p.Steps() == 0 {
		return nil, nil
	}
	u, err := p.InitialValues(0, problem.Box{Hi: p.N}, nil)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	s := &series{problem: p, ring: [4][]float64{0: u}}
	for i := range s.ring[1:] {
		s.ring[i+1] = make([]float64, len(u))
	}
	return s, nil
}

func (s *series) at(step int) []float64 { return s.ring[step%len(s.ring)] }

func (s *series) over() bool { return s.done == s.problem.Steps() }

// block returns the values of a box at the end of the last complete step.
func (s *series) block(b problem.Box) []float64 {
	out, size := make([]float64, b.Points()), b.Size()
	from := method.DenseLayout(s.problem.N)
	method.CopyBox(out, method.DenseLayout(size), problem.Box{Hi: size}, s.at(s.done), from, b.Lo)
	return out
}

// Stepped implements World. The machine sends its block to the launcher while it relaxes in the next step. At the end
// of that step it waits until the block is sent.
func (m *machine) Stepped(_ *virtual.Host, r *iterate.StepResult) {
	s := m.e.run.resumed.series
	if s == nil { // the peers are those of Config.New
		return
	}
	virtual.Place(s.at(r.Step), s.problem.N, m.settled().Box(), m.values())
	begins := max(m.now, m.steps[(r.Step+2)%len(m.steps)].sent)
	m.host.SetBusy(begins)
	m.steps[r.Step%len(m.steps)] = stepEnd{*r, m.now, begins.Add(m.e.blockTime(int(m.index)))}
	m.e.stepEnds.Add(1)
}

// blockTime returns how long a rank sends its block to the launcher. All ranks send at once. Rank 0 is on the
// launcher's machine.
func (e *engine) blockTime(rank int) time.Duration {
	if rank == 0 {
		return 0
	}
	own := 8 * float64(e.hosts[rank].block) / e.model.Networks[e.host(rank).Network].Rate
	return max(seconds(own), e.blocksTime())
}

// blocksTime returns how long the blocks of all ranks take on the launcher's line.
func (e *engine) blocksTime() time.Duration {
	points := 0.0
	for _, m := range e.hosts[1:] {
		points += float64(m.block)
	}
	return seconds(8 * points / e.launcherRate())
}

// completeSteps completes the time steps whose blocks the launcher has at an instant.
func (e *engine) completeSteps(now microproto.Instant) {
	s := e.run.resumed.series
	if s == nil {
		return
	}
	begun := e.run.Solver.After // of this epoch
	for int(e.stepEnds.Load()) >= (s.done+1-begun)*len(e.hosts) && e.sentStep(s.done+1, now) {
		step := Step{Step: s.done + 1, Residual: e.hosts[0].steps[(s.done+1)%len(e.hosts[0].steps)].Residual}
		at, all := microproto.Instant(0), 0.0
		for _, m := range e.hosts {
			end := &m.steps[step.Step%len(m.steps)]
			at = max(at, end.at)
			step.Sweeps += float64(end.Sweeps) * float64(m.block)
			all += float64(m.block)
		}
		step.Ended, step.Sweeps = e.since(at), step.Sweeps/all
		s.complete(step)
	}
}

// sentStep reports whether all ranks have sent their blocks of a step at an instant. A rank that was lost before has
// not.
func (e *engine) sentStep(step int, now microproto.Instant) bool {
	c := &e.recovery
	for rank, m := range e.hosts {
		end := &m.steps[step%len(m.steps)]
		if end.Step != step || end.sent > now || c.silentBy[rank] != nil && end.sent > c.silentAt[rank] {
			return false
		}
	}
	return true
}

// complete adds the step after the last complete one.
func (s *series) complete(step Step) {
	s.done = step.Step
	s.list = append(s.list, step)
	if s.worst == 0 || step.Residual > s.list[s.worst-1].Residual {
		s.worst = step.Step
		s.before = append(s.before[:0], s.at(s.done-1)...)
		s.end = append(s.end[:0], s.at(s.done)...)
	}
}

// restartStep begins the time step in progress again: the launcher sends its start to all ranks, with their work. It
// sets when the next epoch begins.
func (e *engine) restartStep() {
	c := &e.recovery
	var lost []int
	for rank, given := range c.given {
		if given {
			lost = append(lost, rank)
		}
	}
	lost = append(lost, e.moved()...)
	latency := e.farthest()
	at := e.replaced(e.now.Add(2*latency), latency)
	c.connecting = at.Add(latency + e.blocksTime() + e.listsTime(len(lost)) + e.newsTime(lost))
	c.ready = c.connecting.Add(time.Duration(e.began))
}

// noticeLoss begins a recovery, once most keepers agree. If the launcher has every step already, the run ends.
func (e *engine) noticeLoss() {
	if !e.recovery.active {
		e.completeSteps(e.now)
	}
	if s := e.run.resumed.series; s != nil && s.over() {
		e.ended = iterate.Converged
		return
	}
	e.request()
}

// result writes the steps to a result. Its residual is the larger one of the worst step and the last complete one.
func (s *series) result(r *Result) error {
	r.U, r.Steps, r.Residual = slices.Clone(s.at(s.done)), slices.Clone(s.list), math.NaN()
	if s.done == 0 {
		return nil
	}
	last, err := verify.EvaluateStep(s.problem, s.done, s.at(s.done-1), r.U, nil)
	if err != nil {
		return err
	}
	worst, err := verify.EvaluateStep(s.problem, s.worst, s.before, s.end, nil)
	r.Residual = max(last.RelativeResidual, worst.RelativeResidual)
	return err
}
