package file

import (
	"fmt"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
)

// build makes the problem on a grid.
func (d *document) build(name string, n [3]int) (*solver.Problem, error) {
	if err := problems.CheckGrid(d.dimension, n); err != nil {
		return nil, fmt.Errorf("problem %s: %w", name, err)
	}
	p := &solver.Problem{
		Name:      name,
		Dimension: d.dimension,
		Lo:        d.lo,
		Hi:        d.hi,
		N:         n,
		Diffusion: d.diffusion.formula.coefficient(),
		Reaction:  d.reaction.formula.coefficient(),
		Source:    d.f.formula.coefficient(),
		Upwind:    d.upwind,
	}
	for a := range d.dimension {
		p.Velocity[a] = d.velocity[a].formula.coefficient()
	}
	for _, w := range []struct {
		to   *solver.Function
		from field
	}{
		{&p.Obstacle, d.obstacle}, {&p.Upper, d.upper}, {&p.Exact, d.exact},
	} {
		f, err := w.from.function()
		if err != nil {
			return nil, err
		}
		*w.to = f
	}
	p.Boundary = p.Obstacle
	if !d.boundary.same {
		p.Boundary = d.boundary.formula.function()
	}
	return p, nil
}

// function is nil for a field that is not given.
func (f field) function() (solver.Function, error) {
	switch {
	case f.formula != nil:
		return f.formula.function(), nil
	case f.raster != nil:
		g, err := f.raster.Function()
		if err != nil {
			return nil, f.errorf("%v", err)
		}
		return g, nil
	}
	return nil, nil
}
