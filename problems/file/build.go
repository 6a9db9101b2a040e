package file

import (
	"fmt"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// build returns the problem on a grid. The functions of a nonstationary problem are those at the end time.
func (d *document) build(name string, n [3]int) (*problem.Problem, error) {
	if err := problems.CheckGrid(d.dimension, n); err != nil {
		return nil, fmt.Errorf("problem %s: %w", name, err)
	}
	if d.option != nil {
		return d.option.Problem(name, n)
	}
	base := problem.Problem{Name: name, Dimension: d.dimension, Lo: d.lo, Hi: d.hi, N: n, Upwind: d.upwind}
	at := func(t float64) *problem.Problem { return d.at(base, t) }
	if !d.evolves() {
		return at(0), nil
	}
	p := at(d.end)
	p.Evolution = &problem.Evolution{
		End: d.end, Steps: d.steps, Initial: d.initial.function(0), At: at,
		SteadyObstacles: !d.obstacle.timeDependent() && !d.upper.timeDependent(),
	}
	return p, nil
}

// at returns the problem at time t.
func (d *document) at(base problem.Problem, t float64) *problem.Problem {
	p := &base
	p.Diffusion = d.diffusion.formula.coefficient(t)
	p.Reaction = d.reaction.formula.coefficient(t)
	p.Source = d.f.formula.coefficient(t)
	for a := range d.dimension {
		p.Velocity[a] = d.velocity[a].formula.coefficient(t)
	}
	p.Obstacle, p.Upper = d.obstacle.function(t), d.upper.function(t)
	p.Exact = d.exact.function(t)
	p.Boundary = p.Obstacle
	if !d.boundary.copiesObstacle {
		p.Boundary = d.boundary.formula.function(t)
	}
	return p
}

// function returns the field at time t, or nil if it is not given.
func (f field) function(t float64) problem.Function {
	if f.formula != nil {
		return f.formula.function(t)
	}
	return f.array
}

// timeDependent reports whether the field depends on time. Arrays do not.
func (f field) timeDependent() bool { return f.formula != nil && f.formula.timeDependent }
