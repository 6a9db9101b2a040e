package problem

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// ErrProblem is wrapped by every error about a problem that cannot be solved as stated.
var ErrProblem = errors.New("problem: invalid problem")

// MaxPoints bounds the number of unknowns of one grid.
const MaxPoints = 1 << 36

// Validate checks everything that does not require evaluating functions in the interior: dimension, domain,
// grid, signs of constant coefficients, and that the boundary data are finite and between the obstacles. It
// costs a few evaluations per boundary point.
func (p *Problem) Validate() error {
	_, in, err := p.InRange()
	if err != nil {
		return err
	}
	unit := (-in.Scale).Times(1)
	for a := range p.Dimension {
		for _, end := range []int{0, p.N[a] + 1} {
			side := Box{Hi: p.N}
			side.Lo[a], side.Hi[a] = end-1, end
			p.EachPoint(side, func(_, i, j, k int, x, y, z float64) bool {
				err = p.validateBoundaryPoint(unit, [3]int{i, j, k}, Point{x, y, z})
				return err == nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// minSpacing is a spacing whose square, and the square of whose inverse, are normal float64 numbers.
const minSpacing = 0x1p-500

// Errorf returns an error that wraps ErrProblem and names the problem.
func (p *Problem) Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s", ErrProblem, p.Name, fmt.Sprintf(format, args...))
}

// ValidateStatement is the part of Validate that evaluates no function.
func (p *Problem) ValidateStatement() error {
	if p.Dimension < 1 || p.Dimension > 3 {
		return p.Errorf("dimension %d; it must be 1, 2 or 3", p.Dimension)
	}
	points := 1
	for a, n := range p.N {
		switch {
		case n < 1:
			return p.Errorf("%d interior points on axis %d; at least 1 is needed", n, a)
		case a >= p.Dimension && n != 1:
			return p.Errorf("%d points on axis %d, which is unused in dimension %d; it must be 1", n, a, p.Dimension)
		case n > MaxPoints/points:
			return p.Errorf("a grid of %v points is too large; at most %d", p.N, MaxPoints)
		}
		points *= n
	}
	for a := range p.Dimension {
		l := p.Hi[a] - p.Lo[a]
		if !(l > 0) || math.IsInf(l, 1) || !(p.Spacing(a) > 0) {
			return p.Errorf("the domain runs from %v to %v on axis %d; the end must be larger and both must be finite",
				p.Lo[a], p.Hi[a], a)
		}
		if h := p.Spacing(a); h < minSpacing || h > 1/minSpacing {
			return p.Errorf("the square of the spacing %v on axis %d is out of range; choose another unit of length", h, a)
		}
	}
	if p.Boundary == nil {
		return p.Errorf("it has no boundary data")
	}
	if k := p.Diffusion; k.Constant() && (!(k.Value > 0) || math.IsInf(k.Value, 1)) {
		return p.Errorf("the diffusion is %v; it must be positive and finite", k.Value)
	}
	if c := p.Reaction; c.Constant() && !kernel.Finite(c.Value) {
		return p.Errorf("the reaction is %v; it must be finite", c.Value)
	}
	for a := range p.Dimension {
		if b := p.Velocity[a]; b.Constant() && !kernel.Finite(b.Value) {
			return p.Errorf("the velocity along axis %d is %v; it must be finite", a, b.Value)
		}
	}
	if f := p.Source; f.Constant() && !kernel.Finite(f.Value) {
		return p.Errorf("the source is %v; it must be finite", f.Value)
	}
	if p.FixedPoint != nil {
		return p.checkFixedPoint()
	}
	if p.Evolution != nil {
		return p.Evolution.check(p)
	}
	return nil
}

// boundaryTolerance allows for rounding where an obstacle meets the boundary data.
const boundaryTolerance = 1e-9

// validateBoundaryPoint checks the values at a point of the boundary. unit is a number of the size of the values.
func (p *Problem) validateBoundaryPoint(unit float64, idx [3]int, q Point) error {
	g := p.Boundary(q)
	if !kernel.Finite(g) {
		return p.Errorf("the boundary data are %v at %v", g, p.Location(idx))
	}
	slack := boundaryTolerance * (unit + math.Abs(g))
	phi, psi := p.Obstacles(q)
	if !(phi <= g+slack) {
		return p.Errorf("the obstacle (%v) lies above the boundary data (%v) at %v; lower the obstacle or raise the data",
			phi, g, p.Location(idx))
	}
	if !(psi >= g-slack) {
		return p.Errorf("the upper obstacle (%v) lies below the boundary data (%v) at %v", psi, g, p.Location(idx))
	}
	return nil
}

// Location returns the coordinates of grid point idx (0 and N+1 denote the boundary) on the used axes, for
// messages.
func (p *Problem) Location(idx [3]int) []float64 {
	q := p.At(idx[0], idx[1], idx[2])
	return q[:p.Dimension]
}

// warningSamples bounds the points per axis that Warnings samples.
const warningSamples = 64

// Warnings returns properties of the problem that may spoil the answer but are no errors: a cell Péclet number
// |b|·h/κ above 2. With central differences A is then no M-matrix, convergence is not guaranteed and the
// solution may oscillate. Upwind differences are of first order. Coefficients that are functions are sampled at
// up to 64 points per axis.
func (p *Problem) Warnings() []string {
	if p.ValidateStatement() != nil {
		return nil
	}
	what := "central differences lose the M-matrix; refine the grid or use upwind differences"
	if p.Upwind {
		what = "upwind differences, of first order, are used where central ones would lose the M-matrix; " +
			"refine the grid for second order"
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

// DivergenceAdvice returns what to change if a run with this method has diverged.
func (p *Problem) DivergenceAdvice(m *MethodConfig) string {
	q := p.AtStep(min(1, p.Steps()))
	central := !q.Upwind && slices.ContainsFunc([]int{0, 1, 2}[:q.Dimension], func(a int) bool {
		peclet, _ := q.LargestPeclet(a)
		return peclet > 2
	})
	switch {
	case p.FixedPoint != nil:
		return "F is not finite somewhere, or no contraction, which every scheme needs: check the iteration, or damp it"
	case central:
		return "central differences lose the M-matrix where the cell Péclet number is above 2: use upwind differences " +
			"(upwind: true in the problem file, or no such line) or a finer grid (--n)"
	case m.Omega != 0:
		return fmt.Sprintf("the relaxation factor %v may be too large for this matrix: leave it out, or use 1", m.Omega)
	}
	return "the matrix may be no M-matrix, without which no method is sure to converge: check diffusion, velocity and reaction"
}

// LargestPeclet returns the largest cell Péclet number along axis a and the location where it occurs.
func (p *Problem) LargestPeclet(a int) (float64, []float64) {
	constant := p.Diffusion.Constant() && p.Velocity[a].Constant()
	if p.Velocity[a].Constant() && p.Velocity[a].Value == 0 {
		return 0, nil
	}
	var step [3]int
	var samples Box
	for b, n := range p.N {
		step[b] = (n + warningSamples - 1) / warningSamples
		samples.Hi[b] = (n + step[b] - 1) / step[b]
	}
	largest, place := 0.0, []float64(nil)
	for _, idx := range samples.Each {
		for b := range idx {
			idx[b] = 1 + (idx[b]-1)*step[b]
		}
		q := p.At(idx[0], idx[1], idx[2])
		if v := math.Abs(p.Velocity[a].At(q)) * p.Spacing(a) / p.Diffusion.At(q); v > largest {
			largest, place = v, p.Location(idx)
		}
		if constant {
			break
		}
	}
	return largest, place
}
