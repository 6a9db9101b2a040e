package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Point is a point of the domain: x, y, z. Unused axes of a 1-D or 2-D problem are 0.
type Point [3]float64

// Function is a function on the closed domain. It must be pure. It may be called from several goroutines at
// once.
type Function func(p Point) float64

// Coefficient is a coefficient of the operator: the function Of, or the constant Value if Of is nil.
type Coefficient struct {
	Value float64
	Of    Function
}

// At returns the coefficient at p.
func (c Coefficient) At(p Point) float64 {
	if c.Of != nil {
		return c.Of(p)
	}
	return c.Value
}

// Constant reports whether the coefficient is constant.
func (c Coefficient) Constant() bool { return c.Of == nil }

// Problem is an obstacle problem on a box, stationary unless it has an Evolution: find u with A·u − f ≥ 0, u ≥
// φ (and u ≤ ψ), complementarity, and u = Boundary on ∂Ω, where A = −div(κ∇u) + b·∇u + c·u. Axis 0 is x
// (contiguous in memory), 1 is y, 2 is z.
type Problem struct {
	Name      string
	Dimension int    // 1, 2 or 3
	Lo, Hi    Point  // the domain's corners; 0 on unused axes
	N         [3]int // interior grid points per axis; 1 on unused axes

	Diffusion Coefficient    // κ > 0
	Velocity  [3]Coefficient // b
	Reaction  Coefficient    // c ≥ 0
	Source    Coefficient    // f

	Obstacle Function // φ; nil: none (−∞)
	Upper    Function // ψ; nil: none (+∞)
	Boundary Function // Dirichlet data on ∂Ω
	Initial  Function // starting iterate in the interior; nil: max(φ, 0), at most ψ
	Exact    Function // exact solution of the continuous problem; nil: unknown
	Rows     Rows     // the functions above by rows, where that is faster

	// Evolution makes the problem nonstationary. nil: stationary. The functions above are then those at the end
	// time.
	Evolution *Evolution

	// Upwind uses one-sided differences for the velocity where the cell Péclet number |b|·h/κ is above 2, so that
	// A remains an M-matrix. Otherwise central differences are used everywhere (see Warnings).
	Upwind bool

	// FixedPoint makes the problem an iteration x ← F(x), not an obstacle problem: the points of the grid are its unknowns,
	// as FromFixedPoint arranges them. The functions and coefficients above then have no meaning.
	FixedPoint *iterate.FixedPoint

	SteadyObstacles bool // time step whose obstacles equal those of every other step

	origin *origin // of a problem that Inner has returned
}

// Spacing returns the distance between grid points along an axis, (Hi−Lo)/(N+1), or 0 on unused axes.
func (p *Problem) Spacing(axis int) float64 {
	if axis >= p.Dimension {
		return 0
	}
	if o := p.larger(); o != nil {
		return o.p.Spacing(axis)
	}
	return (p.Hi[axis] - p.Lo[axis]) / float64(p.N[axis]+1)
}

// At returns the coordinates of grid point (i, j, k), each index from 0 (low boundary) to N+1 (high boundary).
// Unused axes have only index 1 and coordinate 0.
func (p *Problem) At(i, j, k int) Point {
	idx := [3]int{i, j, k}
	var q Point
	for a := range p.Dimension {
		q[a] = p.along(a, idx[a])
	}
	return q
}

// along returns the coordinate of grid index i on a used axis.
func (p *Problem) along(a, i int) float64 {
	if o := p.larger(); o != nil {
		return o.p.along(a, o.at[a]+i)
	}
	if i == p.N[a]+1 {
		return p.Hi[a]
	}
	return p.Lo[a] + float64(float64(i)*p.Spacing(a))
}

// Dense returns the index of grid point idx (1-based) in an array of the whole grid, [z][y][x].
func (p *Problem) Dense(idx [3]int) int { return idx[0] - 1 + p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1)) }

// Nearest returns the grid point nearest to q, where 0 and N+1 denote the boundary.
func (p *Problem) Nearest(q Point) [3]int {
	idx := [3]int{1, 1, 1}
	for a := range p.Dimension {
		i := int(math.Round((q[a] - p.Lo[a]) / p.Spacing(a)))
		idx[a] = min(max(i, 0), p.N[a]+1)
	}
	return idx
}

// Start sets a box of u, [z][y][x] of the whole grid, to the starting iterate: initial, or that of the problem if initial
// is nil.
func (p *Problem) Start(u, initial []float64, b Box) {
	if p.FixedPoint != nil && initial == nil {
		if initial = make([]float64, p.Points()); p.FixedPoint.Start(initial) != nil {
			clear(initial) // the error of the division was found when the run began
		}
	}
	for _, idx := range b.Each {
		at := p.Dense(idx)
		if initial != nil {
			u[at] = initial[at]
			continue
		}
		q, v := p.At(idx[0], idx[1], idx[2]), 0.0
		if p.Initial != nil {
			v = p.Initial(q)
		}
		phi, psi := p.Obstacles(q)
		u[at] = Clamp(v, phi, psi)
	}
}

// ValueAt returns the value at grid point idx: that of u, [z][y][x], or the boundary data on ∂Ω.
func (p *Problem) ValueAt(u []float64, idx [3]int) float64 {
	if p.onBoundary(idx) {
		return p.Boundary(p.At(idx[0], idx[1], idx[2]))
	}
	return u[p.Dense(idx)]
}

// Interpolate returns the value at a point of the closed domain, linear along each axis between the grid points around it,
// from u, [z][y][x] of the whole grid, and the boundary data. Outside the domain it is NaN.
func (p *Problem) Interpolate(u []float64, q Point) float64 {
	low, part := [3]int{1, 1, 1}, [3]float64{}
	for a := range p.Dimension {
		if !(q[a] >= p.Lo[a] && q[a] <= p.Hi[a]) {
			return math.NaN()
		}
		at := (q[a] - p.Lo[a]) / p.Spacing(a)
		low[a] = min(int(at), p.N[a])
		part[a] = at - float64(low[a])
	}
	sum := 0.0
	for corner := range 1 << p.Dimension {
		idx, weight := low, 1.0
		for a := range p.Dimension {
			if corner>>a&1 == 1 {
				idx[a]++
				weight *= part[a]
			} else {
				weight *= 1 - part[a]
			}
		}
		if weight != 0 {
			sum += float64(weight * p.ValueAt(u, idx))
		}
	}
	return sum
}

// Points returns the number of unknowns.
func (p *Problem) Points() int { return p.N[0] * p.N[1] * p.N[2] }

// Obstacles returns φ and ψ at q, infinite where there is none.
func (p *Problem) Obstacles(q Point) (phi, psi float64) {
	phi, psi = math.Inf(-1), math.Inf(1)
	if p.Obstacle != nil {
		phi = p.Obstacle(q)
	}
	if p.Upper != nil {
		psi = p.Upper(q)
	}
	return phi, psi
}

// onBoundary reports whether grid point idx (0 and N+1 denote the boundary) lies on ∂Ω.
func (p *Problem) onBoundary(idx [3]int) bool {
	for a := range p.Dimension {
		if idx[a] == 0 || idx[a] == p.N[a]+1 {
			return true
		}
	}
	return false
}
