package repair

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// A hole is solved to a fraction of the tolerance of the run, but not below leastTolerance, where round-off dominates.
const (
	toleranceFraction = 0.1
	leastTolerance    = 1e-12
)

// Bounds of the cycles or sweeps of the methods that solve a hole.
const (
	maxCycles = 100
	maxSweeps = 5000
)

// Hole describes a group of lost boxes and the values around it.
type Hole struct {
	Problem *problem.Problem // stationary
	// Partition is that of the run. It is needed for an iteration, whose Boxes are parts of it.
	Partition problem.Partition
	Boxes     []problem.Box // lost; disjoint, and one of Groups
	// Value returns the value at a grid index (1-based) outside the boxes and inside the domain, and whether it is
	// known. Where it is not, the starting value is used. It may be called from several goroutines at once.
	Value func(idx [3]int) (v float64, known bool)
	// Start returns the starting value at a grid index, for example from an old copy. nil uses the problem's.
	Start func(idx [3]int) float64
	// New creates the only peer of the run that solves the hole.
	New      func(problem.Config) (problem.Peer, error)
	Executor problem.Executor // nil: Sequential
	// Allocate is that of the peer's problem.Config. The result shares nothing with its arrays.
	Allocate  func(n int) []float64
	Tolerance float64 // of the whole run, relative
	// Stop is called between operations. The best values so far are returned once it reports true. nil: never.
	Stop func() bool

	refused map[[3]int]float64 // values to use in place of those of Value
}

// Repaired is the result of Solve.
type Repaired struct {
	Box    problem.Box // the smallest box that contains the hole
	Points int         // of the hole
	// Method is the name of the method that computed the values. It is empty if the starting values are kept
	// because no method has improved them.
	Method   string
	Sweeps   iterate.Iteration // or cycles, of that method
	Work     float64           // of that method, in sweeps over Box
	Residual float64           // relative, of the values, in the problem on the hole
	// ErrorBound bounds the distance of the values from the solution on the hole. NaN: no bound is known without a
	// search.
	ErrorBound float64
	// Refused is the number of known values beside the hole that no solution can have, since they are outside the
	// obstacles. The nearest values within them were used, which are no further from the solution.
	Refused int

	u []float64 // of Box, [z][y][x]
}

// Values returns the values of a part of Box, [z][y][x]. Those of all of it are not copied.
func (r *Repaired) Values(part problem.Box) []float64 {
	if part == r.Box {
		return r.u
	}
	return extract(r.Box, r.u, part)
}

// Solve solves the problem on a hole with the values around it as boundary data: by multigrid, and by SOR if that does
// not converge. It keeps values only if their residual, which it evaluates itself, meets the tolerance or is below that
// of the starting values. A result is returned with the errors of methods that failed, too.
func Solve(h Hole) (Repaired, error) {
	if len(h.Boxes) == 0 || h.Problem.Evolution != nil {
		return Repaired{}, errors.New("repair: a hole needs a box and a stationary problem; see problem.AtStep")
	}
	if h.Problem.FixedPoint != nil {
		return h.relax()
	}
	out := Repaired{Residual: math.NaN(), ErrorBound: math.NaN()}
	out.Box, out.Points = enclosing(h.Boxes)
	h.refuse()
	out.Refused = len(h.refused)
	p := h.inner(out.Box, out.Points)
	c := problem.Config{
		Problem: p, Partition: problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}},
		Scheme: iterate.Synchronous(), Executor: h.Executor, Tolerance: max(toleranceFraction*h.Tolerance, leastTolerance),
		Allocate: h.Allocate,
	}
	if h.Start != nil {
		out.start(&h)
		c.Initial = out.u
	}
	var all []error
	for _, m := range []string{problem.Multigrid, problem.SOR} {
		if h.stops() {
			break
		}
		c.Method.Name, c.MaxSweeps = m, maxCycles
		if m == problem.SOR {
			c.MaxSweeps = maxSweeps
		}
		u, o, err := h.run(c)
		if err == nil {
			err = out.improve(&h, &c, u, o)
		}
		if err != nil {
			all = append(all, fmt.Errorf("repair: solving a hole of %d points by %s: %w", out.Points, m, err))
		} else if o.Reason == iterate.Converged || o.Reason == iterate.Stagnated {
			break
		}
	}
	if out.Method == "" {
		out.start(&h)
		all = append(all, out.evaluate(&c))
	}
	return out, errors.Join(all...)
}

