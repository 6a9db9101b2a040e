package problem

// Inner returns the problem on a box of p's grid. Its boundary data are the values around the box, and p's own
// where the box touches ∂Ω. At points of the box for which fixed returns true, both obstacles equal value. A nil
// fixed fixes no point. Both functions receive grid indices (1-based) of interior points of p. They are called
// whenever a function of the result is, possibly from several goroutines at once. p must be stationary. The functions
// are evaluated at the coordinates of p's grid, so they have the same bits as for p.
func (p *Problem) Inner(box Box, value func(idx [3]int) float64, fixed func(idx [3]int) bool) *Problem {
	g := subgrid{p: p, value: value, fixed: fixed}
	q := *p
	q.Exact, q.Rows.Exact, q.SteadyObstacles = nil, nil, false
	q.N, q.origin = box.Size(), &origin{p: p, at: box.Lo, n: box.Size()}
	for a := range p.Dimension {
		q.Lo[a], q.Hi[a] = p.along(a, box.Lo[a]), p.along(a, box.Hi[a]+1)
	}
	q.Boundary = g.boundary
	if fixed != nil {
		q.Obstacle, q.Upper = g.fixedTo(p.Obstacle, -unbounded), g.fixedTo(p.Upper, unbounded)
		q.Rows.Obstacle, q.Rows.Upper = nil, nil
	}
	return &q
}

// origin is the place of a grid in that of a larger problem, whose coordinates it has.
type origin struct {
	p  *Problem
	at [3]int // index of the grid's point 0 in p
	n  [3]int // points of the grid; a coarser one has coordinates of its own
}

// larger returns the place of p's grid in a larger one, nil if it is in none.
func (p *Problem) larger() *origin {
	if o := p.origin; o != nil && o.n == p.N {
		return o
	}
	return nil
}

// unbounded is a finite value beyond any solution value. It stands for a missing obstacle at a point.
const unbounded = 1e100

// subgrid provides the functions of a problem on a part of its own grid.
type subgrid struct {
	p     *Problem
	value func(idx [3]int) float64
	fixed func(idx [3]int) bool
}

func (g *subgrid) boundary(q Point) float64 {
	if idx := g.p.Nearest(q); !g.p.onBoundary(idx) {
		return g.value(idx)
	}
	return g.p.Boundary(q)
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
