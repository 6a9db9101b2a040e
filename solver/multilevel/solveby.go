package multilevel

import (
	"cmp"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Solved is the result of SolveBy.
type Solved struct {
	// [z][y][x]; for a nonstationary problem the end of the last complete step
	U           []float64
	Cycles      int     // over all steps; sweeps of point methods
	Work        float64 // in sweeps over the grid, start included
	Residual    float64 // relative, of the last step
	Reason      iterate.Reason
	Steps       int    // complete time steps
	Description string // parameters that the method chose
}

// checkCycles is the number of sweeps of a point method between two residual measurements.
const checkCycles = 8

// SolveBy solves a problem on one block by a method of package method, without peers. For a stationary problem
// without an initial iterate, multigrid begins with its full multigrid start. Each time step begins with the
// solution of the previous one. maxCycles bounds the cycles of a step, and their work as Config.MaxSweeps does.
// tol must be positive.
func SolveBy(
	p *problem.Problem, m problem.MethodConfig, tol float64, maxCycles int, e problem.Executor,
) (Solved, error) {
	if err := m.Check(); err != nil {
		return Solved{}, err
	}
	if !(tol > 0) {
		return Solved{}, fmt.Errorf("multilevel: the tolerance is %v; it must be positive", tol)
	}
	p, in, err := p.InRange()
	if err != nil {
		return Solved{}, err
	}
	m.Name = cmp.Or(m.Name, problem.Richardson)
	out, err := blockSolver{in, m, tol, maxCycles, e}.solveSteps(p)
	(-in.Scale).Apply(out.U)
	return out, err
}

// blockSolver holds what the time steps of SolveBy have in common.
type blockSolver struct {
	units     problem.Units
	method    problem.MethodConfig
	tol       float64
	maxCycles int
	exec      problem.Executor
}

func (s blockSolver) solveSteps(p *problem.Problem) (Solved, error) {
	if p.Evolution == nil {
		return s.solve(p, nil, 0)
	}
	before, err := p.InitialValues(0, problem.Box{Hi: p.N}, nil)
	if err != nil {
		return Solved{}, err
	}
	var all Solved
	for step := 1; step <= p.Evolution.Steps; step++ {
		one, err := s.solve(p.AtStep(step), before, p.Evolution.Step())
		if err != nil {
			return Solved{}, err
		}
		one.Cycles += all.Cycles
		one.Work += all.Work
		one.Steps = all.Steps
		if all = one; !one.Reason.EndsStep() {
			break
		}
		before = one.U
		if all.Steps++; one.Reason != iterate.Converged {
			break
		}
	}
	all.U = before
	return all, nil
}

// solve solves a stationary problem, or a time step of length dt from before.
func (s blockSolver) solve(p *problem.Problem, before []float64, dt float64) (Solved, error) {
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	if err != nil {
		return Solved{}, err
	}
	if before != nil {
		b.AddPrevious(before, dt)
	}
	u := make([]float64, b.Layout.Len())
	if err = b.FillReference(u); err != nil {
		return Solved{}, err
	}
	sweep, err := b.Sweep(1)
	if err != nil {
		return Solved{}, err
	}
	measure := func() float64 {
		var n kernel.Norm
		sweep.Residual(&n, u, b.Layout.Interior())
		return n.L2()
	}
	reference := s.units.Reference(measure())
	if !kernel.Finite(reference) {
		return Solved{}, p.MagnitudeError()
	}
	warm, err := b.Start(u, before)
	if err != nil {
		return Solved{}, err
	}
	o := method.Options{Executor: s.exec, Omega: s.method.Omega, Cycle: s.method.Cycle}
	if s.method.Name == problem.SOR && o.Omega == 0 {
		o.InitialOmega = initialOmega(p, before != nil)
	}
	m, err := method.New(s.method.Name, b.System(), o)
	if err != nil {
		return Solved{}, err
	}
	out := Solved{U: make([]float64, p.Points())}
	evaluate := func() bool {
		out.Residual = iterate.Relative(measure(), reference)
		switch {
		case !kernel.Finite(out.Residual):
			out.Reason = iterate.Diverged
		case out.Residual <= s.tol:
			out.Reason = iterate.Converged
		}
		return out.Reason != iterate.Running
	}
	mg, _ := m.(*method.Multigrid)
	if mg != nil {
		nominal := mg.NominalWork()
		mg.BudgetSpent = func(relaxations int) bool {
			return workExhausted(s.maxCycles, out.Cycles, relaxations, nominal)
		}
	}
	over := evaluate()
	warm = warm && !(mg != nil && startsAfresh(out.Residual))
	switch {
	case over:
	case !warm:
		out.Work += m.Start(u)
	case mg != nil:
		mg.Begin(measure())
	}
	for out.Reason == iterate.Running {
		if out.Cycles >= s.maxCycles || mg != nil && mg.BudgetSpent(mg.Relaxations()) {
			out.Reason = iterate.ReachedSweeps
			if evaluate(); !warm && !(out.Residual <= 1) { // no worse than the reference
				if err = b.FillReference(u); err != nil {
					return Solved{}, err
				}
				evaluate()
			}
			break
		}
		out.Work += m.Cycle(u)
		if out.Cycles++; mg != nil || out.Cycles%checkCycles == 0 {
			evaluate()
		}
	}
	out.Description = m.Describe()
	b.CopyOut(out.U, u)
	return out, nil
}
