package multilevel

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Solved is the result of SolveBy.
type Solved struct {
	U           []float64 // [z][y][x]; of a nonstationary problem the end of the last complete step
	Cycles      int       // of all steps; sweeps of point methods
	Work        float64   // in sweeps over the grid, the start included
	Residual    float64   // relative, of the last step
	Reason      iterate.Reason
	Steps       int    // complete ones
	Bytes       int    // that the method held
	Description string // what it says of itself
}

// checkCycles is how many sweeps of a point method are done between two residuals.
const checkCycles = 8

// SolveBy solves a problem on one block by a method of package method: no peers, no
// exchange. Of a stationary problem without a starting iterate, multigrid begins with its
// full multigrid start; time steps begin where the one before has ended. most bounds the
// cycles of a step, and their work as Config.MaxSweeps does.
func SolveBy(p *problem.Problem, m problem.MethodConfig, tol float64, maxCycles int, e problem.Executor) (Solved, error) {
	if err := m.Check(); err != nil {
		return Solved{}, err
	}
	if !(tol > 0) {
		return Solved{}, fmt.Errorf("solver: the tolerance is %v; it must be positive", tol)
	}
	p, in, err := p.InRange()
	if err != nil {
		return Solved{}, err
	}
	out, err := solveStepsBy(p, in, m, tol, maxCycles, e)
	(-in.Scale).Apply(out.U)
	return out, err
}

func solveStepsBy(p *problem.Problem, in problem.Units, m problem.MethodConfig, tol float64, maxCycles int, e problem.Executor) (Solved, error) {
	if p.Evolution == nil {
		return solveBy(p, in, m, tol, maxCycles, e, nil, 0)
	}
	before, err := p.Before(problem.Box{Hi: p.N}, nil)
	if err != nil {
		return Solved{}, err
	}
	var all Solved
	for step := 1; step <= p.Evolution.Steps; step++ {
		one, err := solveBy(p.AtStep(step), in, m, tol, maxCycles, e, before, p.Evolution.Step())
		if err != nil {
			return Solved{}, err
		}
		one.Cycles, one.Work, one.Steps = one.Cycles+all.Cycles, one.Work+all.Work, all.Steps
		if all = one; one.Reason != iterate.Converged {
			break
		}
		before = one.U
		all.Steps++
	}
	all.U = before
	return all, nil
}

// solveBy solves a stationary problem, or a time step of length dt from before.
func solveBy(p *problem.Problem, in problem.Units, c problem.MethodConfig, tol float64, maxCycles int, e problem.Executor, before []float64, dt float64) (Solved, error) {
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	if err != nil {
		return Solved{}, err
	}
	if before != nil {
		b.Remember(before, dt)
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
	reference := in.Reference(measure())
	if !kernel.Finite(reference) {
		return Solved{}, p.RefuseMagnitude()
	}
	warm, err := b.Start(u, before)
	if err != nil {
		return Solved{}, err
	}
	name := c.Name
	if name == "" {
		name = problem.Richardson
	}
	system, o := b.System(), method.Options{Executor: e, Omega: c.Omega, Cycle: c.Cycle}
	if name == problem.SOR && o.Omega == 0 {
		o.InitialOmega = initialOmega(p, before != nil)
	}
	m, err := method.New(name, system, o)
	if err != nil {
		return Solved{}, err
	}
	out := Solved{Bytes: m.Bytes(), U: make([]float64, p.Points())}
	evaluate := func() bool {
		out.Residual = iterate.Relative(measure(), reference)
		switch {
		case !kernel.Finite(out.Residual):
			out.Reason = iterate.Diverged
		case out.Residual <= tol:
			out.Reason = iterate.Converged
		}
		return out.Reason != iterate.Running
	}
	exhausted := func() bool { return out.Cycles >= maxCycles }
	if mg, ok := m.(*method.Multigrid); ok {
		nominal := mg.NominalWork()
		mg.BudgetSpent = func(relaxations int) bool { return workExhausted(maxCycles, out.Cycles, relaxations, nominal) }
		exhausted = func() bool { return out.Cycles >= maxCycles || mg.BudgetSpent(mg.Relaxations()) }
	}
	if !evaluate() && !warm {
		out.Work += m.Start(u)
	}
	for out.Reason == iterate.Running {
		if exhausted() {
			out.Reason = iterate.ReachedSweeps
			if evaluate(); !warm && !(out.Residual <= 1) { // not worse than what it began with
				if err = b.FillReference(u); err != nil {
					return Solved{}, err
				}
				evaluate()
			}
			break
		}
		out.Work += m.Cycle(u)
		if out.Cycles++; m.Name() == problem.Multigrid || out.Cycles%checkCycles == 0 {
			evaluate()
		}
	}
	out.Description = m.Describe()
	b.CopyOut(out.U, u)
	return out, nil
}
