package problem

import "math"

// Inner is the problem on a box of p's grid: its boundary data are u around the box, and p's
// own where the box touches the boundary of the domain. u holds values of the whole grid,
// [z][y][x]; it is read whenever a function of the result is called. At points of the box that
// are fixed (nil: none is), both obstacles are u. p must be stationary.
func (p *Problem) Inner(box Box, u []float64, fixed func(dense int) bool) *Problem {
	g := inner{p: p, u: u, fixed: fixed}
	q := *p
	q.Rows, q.Exact, q.Steady = Rows{}, nil, false
	for a := range p.Dimension {
		q.Lo[a], q.Hi[a] = p.along(a, box.Lo[a]), p.along(a, box.Hi[a]+1)
	}
	q.N = box.Size()
	q.Diffusion, q.Reaction, q.Source = g.coefficient(p.Diffusion), g.coefficient(p.Reaction), g.coefficient(p.Source)
	for a := range p.Dimension {
		q.Velocity[a] = g.coefficient(p.Velocity[a])
	}
	q.Obstacle, q.Upper, q.Initial = g.function(p.Obstacle), g.function(p.Upper), g.function(p.Initial)
	q.Boundary = g.boundary
	if fixed != nil {
		q.Obstacle, q.Upper = g.pinned(q.Obstacle, -unbounded), g.pinned(q.Upper, unbounded)
	}
	return &q
}

// unbounded is farther than any value, and finite: an obstacle that is none at a point.
const unbounded = 1e100

// inner evaluates the functions of a problem at the points of its own grid.
type inner struct {
	p     *Problem
	u     []float64
	fixed func(dense int) bool
}

// snap moves a point that lies on the grid, or half-way between two of its points along an
// axis, to where the problem itself evaluates its functions there: a jump must not come to
// lie on the other side by rounding. Points of other grids stay.
func (g *inner) snap(q Point) Point {
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

func (g *inner) function(f Function) Function {
	if f == nil {
		return nil
	}
	return func(q Point) float64 { return f(g.snap(q)) }
}

func (g *inner) coefficient(c Coefficient) Coefficient {
	c.Of = g.function(c.Of)
	return c
}

// nearest is the grid point nearest to q, 0 and N+1 being the boundary, and whether it lies
// inside.
func (g *inner) nearest(q Point) (idx [3]int, inside bool) {
	idx, inside = [3]int{1, 1, 1}, true
	for a := range g.p.Dimension {
		i := int(math.Round((q[a] - g.p.Lo[a]) / g.p.Spacing(a)))
		idx[a] = min(max(i, 0), g.p.N[a]+1)
		inside = inside && idx[a] >= 1 && idx[a] <= g.p.N[a]
	}
	return idx, inside
}

func (g *inner) dense(idx [3]int) int {
	return idx[0] - 1 + g.p.N[0]*(idx[1]-1+g.p.N[1]*(idx[2]-1))
}

func (g *inner) boundary(q Point) float64 {
	if idx, inside := g.nearest(q); inside {
		return g.u[g.dense(idx)]
	}
	return g.p.Boundary(g.snap(q))
}

// pinned is f, or free where there is none, and u at the points that are fixed.
func (g *inner) pinned(f Function, free float64) Function {
	return func(q Point) float64 {
		if idx, inside := g.nearest(q); inside && g.fixed(g.dense(idx)) {
			return g.u[g.dense(idx)]
		}
		if f == nil {
			return free
		}
		return f(q)
	}
}
