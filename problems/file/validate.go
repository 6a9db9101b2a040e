package file

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// ValueError reports an inadmissible value of a function of a problem at a point of the grid.
type ValueError struct {
	Key    string // key in a problem file, such as "obstacle", "f" or "boundary"
	At     problem.Point
	Reason string

	remedy string // for a problem file; empty: none
}

func (e *ValueError) Error() string { return e.Key + ": " + e.Reason }

// Validate checks the values of the problem's functions at every point of the grid, including the boundary: all
// values must be finite, κ > 0 (also half-way between neighbours), A an M-matrix if c < 0 somewhere, φ ≤ ψ, and φ ≤ boundary data ≤ ψ on
// ∂Ω. It runs on all cores; its result does not depend on their number. The error is a *ValueError, or an *Error
// for a problem file.
//
// A nonstationary problem is checked in its first, middle and last step. Invalid values in other steps are
// detected during the run.
func (s *Spec) Validate(p *problem.Problem) error {
	if p.FixedPoint != nil {
		return checkStart(p)
	}
	if p.Evolution == nil {
		if err := s.validate(p, ""); err != nil {
			return err
		}
		return s.checkReaction(p)
	}
	steps := p.Steps()
	for _, m := range slices.Compact([]int{1, (steps + 1) / 2, steps}) {
		if err := s.validate(p.AtStep(m), fmt.Sprintf(", at t = %.6g", p.Evolution.Time(m))); err != nil {
			return err
		}
	}
	return s.checkReaction(p)
}

// checkStart refuses an iteration whose starting values are not finite.
func checkStart(p *problem.Problem) error {
	x := make([]float64, p.Points())
	if err := p.FixedPoint.Start(x); err != nil {
		return fmt.Errorf("iteration %s: %w", p.Name, err)
	}
	if i := slices.IndexFunc(x, func(v float64) bool { return !kernel.Finite(v) }); i >= 0 {
		return fmt.Errorf("iteration %s: starting value %d is %v; it must be finite", p.Name, i, x[i])
	}
	return nil
}

// checkReaction refuses a negative reaction for which A is not proved to be an M-matrix.
func (s *Spec) checkReaction(p *problem.Problem) error {
	err := verify.CheckReaction(p, nil)
	if err == nil || s.document == nil {
		return err
	}
	for _, f := range s.document.fields() {
		if f.Key == "reaction" {
			return f.Errorf("%v", err)
		}
	}
	return err
}

// validate checks a stationary problem and appends when to its error messages.
func (s *Spec) validate(p *problem.Problem, when string) error {
	thin := 1
	if s.document == nil && p.Points() > largeGrid {
		thin = max(16, p.Points()/(largeGrid/4))
	}
	err := inspect(p, thin)
	v, ok := errors.AsType[*ValueError](err)
	if !ok {
		return err
	}
	v.Reason += when
	if s.document == nil {
		return fmt.Errorf("problem %s: %w", p.Name, err)
	}
	for _, f := range s.document.fields() {
		if f.Key == v.Key {
			return f.Errorf("%s%s", v.Reason, v.remedy)
		}
	}
	return err
}

// Validate is Spec.Validate for a problem without a Spec, such as one written in Go.
func Validate(p *problem.Problem) error {
	if err := inspect(p, 1); err != nil {
		return err
	}
	return verify.CheckReaction(p, nil)
}

// largeGrid is the number of points above which only some interior points of a built-in problem are checked:
// its formulas are trusted, and the peers check every value again.
const largeGrid = 1 << 20

// inspect checks all points of the boundary and one of every thin points of the interior.
func inspect(p *problem.Problem, thin int) error {
	if err := problems.CheckGrid(p.Dimension, p.N); err != nil {
		return err
	}
	slowest := p.Dimension - 1
	layers := p.N[slowest] + 2
	workers := max(1, min(runtime.GOMAXPROCS(0), layers/4))
	found := make([]inspection, workers)
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			found[w].p, found[w].thin = p, thin
			found[w].layers(layers*w/workers, layers*(w+1)/workers)
		})
	}
	done.Wait()
	var worst *inspection
	for i := range found {
		if found[i].err != nil {
			return found[i].err
		}
		if found[i].excess > 0 && (worst == nil || found[i].excess > worst.excess) {
			worst = &found[i]
		}
	}
	if w := worst; w != nil {
		w.refuse("obstacle", w.at, "%g is above the boundary data's %g, by %g", w.obstacle, w.datum, w.excess)
		if v, is := errors.AsType[*ValueError](w.err); is {
			v.remedy = "; give boundary: obstacle, which holds u at the obstacle there, or other boundary data"
		}
		return w.err
	}
	return p.ValidateStatement() // the boundary has been checked
}

// inspection checks some layers of the grid until the first error.
type inspection struct {
	p    *problem.Problem
	thin int
	err  error // nil or a *ValueError

	excess          float64 // largest excess of φ above the boundary data
	at              problem.Point
	obstacle, datum float64

	coordinates [3][]float64 // coordinates of grid points 0 to N+1 on each axis; 0 on unused axes
}

