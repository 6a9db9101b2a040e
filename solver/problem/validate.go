package problem

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// ErrProblem is wrapped by every error about a problem that cannot be solved as
// it is stated.
var ErrProblem = errors.New("solver: the problem is refused")

// MaxPoints bounds the number of unknowns of one grid.
const MaxPoints = 1 << 36

// Validate looks at everything that can be judged without visiting the interior:
// dimension, domain, grid, signs of constant coefficients, and on the boundary
// that the data are finite and not below the obstacle (or above the upper one).
// It costs a few evaluations per boundary point.
func (p *Problem) Validate() error {
	_, in, err := p.InRange()
	if err != nil {
		return err
	}
	unit := (-in.Scale).Times(1)
	for a := range p.Dimension {
		for _, end := range []int{0, p.N[a] + 1} {
			if err := p.validateSide(unit, a, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// leastSpacing is a spacing whose square is a float64 of full precision, as is its inverse's.
const leastSpacing = 0x1p-500

// Refuse returns an error that wraps ErrProblem and names the problem.
func (p *Problem) Refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s", ErrProblem, p.Name, fmt.Sprintf(format, args...))
}

// ValidateStatement is the part of Validate that evaluates no function: for those who look at
// the boundary themselves.
func (p *Problem) ValidateStatement() error { return p.ValidateHead() }

// ValidateHead is the part of Validate that evaluates no function.
func (p *Problem) ValidateHead() error {
	if p.Dimension < 1 || p.Dimension > 3 {
		return p.Refuse("dimension %d; it must be 1, 2 or 3", p.Dimension)
	}
	points := 1
	for a, n := range p.N {
		switch {
		case n < 1:
			return p.Refuse("%d interior points on axis %d; at least 1 is needed", n, a)
		case a >= p.Dimension && n != 1:
			return p.Refuse("%d points on axis %d, which a problem of dimension %d does not use; it must be 1", n, a, p.Dimension)
		case n > MaxPoints/points:
			return p.Refuse("a grid of %v points is too large; at most %d", p.N, MaxPoints)
		}
		points *= n
	}
	for a := range p.Dimension {
		l := p.Hi[a] - p.Lo[a]
		if !(l > 0) || math.IsInf(l, 1) || !(p.Spacing(a) > 0) {
			return p.Refuse("the domain runs from %v to %v on axis %d; the second must be larger, and both finite", p.Lo[a], p.Hi[a], a)
		}
		if h := p.Spacing(a); h < leastSpacing || h > 1/leastSpacing {
			return p.Refuse("the spacing is %v on axis %d, whose square is out of range: choose another unit of length", h, a)
		}
	}
	if p.Boundary == nil {
		return p.Refuse("it has no boundary data")
	}
	if k := p.Diffusion; k.Constant() && (!(k.Value > 0) || math.IsInf(k.Value, 1)) {
		return p.Refuse("the diffusion is %v; it must be positive and finite", k.Value)
	}
	if c := p.Reaction; c.Constant() && (!(c.Value >= 0) || math.IsInf(c.Value, 1)) {
		return p.Refuse("the reaction is %v; it must not be negative, and finite", c.Value)
	}
	for a := range p.Dimension {
		if b := p.Velocity[a]; b.Constant() && !kernel.Finite(b.Value) {
			return p.Refuse("the velocity along axis %d is %v", a, b.Value)
		}
	}
	if f := p.Source; f.Constant() && !kernel.Finite(f.Value) {
		return p.Refuse("the source is %v", f.Value)
	}
	if p.Evolution != nil {
		return p.Evolution.check(p)
	}
	return nil
}

// boundaryTolerance forgives the rounding of an obstacle and data that meet there.
const boundaryTolerance = 1e-9

// validateSide checks the boundary points with index end on axis a; unit is a number of the
// size that values have.
func (p *Problem) validateSide(unit float64, a, end int) error {
	side := Box{Hi: p.N}
	side.Lo[a], side.Hi[a] = end-1, end
	var err error
	p.EachPlace(side, func(_, i, j, k int, x, y, z float64) bool {
		err = p.validateBoundaryPoint(unit, i, j, k, x, y, z)
		return err == nil
	})
	return err
}

func (p *Problem) validateBoundaryPoint(unit float64, i, j, k int, x, y, z float64) error {
	idx := [3]int{i, j, k}
	g := p.Boundary(Point{x, y, z})
	if !kernel.Finite(g) {
		return p.Refuse("the boundary data are %v at %v", g, p.Place(idx))
	}
	slack := boundaryTolerance * (unit + math.Abs(g))
	if p.Obstacle != nil {
		if phi := p.Obstacle(Point{x, y, z}); !(phi <= g+slack) {
			return p.Refuse("the obstacle (%v) lies above the boundary data (%v) at %v; lower the obstacle or raise the data", phi, g, p.Place(idx))
		}
	}
	if p.Upper != nil {
		if psi := p.Upper(Point{x, y, z}); !(psi >= g-slack) {
			return p.Refuse("the upper obstacle (%v) lies below the boundary data (%v) at %v", psi, g, p.Place(idx))
		}
	}
	return nil
}

// Place is grid point idx (0 and N+1 are the boundary) in the domain, for people.
func (p *Problem) Place(idx [3]int) []float64 {
	q := p.At(idx[0], idx[1], idx[2])
	return q[:p.Dimension]
}

// warningSamples bounds how many points Warnings looks at along an axis.
const warningSamples = 64

// Warnings says what may spoil the answer without being an error: a cell Péclet
// number |b|·h/κ above 2. With central differences A is no M-matrix there, and neither
// convergence nor the absence of wiggles is guaranteed; one-sided ones are of first
// order. Coefficients that are functions are sampled on at most 64 points per axis.
func (p *Problem) Warnings() []string {
	if p.ValidateHead() != nil {
		return nil
	}
	what := "central differences lose the M-matrix; refine the grid or take upwind differences"
	if p.Upwind {
		what = "upwind differences are taken where central ones would lose the M-matrix, and are of first order; refine the grid for second"
	}
	var out []string
	for a := range p.Dimension {
		if peclet, at := p.LargestPeclet(a); peclet > 2 {
			out = append(out, fmt.Sprintf(
				"cell Péclet number %.3g along axis %d at %v is above 2: %s", peclet, a, at, what))
		}
	}
	return out
}

// LargestPeclet returns the largest cell Péclet number along axis a, and the place where it occurs (nil: everywhere).
func (p *Problem) LargestPeclet(a int) (float64, []float64) {
	constant := p.Diffusion.Constant() && p.Velocity[a].Constant()
	if p.Velocity[a].Constant() && p.Velocity[a].Value == 0 {
		return 0, nil
	}
	step := [3]int{1, 1, 1}
	for b := range p.Dimension {
		step[b] = (p.N[b] + warningSamples - 1) / warningSamples
	}
	largest, place := 0.0, []float64(nil)
	for k := 1; k <= p.N[2]; k += step[2] {
		for j := 1; j <= p.N[1]; j += step[1] {
			for i := 1; i <= p.N[0]; i += step[0] {
				q := p.At(i, j, k)
				if v := math.Abs(p.Velocity[a].At(q)) * p.Spacing(a) / p.Diffusion.At(q); v > largest {
					largest, place = v, p.Place([3]int{i, j, k})
				}
				if constant {
					return largest, place
				}
			}
		}
	}
	return largest, place
}
