package repair_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// valuesOf returns the values of a box of the whole grid.
func valuesOf(p *problem.Problem, u []float64, b problem.Box) (out []float64) {
	for _, idx := range b.Each {
		out = append(out, u[p.Dense(idx)])
	}
	return out
}

// put copies the values of a box into the whole grid.
func put(p *problem.Problem, u []float64, b problem.Box, values []float64) {
	for d, idx := range b.Each {
		u[p.Dense(idx)] = values[d]
	}
}

// exactly returns the solution of a problem.
func exactly(t require.TestingT, p *problem.Problem) []float64 {
	s, err := richardson.SolveSequential(p, problem.InTurn, 1e-13, 0, 0, 0)
	require.NoError(t, err)
	return s.U
}

// split draws which boxes of a partition are lost: at least one is, and at least one is not.
func split(t *rapid.T, part problem.Partition) (lost, held []problem.Box) {
	n := part.Peers()
	some := rapid.IntRange(0, n-1).Draw(t, "lost")
	for r := range n {
		b := part.Box(iterate.Rank(r))
		if r == some || rapid.IntRange(0, 2).Draw(t, "also lost") == 0 && len(held)+n-r > 1 {
			lost = append(lost, b)
		} else {
			held = append(held, b)
		}
	}
	return lost, held
}

// anyRun draws a problem on at least two boxes.
func anyRun(t *rapid.T) (*problem.Problem, problem.Partition) {
	p := solvertest.AnyProblem(t)
	if p.Points() == 1 {
		p.N[0] = 2
	}
	part := solvertest.AnyPartition(t, p)
	if part.Peers() == 1 {
		a := slices.IndexFunc(p.N[:], func(n int) bool { return n > 1 })
		part.Cuts[a] = []int{0, rapid.IntRange(1, p.N[a]-1).Draw(t, "only cut"), p.N[a]}
	}
	return p, part
}

// faces returns what the survivors send of u.
func faces(t require.TestingT, p *problem.Problem, u []float64, lost, held []problem.Box) *repair.Faces {
	f := repair.NewFaces(p, lost)
	for _, b := range held {
		require.NoError(t, f.Add(b, repair.Pack(p, lost, b, valuesOf(p, u, b))))
	}
	return f
}

// furthestFace returns the largest distance of the values around boxes from exact. Unknown ones are those of start.
func furthestFace(p *problem.Problem, f *repair.Faces, boxes []problem.Box, start, exact []float64) float64 {
	worst, whole := 0.0, problem.Box{Hi: p.N}
	for _, b := range repair.Shell(p, boxes, whole) {
		for _, idx := range b.Each {
			v, known := f.Value(idx)
			inside := slices.ContainsFunc(boxes, func(o problem.Box) bool {
				return o.Contains([3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1})
			})
			if inside {
				continue
			}
			if !known {
				v = start[p.Dense(idx)]
			}
			worst = max(worst, math.Abs(v-exact[p.Dense(idx)]))
		}
	}
	return worst
}

// startOf returns the starting vector of a problem.
func startOf(p *problem.Problem) []float64 {
	u := make([]float64, p.Points())
	for d, idx := range (problem.Box{Hi: p.N}).Each {
		q := p.At(idx[0], idx[1], idx[2])
		if p.Initial != nil {
			u[d] = p.Initial(q)
		}
		phi, psi := p.Obstacles(q)
		u[d] = problem.Clamp(u[d], phi, psi)
	}
	return u
}

// slack covers the error of the local solve and of the sequential solution.
const slack = 1e-9

