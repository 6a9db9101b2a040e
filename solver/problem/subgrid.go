package problem

import "math"

// Inner returns the problem on a box of p's grid. Its boundary data are the values around the box, and p's own
// where the box touches ∂Ω. At points of the box for which fixed returns true, both obstacles equal value. A nil
// fixed fixes no point. Both functions receive grid indices (1-based) of interior points of p. They are called
// whenever a function of the result is, possibly from several goroutines at once. p must be stationary.
func (p *Problem) Inner(box Box, value func(idx [3]int) float64, fixed func(idx [3]int) bool) *Problem {
	g := subgrid{p: p, value: value, fixed: fixed}
	q := *p
	q.Rows, q.Exact, q.SteadyObstacles = Rows{}, nil, false
	for a := range p.Dimension {
		q.Lo[a], q.Hi[a] = p.along(a, box.Lo[a]), p.along(a, box.Hi[a]+1)
	}
	q.N = box.Size()
	q.Diffusion = g.coefficient(p.Diffusion)
	q.Reaction = g.coefficient(p.Reaction)
	q.Source = g.coefficient(p.Source)
	for a := range p.Dimension {
		q.Velocity[a] = g.coefficient(p.Velocity[a])
	}
	q.Obstacle = g.function(p.Obstacle)
	q.Upper = g.function(p.Upper)
	q.Initial = g.function(p.Initial)
	q.Boundary = g.boundary
	if fixed != nil {
		q.Obstacle, q.Upper = g.fixedTo(q.Obstacle, -unbounded), g.fixedTo(q.Upper, unbounded)
	}
	return &q
}

// unbounded is a finite value beyond any solution value. It stands for a missing obstacle at a point.
const unbounded = 1e100

// subgrid evaluates the functions of a problem at points of its own grid.
type subgrid struct {
	p     *Problem
	value func(idx [3]int) float64
	fixed func(idx [3]int) bool
}

// snap moves a point on the grid, or half-way between two grid points along an axis, to the coordinates at
// which the problem evaluates its functions. Rounding would otherwise move it across a jump. Other points are
// unchanged.
func (g *subgrid) snap(q Point) Point {
	for a := range g.p.Dimension {
		h := g.p.Spacing(a)
		t := 2 * (q[a] - g.p.Lo[a]) / h
		k := math.Round(t)
		if math.Abs(t-k) > 1e-10 {
			continue
		}
		i := int(k) / 2
		if q[a] = g.p.along(a, i); int(k)%2 == 1 {
			q[a] += h / 2
		}
	}
	return q
}

func (g *subgrid) function(f Function) Function {
	if f == nil {
		return nil
	}
	return func(q Point) float64 { return f(g.snap(q)) }
}

func (g *subgrid) coefficient(c Coefficient) Coefficient {
	c.Of = g.function(c.Of)
	return c
}

func (g *subgrid) boundary(q Point) float64 {
	if idx := g.p.Nearest(q); !g.p.onBoundary(idx) {
		return g.value(idx)
	}
	return g.p.Boundary(g.snap(q))
}

// fixedTo returns f, or free if f is nil, with value at fixed points.
func (g *subgrid) fixedTo(f Function, free float64) Function {
	return func(q Point) float64 {
		if idx := g.p.Nearest(q); !g.p.onBoundary(idx) && g.fixed(idx) {
			return g.value(idx)
		}
		if f == nil {
			return free
		}
		return f(q)
	}
}