// start sets the values to the starting values, unless it has done so.
func (r *Repaired) start(h *Hole) {
	if r.u != nil {
		return
	}
	r.u = make([]float64, 0, r.Box.Points())
	for _, idx := range r.Box.Each {
		r.u = append(r.u, h.value(idx))
	}
}

// improve replaces the values by u, of the method of a configuration, if u is better.
func (r *Repaired) improve(h *Hole, c *problem.Config, u []float64, o iterate.Outcome) error {
	// The last residual of a run that was stopped may be that of an earlier iterate.
	next := *r
	next.u = u
	next.Method, next.Sweeps = c.Method.Name, o.Sweeps
	next.Work = cmp.Or(o.Work, float64(o.Sweeps))
	err := next.evaluate(c)
	if err == nil && !(next.Residual <= c.Tolerance) && math.IsNaN(r.Residual) {
		r.start(h)
		err = r.evaluate(c)
	}
	if err == nil && (next.Residual <= c.Tolerance || next.Residual < r.Residual) {
		*r = next
	}
	return err
}

// evaluate evaluates the values.
func (r *Repaired) evaluate(c *problem.Config) error {
	e, err := verify.Measure(c.Problem, r.u, c.Executor)
	r.Residual, r.ErrorBound = e.RelativeResidual, e.ErrorBound
	return err
}

// inner returns the problem on the box that encloses the hole. Points of the box outside the hole are fixed.
func (h *Hole) inner(box problem.Box, points int) *problem.Problem {
	var fixed func([3]int) bool
	if points < box.Points() {
		fixed = func(idx [3]int) bool { return !contains(h.Boxes, idx) }
	}
	return h.Problem.Inner(box, h.value, fixed)
}

// value returns the value at a grid index: the one around the hole if it is known, else the starting value.
func (h *Hole) value(idx [3]int) float64 {
	if !contains(h.Boxes, idx) {
		if v, refused := h.refused[idx]; refused {
			return v
		}
		if v, known := h.Value(idx); known {
			return v
		}
	}
	p, q := h.Problem, h.Problem.At(idx[0], idx[1], idx[2])
	v := 0.0
	switch {
	case h.Start != nil:
		v = h.Start(idx)
	case p.Initial != nil:
		v = p.Initial(q)
	}
	phi, psi := p.Obstacles(q)
	return problem.Clamp(v, phi, psi)
}

// refuse replaces known values beside the hole that are outside the obstacles by the nearest values within them.
func (h *Hole) refuse() {
	h.refused = map[[3]int]float64{}
	p := h.Problem
	for _, layer := range Shell(p, h.Boxes, problem.Box{Hi: p.N}) {
		for _, idx := range layer.Each {
			if contains(h.Boxes, idx) {
				continue
			}
			v, known := h.Value(idx)
			phi, psi := p.Obstacles(p.At(idx[0], idx[1], idx[2]))
			if within := problem.Clamp(v, phi, psi); known && within != v {
				h.refused[idx] = within
			}
		}
	}
}

func (h *Hole) stops() bool { return h.Stop != nil && h.Stop() }

// run runs the peer of a configuration until it is done, and returns its values.
func (h *Hole) run(c problem.Config) ([]float64, iterate.Outcome, error) {
	peer, err := h.New(c)
	if err != nil {
		return nil, iterate.Outcome{}, err
	}
	stopped := false
	for now := time.Duration(0); ; now++ { // the methods measure no times
		if !stopped && h.stops() {
			stopped = true
			peer.Stop(now, iterate.Interrupted)
		}
		switch op := peer.Next(now); op.Kind {
		case iterate.OpRelax:
			peer.Relax(op)
		case iterate.OpDone:
			u := make([]float64, c.Problem.Points())
			peer.Solution(u)
			return u, peer.Outcome(), nil
		default:
			return nil, peer.Outcome(), cmp.Or(op.Err, fmt.Errorf("operation %d of a run with one peer", op.Kind))
		}
	}
}