// A repaired value is no further from the solution than the values around the hole, however wrong they are, and
// whichever of them are missing. The repair of an exact vector returns it.
func TestErrorsDoNotExceedThoseAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, part := anyRun(t)
		lost, held := split(t, part)
		require.NoError(t, repair.CheckBound(p, lost))
		exact := exactly(t, p)
		u, noise := slices.Clone(exact), rapid.SampledFrom([]float64{0, 1e-3, 0.5}).Draw(t, "noise")
		for d, idx := range (problem.Box{Hi: p.N}).Each {
			phi, psi := p.Obstacles(p.At(idx[0], idx[1], idx[2]))
			if noise > 0 {
				u[d] = problem.Clamp(u[d]+noise*rapid.Float64Range(-1, 1).Draw(t, "error"), phi, psi)
			}
		}
		if noise > 0 && len(held) > 1 && rapid.Bool().Draw(t, "one is silent") {
			held = held[1:]
		}
		f, start := faces(t, p, u, lost, held), startOf(p)
		for _, hole := range repair.Groups(lost) {
			h := repair.Hole{Problem: p, Boxes: hole, Value: f.Value, New: solver.New}
			copied := rapid.Bool().Draw(t, "from a copy")
			if copied {
				h.Start = func(idx [3]int) float64 { return start[p.Dense(idx)] }
			}
			r, err := repair.Solve(h)
			require.NoError(t, err)
			around, worst := furthestFace(p, f, hole, start, exact), 0.0
			for _, b := range hole {
				worst = max(worst, solvertest.Furthest(valuesOf(p, exact, b), r.Values(b)))
			}
			require.LessOrEqual(t, worst, around+slack, "by %s in %d sweeps, residual %v", r.Method, r.Sweeps, r.Residual)
		}
	})
}

// Holes at a face, an edge, a corner and in the interior, alone and together, in a flow and between two obstacles: the
// repaired vector is a solution of the whole problem.
func TestExactVectorsAreRestored(t *testing.T) {
	flow := solvertest.Membrane([3]int{9, 9, 1}, 2)
	flow.Velocity[0].Value, flow.Velocity[1].Of = 6, func(q problem.Point) float64 { return 5 * q[0] }
	between := solvertest.Membrane([3]int{9, 9, 9}, 3)
	between.Upper = func(q problem.Point) float64 { return 0.5 + 0.05*q[0] }
	between.Source.Of = func(q problem.Point) float64 { return 40 * math.Cos(6*q[0]) }
	for name, c := range map[string]struct {
		p    *problem.Problem
		lost []int // of three boxes an axis
	}{
		"a line":             {solvertest.Membrane([3]int{30, 1, 1}, 1), []int{1}},
		"the end of a line":  {solvertest.Membrane([3]int{30, 1, 1}, 1), []int{2}},
		"inside a plane":     {solvertest.Membrane([3]int{9, 9, 1}, 2), []int{4}},
		"an angle":           {solvertest.Membrane([3]int{9, 9, 1}, 2), []int{0, 1, 3}},
		"a ring":             {solvertest.Membrane([3]int{9, 9, 1}, 2), []int{0, 1, 2, 3, 5, 6, 7, 8}},
		"a flow":             {flow, []int{4, 5}},
		"inside a cube":      {solvertest.Membrane([3]int{9, 9, 9}, 3), []int{13}},
		"corners and a face": {solvertest.Membrane([3]int{9, 9, 9}, 3), []int{0, 26, 4}},
		"two obstacles":      {between, []int{13, 14, 17}},
	} {
		t.Run(name, func(t *testing.T) {
			p, parts := c.p, [3]int{1, 1, 1}
			for a := range p.Dimension {
				parts[a] = 3
			}
			part, err := problem.GridOf(p.N, parts)
			require.NoError(t, err)
			var lost, held []problem.Box
			for r := range part.Peers() {
				if b := part.Box(iterate.Rank(r)); slices.Contains(c.lost, r) {
					lost = append(lost, b)
				} else {
					held = append(held, b)
				}
			}
			exact := exactly(t, p)
			u := slices.Clone(exact)
			f := faces(t, p, u, lost, held)
			for _, hole := range repair.Groups(lost) {
				r, err := repair.Solve(repair.Hole{
					Problem: p, Boxes: hole, Value: f.Value, New: solver.New, Executor: solvertest.Threads{},
				})
				require.NoError(t, err)
				require.Equal(t, problem.Multigrid, r.Method)
				require.GreaterOrEqual(t, r.Work, float64(r.Sweeps), "a cycle takes several sweeps")
				for _, b := range hole {
					put(p, u, b, r.Values(b))
				}
			}
			require.LessOrEqual(t, solvertest.Furthest(exact, u), slack)
			e, err := verify.Measure(p, u, nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-10)
		})
	}
}

// corner returns a problem with a lost box, part of which is in contact, and the solution around it.
func corner(t *testing.T) (repair.Hole, []float64) {
	p := solvertest.Membrane([3]int{9, 9, 1}, 2)
	exact := exactly(t, p)
	return repair.Hole{
		Problem: p, Boxes: []problem.Box{{Hi: [3]int{6, 6, 1}}}, New: solver.New,
		Value: func(idx [3]int) (float64, bool) { return exact[p.Dense(idx)], true },
	}, exact
}

