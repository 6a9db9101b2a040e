package launch

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Bounds of the work to fill a hole: the time that the run has taken, or leastFill if that is longer, and a number of
// cycles or sweeps.
const (
	leastFill  = 5 * time.Second
	fillCycles = 100
	fillSweeps = 5000
)

// A hole is solved to fillTolerance times the tolerance of the run, but not below leastFillTol, where round-off
// dominates.
const (
	fillTolerance = 0.1
	leastFillTol  = 1e-12
)

// fill solves the problem on each hole of the answer with the surrounding values as boundary data. Adjacent holes are
// solved together. If no block arrived, starting values remain.
func (r *run) fill(ctx context.Context, o *Outcome) {
	points := 0
	for _, b := range r.holes {
		points += b.Points()
	}
	if points == 0 || points == r.Problem.Points() {
		return
	}
	deadline := time.Now().Add(max(time.Since(r.started), leastFill))
	for _, hole := range connected(r.holes) {
		if f, ok := r.fillOne(ctx, hole, deadline); ok {
			o.Filled = append(o.Filled, f)
			r.Log.Info().Str("method", f.Method).Int("points", f.Points).Float64("residual", float64(f.Residual)).
				Msg("filled the block of a lost peer")
		}
	}
}

// connected groups boxes that share faces, directly or through others.
func connected(boxes []problem.Box) (groups [][]problem.Box) {
	for _, b := range boxes {
		group := []problem.Box{b}
		groups = slices.DeleteFunc(groups, func(g []problem.Box) bool {
			is := slices.ContainsFunc(g, func(other problem.Box) bool { return shareFace(b, other) })
			if is {
				group = append(group, g...)
			}
			return is
		})
		groups = append(groups, group)
	}
	return groups
}

// shareFace reports whether two boxes without a common point share a face.
func shareFace(a, b problem.Box) bool {
	beside := 0
	for x := range 3 {
		if a.Hi[x] < b.Lo[x] || b.Hi[x] < a.Lo[x] {
			return false
		}
		if a.Hi[x] == b.Lo[x] || b.Hi[x] == a.Lo[x] {
			beside++
		}
	}
	return beside == 1
}

// fillOne solves on one hole and reports whether the residual is smaller than that of the starting values, which is 1
// relative to itself.
func (r *run) fillOne(ctx context.Context, hole []problem.Box, deadline time.Time) (Filled, bool) {
	begin := time.Now()
	around, f := hole[0], Filled{}
	for _, b := range hole {
		f.Points += b.Points()
		for a := range 3 {
			around.Lo[a], around.Hi[a] = min(around.Lo[a], b.Lo[a]), max(around.Hi[a], b.Hi[a])
		}
	}
	for a := range r.Problem.Dimension {
		f.Box = append(f.Box, [2]int{around.Lo[a], around.Hi[a]})
	}
	var fixed func(int) bool
	if f.Points < around.Points() {
		fixed = func(i int) bool { return !contain(hole, r.Problem.N, i) }
	}
	p := r.Problem.Inner(around, r.vector(), fixed)
	best := 1.0
	var u []float64
	for _, m := range []problem.MethodConfig{{Name: problem.Multigrid}, {Name: problem.SOR}} {
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			break
		}
		v, res, err := r.solve(ctx, p, m, around, left)
		if err != nil {
			r.Log.Warn().Err(err).Str("method", m.Name).Msg("cannot fill the block of a lost peer")
			continue
		}
		// The last residual of a run that its time ended may be that of an earlier iterate.
		e, err := verify.Measure(p, v, nil)
		if err != nil {
			r.Log.Warn().Err(err).Str("method", m.Name).Msg("cannot evaluate the filled block of a lost peer")
			continue
		}
		if e.RelativeResidual < best {
			best, u = e.RelativeResidual, v
			f.Method, f.Iterates, f.Residual = m.Name, uint64(res.Sweeps), nullable.Number(best)
		}
		if res.Reason == iterate.Converged || res.Reason == iterate.Stagnated {
			break
		}
	}
	if u == nil {
		return f, false
	}
	blocks.Copy(r.vector(), r.Problem.N, around, u)
	f.Seconds = time.Since(begin).Seconds()
	return f, true
}

// contain reports whether one of the boxes contains the point of that dense index in a grid of n points.
func contain(boxes []problem.Box, n [3]int, dense int) bool {
	at := [3]int{dense % n[0], dense / n[0] % n[1], dense / (n[0] * n[1])}
	return slices.ContainsFunc(boxes, func(b problem.Box) bool { return b.Contains(at) })
}

// solve solves p, the problem on a box, with one peer in this process. It does not validate p as solver.Solve does: the
// values around the box, which are boundary data here, may lie below the obstacle.
func (r *run) solve(
	ctx context.Context, p *problem.Problem, m problem.MethodConfig, box problem.Box, limit time.Duration,
) ([]float64, runner.Result, error) {
	most := iterate.Iteration(fillCycles)
	if m.Name == problem.SOR {
		most = fillSweeps
	}
	config := problem.Config{
		Problem: p, Partition: problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}},
		Scheme: iterate.Synchronous(), Method: m,
		Tolerance: max(fillTolerance*r.Tolerance, leastFillTol), MaxSweeps: most,
	}
	if r.Initial != nil {
		config.Initial = blocks.Extract(r.Initial, r.Problem.N, box)
	}
	var stop <-chan struct{}
	if !r.stopping {
		stop = r.Interrupt
	}
	one, err := runner.New(ctx, runner.Config{
		New:    solver.New,
		Solver: config, Threads: runtime.GOMAXPROCS(0), MaxTime: limit, Stop: stop, Log: zerolog.Nop(),
	})
	if err != nil {
		return nil, runner.Result{}, err
	}
	defer one.Close()
	res, err := one.Run(ctx)
	if err != nil {
		return nil, res, err
	}
	u := make([]float64, box.Points())
	one.Solution(u)
	return u, res, nil
}
