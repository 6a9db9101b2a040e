package richardson

import (
	"cmp"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// tiledPass is a pass of several sweeps in time tiles. A peer without neighbours in lockstep may make one: it
// reads only its own values, and the rule of termination knows when it needs the next iterate. A pass half
// done has overwritten parts of the iterate that it began from.
type tiledPass struct {
	builtFor *kernel.Sweep // what tiles was made for
	tiles    *kernel.TimeTiles
	steps    []problem.SweepStep
	sweeps   int // of the group in progress; 0: there is none

	begunAt   time.Duration
	sweepTime time.Duration // that a sweep of the last group took; 0: not known
}

const (
	// maxTiledTime bounds the time of a pass. A pass cannot be left half done, so this is also the
	// longest delay of an early end.
	maxTiledTime = 250 * time.Millisecond
	// firstTiledPoints bounds the points relaxed by the first pass, before the time of a sweep is known.
	firstTiledPoints = 1 << 26
)

// maxSweeps returns the largest number of sweeps of a pass.
func (g *tiledPass) maxSweeps(points int) iterate.Iteration {
	if g.sweepTime > 0 {
		return max(1, iterate.Iteration(maxTiledTime/g.sweepTime))
	}
	return max(1, iterate.Iteration(firstTiledPoints/points))
}

// begin plans a pass. It returns false if single sweeps are as good.
func (g *tiledPass) begin(w *worker) bool {
	if len(w.faces) > 0 || w.config.Order != problem.Jacobi {
		return false
	}
	if g.builtFor != w.stepper {
		t := w.config.Tiling
		t.Sweeps = cmp.Or(t.Sweeps, w.config.Method.SweepsPerPass)
		g.builtFor, g.tiles = w.stepper, kernel.NewTimeTiles(w.stepper, t)
	}
	most, left := min(iterate.Iteration(g.tiles.Sweeps()), g.maxSweeps(w.block.Layout.Points())), w.Rule.FreeSweeps()
	if most < 2 || left < 2 {
		return false
	}
	g.begunAt = w.Now
	groups := (left + most - 1) / most
	g.sweeps = int((left + groups - 1) / groups)
	g.steps = g.steps[:0]
	for n := range g.tiles.Parts(g.sweeps) {
		g.steps = append(g.steps, problem.SweepStep{Part: n, Points: g.tiles.Points(n, g.sweeps)})
	}
	return true
}

func (g *tiledPass) relax(w *worker, part int) {
	g.tiles.Relax(part, g.sweeps, w.cur, w.next, w.exec)
}

// finish makes the result of the pass the current iterate.
func (g *tiledPass) finish(w *worker) {
	if g.sweeps%2 == 1 {
		w.cur, w.next = w.next, w.cur
	}
	w.Iterate += iterate.Iteration(g.sweeps)
	g.sweepTime = (w.Now - g.begunAt) / time.Duration(g.sweeps)
	g.sweeps = 0
}

// complete makes the rest of a tiled pass, so that the current array holds one iterate.
func (p *pass) complete() {
	if p.tiled.sweeps == 0 {
		return
	}
	for ; p.at < len(p.steps); p.at++ {
		p.tiled.relax(p.w, p.steps[p.at].Part)
	}
	p.finish()
}