// Values beside a hole that are outside the obstacles are counted, and do not count more than the nearest admissible ones.
func TestValuesOutsideTheObstacles(t *testing.T) {
	h, exact := corner(t)
	good := h.Value
	phi := func(idx [3]int) float64 {
		lower, _ := h.Problem.Obstacles(h.Problem.At(idx[0], idx[1], idx[2]))
		return lower
	}
	bad := map[[3]int]bool{}
	for _, idx := range (problem.Box{Lo: [3]int{6, 1, 0}, Hi: [3]int{7, 4, 1}}).Each {
		bad[idx] = true
	}
	solve := func(below float64) repair.Repaired {
		h.Value = func(idx [3]int) (float64, bool) {
			if bad[idx] {
				return phi(idx) - below, true
			}
			return good(idx)
		}
		res, err := repair.Solve(h)
		require.NoError(t, err)
		return res
	}
	at, below := solve(0), solve(1e6)
	require.Zero(t, at.Refused)
	require.Equal(t, 3, below.Refused)
	box := h.Boxes[0]
	require.Equal(t, at.Values(box), below.Values(box))
	h.Value = good
	res, err := repair.Solve(h)
	require.NoError(t, err)
	require.Zero(t, res.Refused)
	require.InDeltaSlice(t, valuesOf(h.Problem, exact, box), res.Values(box), 1e-6)
}

// counted is a peer that counts the operations after a request for an early end.
type counted struct {
	problem.Peer
	stopped bool
	after   *int
}

func (c *counted) Stop(now time.Duration, why iterate.Reason) {
	c.stopped, *c.after = true, 0
	c.Peer.Stop(now, why)
}

func (c *counted) Relax(op iterate.Op) {
	if c.stopped {
		*c.after++
	}
	c.Peer.Relax(op)
}

// An early end returns the best values so far, after few more operations.
func TestStopKeepsTheBestValues(t *testing.T) {
	h, _ := corner(t)
	operations, peers := 0, 0
	h.New = func(c problem.Config) (problem.Peer, error) {
		peers++
		q, err := solver.New(c)
		return &counted{Peer: q, after: &operations}, err
	}
	last, partial := 1.0, 0
	for after := 0; last > 1e-10; after++ {
		calls := 0
		operations, peers = -1, 0
		h.Stop = func() bool { calls++; return calls > after }
		r, err := repair.Solve(h)
		require.NoError(t, err)
		if after == 0 {
			require.Empty(t, r.Method)
			require.Equal(t, 1.0, r.Residual, "the starting values are the reference vector")
		}
		require.LessOrEqual(t, r.Residual, 1.0)
		require.LessOrEqual(t, operations, 3, "after the request")
		require.Equal(t, min(after, 1), peers)
		require.Equal(t, after > 0 && calls > after, operations >= 0, "the request reaches the peer")
		if last = r.Residual; r.Method != "" && last > 1e-3 {
			partial++
		}
	}
	require.Positive(t, partial, "values of a run that has not converged")
}

// Starting values that a copy provides are kept where they meet the tolerance.
func TestCopyIsTheStart(t *testing.T) {
	h, exact := corner(t)
	h.Tolerance = 1e-3
	h.Start = func(idx [3]int) float64 { return exact[h.Problem.Dense(idx)] }
	r, err := repair.Solve(h)
	require.NoError(t, err)
	require.Zero(t, r.Sweeps)
	require.Equal(t, valuesOf(h.Problem, exact, h.Boxes[0]), r.Values(h.Boxes[0]))
}

// The starting values are the problem's, between the obstacles, inside the hole and where the values around it are
// unknown.
func TestStartingValues(t *testing.T) {
	h, _ := corner(t)
	h.Problem.Initial = func(q problem.Point) float64 { return q[0] - 0.3 }
	h.Boxes = append(h.Boxes, problem.Box{Lo: [3]int{6, 0, 0}, Hi: [3]int{9, 3, 1}})
	h.Value = func([3]int) (float64, bool) { return 0, false }
	h.Stop = func() bool { return true }
	r, err := repair.Solve(h)
	require.NoError(t, err)
	require.Equal(t, problem.Box{Hi: [3]int{9, 6, 1}}, r.Box)
	require.Equal(t, 36+9, r.Points)
	require.Equal(t, valuesOf(h.Problem, startOf(h.Problem), r.Box), r.Values(r.Box))
}