// layers checks the layers lo ≤ i < hi of the slowest axis.
func (s *inspection) layers(lo, hi int) {
	first, last := [3]int{1, 1, 1}, [3]int{1, 1, 1}
	for a := range s.p.Dimension {
		first[a], last[a] = 0, s.p.N[a]+1
	}
	first[s.p.Dimension-1], last[s.p.Dimension-1] = lo, hi-1
	for a := range s.coordinates {
		s.coordinates[a] = s.p.Coordinates(a, 0, s.p.N[a]+2)
	}
	for k := first[2]; k <= last[2]; k++ {
		for j := first[1]; j <= last[1]; j++ {
			i := first[0]
			if i > 0 { // part of a row
				i = s.nextPoint(i-1, j, k)
			}
			for ; i <= last[0] && s.err == nil; i = s.nextPoint(i, j, k) {
				s.point(i, j, k)
			}
			if s.err != nil {
				return
			}
		}
	}
}

// nextPoint returns the next point of a row to check after point i: all points of the boundary, and one of every
// thin points of the interior.
func (s *inspection) nextPoint(i, j, k int) int {
	p := s.p
	if s.thin == 1 || p.Dimension > 1 && (j == 0 || j > p.N[1]) || p.Dimension > 2 && (k == 0 || k > p.N[2]) {
		return i + 1
	}
	next := i + s.thin - (i+3*j+5*k)%s.thin
	if i <= p.N[0] {
		next = min(next, p.N[0]+1)
	}
	return next
}

func (s *inspection) point(i, j, k int) {
	p := s.p
	boundary := i == 0 || i > p.N[0] || p.Dimension > 1 && (j == 0 || j > p.N[1]) ||
		p.Dimension > 2 && (k == 0 || k > p.N[2])
	x, y, z := s.coordinates[0][i], s.coordinates[1][j], s.coordinates[2][k]
	q := problem.Point{x, y, z}
	phi, psi := math.Inf(-1), math.Inf(1)
	if p.Obstacle != nil {
		phi = s.valueAt("obstacle", x, y, z, p.Obstacle)
	}
	if p.Upper != nil {
		psi = s.value("upper", q, p.Upper)
		if psi < phi {
			s.refuse("upper", q, "%g is below the obstacle's %g", psi, phi)
		}
	}
	if p.Exact != nil {
		s.value("exact", q, p.Exact)
	}
	if p.Diffusion.Of != nil || p.Diffusion.Value <= 0 {
		s.diffusion(q, boundary)
	}
	if boundary {
		s.boundaryValue(x, y, z, phi, psi)
		return
	}
	if p.Source.Of != nil {
		s.value("f", q, p.Source.Of)
	}
	for a := range p.Dimension {
		if p.Velocity[a].Of != nil {
			s.value("velocity", q, p.Velocity[a].Of)
		}
	}
	if p.Reaction.Of != nil {
		s.value("reaction", q, p.Reaction.Of)
	}
}

// diffusion checks κ at the point and half a cell further along each axis, where fluxes are computed.
func (s *inspection) diffusion(q problem.Point, boundary bool) {
	if s.p.Diffusion.Of == nil {
		if k := s.p.Diffusion.Value; k <= 0 { // from a formula of the time alone
			s.refuse("diffusion", q, "%g is not positive", k)
		}
		return
	}
	for a := -1; a < s.p.Dimension; a++ {
		at := q
		if a >= 0 {
			if at[a] += s.p.Spacing(a) / 2; boundary && at[a] > s.p.Hi[a] {
				continue
			}
		}
		if k := s.value("diffusion", at, s.p.Diffusion.Of); k <= 0 {
			s.refuse("diffusion", at, "%g is not positive", k)
		}
	}
}

// roundingTolerance is the relative tolerance for an obstacle and boundary data that should be equal.
const roundingTolerance = 1e-12

func (s *inspection) boundaryValue(x, y, z, phi, psi float64) {
	q := problem.Point{x, y, z}
	if s.p.Boundary == nil {
		s.refuse("boundary", q, "the problem has no boundary data")
		return
	}
	g := s.valueAt("boundary", x, y, z, s.p.Boundary)
	if g-psi > roundingTolerance*(1+math.Abs(g)) {
		s.refuse("upper", q, "%g is below the boundary data's %g", psi, g)
	}
	if excess := phi - g; excess > roundingTolerance*(1+math.Abs(phi)) && excess > s.excess {
		s.excess, s.at = excess, q
		s.obstacle, s.datum = phi, g
	}
}

// value returns the value of f at q. It passes numbers, because copying a Point is slower.
func (s *inspection) value(key string, q problem.Point, f problem.Function) float64 {
	return s.valueAt(key, q[0], q[1], q[2], f)
}

func (s *inspection) valueAt(key string, x, y, z float64, f problem.Function) float64 {
	v := f(problem.Point{x, y, z})
	if !kernel.Finite(v) {
		s.refuse(key, problem.Point{x, y, z}, "%g is not finite", v)
	}
	return v
}

// refuse records the first error.
func (s *inspection) refuse(key string, q problem.Point, format string, args ...any) {
	if s.err == nil {
		s.err = &ValueError{Key: key, At: q,
			Reason: "the value " + fmt.Sprintf(format, args...) + ", at " + s.pointText(q)}
	}
}

// pointText returns coordinates as text, such as "(x, y) = (0.5, 1)".
func (s *inspection) pointText(q problem.Point) string {
	switch s.p.Dimension {
	case 1:
		return fmt.Sprintf("x = %.6g", q[0])
	case 2:
		return fmt.Sprintf("(x, y) = (%.6g, %.6g)", q[0], q[1])
	}
	return fmt.Sprintf("(x, y, z) = (%.6g, %.6g, %.6g)", q[0], q[1], q[2])
}
