// Package solver holds projected relaxation methods for obstacle problems as
// pure state machines: problem, partition, scheme, termination and the worker
// that a peer runs. It does no I/O, reads no clock and starts no goroutine.
package problem

// Point is a point of the domain: x, y, z. Unused axes of a 1-D or 2-D problem
// are 0.
type Point [3]float64

// Function is a function on the closed domain. It must be pure; it may be called
// from several goroutines at once.
type Function func(p Point) float64

// Coefficient is a coefficient of the operator: a constant, or a function of
// place when Of is not nil.
type Coefficient struct {
	Value float64
	Of    Function
}

// At evaluates the coefficient.
func (c Coefficient) At(p Point) float64 {
	if c.Of != nil {
		return c.Of(p)
	}
	return c.Value
}

// Constant tells whether the coefficient is the same everywhere.
func (c Coefficient) Constant() bool { return c.Of == nil }

// Problem is an obstacle problem on a box (SPEC §1), stationary unless it has an
// Evolution:
// find u with A·u − f ≥ 0, u ≥ φ (and u ≤ ψ), complementary; u = Boundary on ∂Ω;
// A = −div(κ∇u) + b·∇u + c·u. Axis 0 is x (fastest in memory), 1 is y, 2 is z.
type Problem struct {
	Name      string
	Dimension int    // 1, 2 or 3
	Lo, Hi    Point  // the domain's corners; unused axes 0 and 0
	N         [3]int // interior grid points per axis; 1 on unused axes

	Diffusion Coefficient    // κ > 0
	Velocity  [3]Coefficient // b
	Reaction  Coefficient    // c ≥ 0
	Source    Coefficient    // f

	Obstacle Function // φ; nil: none (−∞)
	Upper    Function // ψ; nil: none (+∞)
	Boundary Function // Dirichlet data on ∂Ω
	Initial  Function // starting iterate in the interior; nil: max(φ, 0), at most ψ
	Exact    Function // exact solution of the continuous problem; nil: not known
	Rows     Rows     // the same by rows, where that is faster

	// Evolution makes the problem nonstationary; nil: stationary. The functions
	// above are then those at the end.
	Evolution *Evolution

	// Upwind takes one-sided differences for the velocity term where the cell
	// Péclet number |b|·h/κ is above 2, so that A stays an M-matrix there; otherwise
	// central ones are taken everywhere (see Warnings).
	Upwind bool

	Steady bool // it is a time step whose obstacles are those of every other step
}

// Spacing is the distance between grid points along an axis: (Hi−Lo)/(N+1); 0 on
// unused axes.
func (p *Problem) Spacing(axis int) float64 {
	if axis >= p.Dimension {
		return 0
	}
	return (p.Hi[axis] - p.Lo[axis]) / float64(p.N[axis]+1)
}

// At returns the place of grid point (i, j, k), each from 0 (low boundary) to
// N+1 (high boundary). Unused axes have index 1 only and coordinate 0.
func (p *Problem) At(i, j, k int) Point {
	idx := [3]int{i, j, k}
	var q Point
	for a := 0; a < p.Dimension; a++ {
		q[a] = p.along(a, idx[a])
	}
	return q
}

// along is At on one axis that is used.
func (p *Problem) along(a, i int) float64 {
	if i == p.N[a]+1 {
		return p.Hi[a]
	}
	return p.Lo[a] + float64(float64(i)*p.Spacing(a))
}

// Points is the number of unknowns.
func (p *Problem) Points() int { return p.N[0] * p.N[1] * p.N[2] }