// spoiled is a peer with a wrong answer.
type spoiled struct{ problem.Peer }

func (s spoiled) Solution(u []float64) {
	for i := range u {
		u[i] = 1e6
	}
}

// A method that fails is replaced by the next one. Values that are worse than the starting values are refused.
func TestMethodsThatFail(t *testing.T) {
	h, exact := corner(t)
	broken := errors.New("broken")
	h.New = func(c problem.Config) (problem.Peer, error) {
		if c.Method.Name == problem.Multigrid {
			return nil, broken
		}
		return solver.New(c)
	}
	r, err := repair.Solve(h)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "solving a hole of 36 points by multigrid")
	require.Equal(t, problem.SOR, r.Method)
	require.Positive(t, r.Work)
	require.InDeltaSlice(t, valuesOf(h.Problem, exact, h.Boxes[0]), r.Values(h.Boxes[0]), slack)

	h.New = func(c problem.Config) (problem.Peer, error) {
		q, err := solver.New(c)
		return spoiled{q}, err
	}
	r, err = repair.Solve(h)
	require.NoError(t, err)
	require.Empty(t, r.Method)
	require.Equal(t, valuesOf(h.Problem, startOf(h.Problem), h.Boxes[0]), r.Values(h.Boxes[0]))
}

func TestSolveNeedsAHole(t *testing.T) {
	h, _ := corner(t)
	h.Boxes = nil
	_, err := repair.Solve(h)
	require.ErrorContains(t, err, "a hole needs a box")
	h, _ = corner(t)
	h.Problem = solvertest.Heating(9, 2)
	_, err = repair.Solve(h)
	require.ErrorContains(t, err, "a stationary problem")
}

// The bound is known without a search wherever A is an M-matrix whose rows have no negative sum.
func TestCheckBound(t *testing.T) {
	box := []problem.Box{{Hi: [3]int{2, 2, 2}}, {Lo: [3]int{4, 0, 0}, Hi: [3]int{5, 5, 5}}}
	p := solvertest.Membrane([3]int{5, 5, 5}, 3)
	require.NoError(t, repair.CheckBound(p, box))
	require.ErrorContains(t, repair.CheckBound(solvertest.Windy(5), box), "no M-matrix")
	upwind := solvertest.Windy(5)
	upwind.Upwind = true
	require.NoError(t, repair.CheckBound(upwind, box))
	p.Diffusion.Of = func(q problem.Point) float64 { return 1 + 1e6*math.Round(q[0]) }
	require.NoError(t, repair.CheckBound(p, box))
	p.Reaction.Of = func(q problem.Point) float64 { return 0.5 - q[0] }
	require.NoError(t, repair.CheckBound(p, box[:1]))
	require.ErrorContains(t, repair.CheckBound(p, box), "the sum of a row of A is negative")
}

// SOR, to which a repair falls back, restores a block in a vortex.
func TestRepairBySORInAVortex(t *testing.T) {
	p := solvertest.Membrane([3]int{31, 31, 1}, 2)
	p.Upwind, p.Obstacle = true, nil
	p.Source.Value = 1
	p.Velocity[0].Of = func(q problem.Point) float64 { return 1e4 * (q[1] - 0.5) }
	p.Velocity[1].Of = func(q problem.Point) float64 { return -1e4 * (q[0] - 0.5) }
	exact, err := solver.Solve(t.Context(), p, solver.Options{
		Method: problem.MethodConfig{Name: problem.SOR, Omega: 1}, Tolerance: 1e-12, Threads: 1,
	})
	require.NoError(t, err)
	hole := problem.Box{Lo: [3]int{4, 4, 0}, Hi: [3]int{28, 28, 1}}
	r, err := repair.Solve(repair.Hole{
		Problem: p, Boxes: []problem.Box{hole}, Tolerance: 1e-8,
		Value: func(idx [3]int) (float64, bool) { return exact.U[p.Dense(idx)], true },
		New: func(c problem.Config) (problem.Peer, error) {
			if c.Method.Name == problem.Multigrid {
				return nil, errors.New("no multigrid")
			}
			return solver.New(c)
		},
	})
	require.ErrorContains(t, err, "no multigrid")
	require.Equal(t, problem.SOR, r.Method)
	require.LessOrEqual(t, r.Residual, 1e-9)
	require.Less(t, solvertest.Furthest(r.Values(r.Box), valuesOf(p, exact.U, hole)), 1e-6)
}
