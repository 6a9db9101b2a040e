package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// compile turns the stages of the method into those of this peer: what it does on its
// own boxes, what it exchanges before, and at the root the grids that it has alone.
func (m *multigrid) compile() {
	h := &m.plan.hierarchy
	smoothing := method.DefaultSmoothing(method.Options{Cycle: m.peer.config.Method.Cycle})
	cycle, start := h.Cycle(smoothing, 0), h.Start(smoothing, m.block.Operator.Form == kernel.Variable)
	if h.Coarsest() == 0 {
		cycle, start = append(oneSweepEach(cycle[0]), method.Stage{Kind: method.Measure}), nil
	}
	boundary := m.newGatherBoundary()
	m.nominal = method.NominalWork(h, cycle)
	m.stopStages = m.stopCheck(false)
	m.cycle, m.cycleWork = m.compileStages(cycle, boundary)
	m.start, m.startWork = m.compileStages(start, boundary)
	sweep, _ := m.compileStages(h.Relaxation(1)[:1], boundary) // no look: it is the last stage
	m.fallback = m.compileFallback(sweep, boundary)
	m.opening = boundary.opening
	m.restartCycle = m.restartStages()
	m.awaitReduction = []stage{{kind: stageReduce}}
	m.energy, m.measureFraction, m.takeFraction = nil, nil, nil
	if f := m.ownerLevel(0); f != nil {
		s := f.compute(nil, func(b kernel.Box, i int) { f.Sweep.Energy(&m.changes[i], m.saved, f.Values, b) })
		m.changes = make([]kernel.Sum, pieces(s.steps))
		m.energy = append(m.keepGhosts(f), s)
		scale := f.scales(&m.stepFraction, m.saved)
		m.measureFraction, m.takeFraction = []stage{scale, s}, []stage{scale}
	}
	m.takeFraction = append(m.takeFraction, m.fallback.measure...)
}

// join is where grids that are cut and those of the root meet.
type gatherBoundary struct {
	gather  *gather
	scatter *scatter
	opening []stage
}

// newJoin prepares it, and what brings the ghosts of the start up to date.
func (m *multigrid) newGatherBoundary() gatherBoundary {
	var j gatherBoundary
	if !m.distributed() {
		return j
	}
	p, g := &m.plan, m.peer
	if p.gathered > 0 {
		j.opening = exchangeStages(nil, m.levels[0].faces[:]...)
	}
	part, n, dim := p.parts[p.gathered], p.hierarchy.Grids[p.gathered], p.hierarchy.Dim
	var global []grid
	var globalValues grid
	if m.root() {
		global, globalValues = m.rootLevels[0].gatheredFields(), m.rootLevels[0].values()
	}
	if p.gathered > 0 {
		c := m.levels[p.gathered]
		j.gather = newGather(g, part, c.own, c.gatheredFields(), global)
		j.scatter = newScatter(g, part, n, dim, c.own, 1, c.values(), globalValues)
		return j
	}
	// Nothing can be cut: the root gets the problem itself.
	b := m.block
	u := grid{array: m.u, layout: b.Layout, colour: -1}
	local, fields := []grid{u}, []kernel.Field{b.Source, b.Lower}
	if m.problem.Upper != nil {
		fields = append(fields, b.Upper)
	}
	for _, f := range fields {
		local = append(local, denseGrid(array(b, f), b.Layout.N))
	}
	if m.root() {
		global = append([]grid{globalValues}, m.rootLevels[0].problemFields()...)
	}
	j.gather = newGather(g, part, m.own, local, global)
	j.scatter = newScatter(g, part, n, dim, m.own, 1, u, globalValues)
	j.opening = []stage{{kind: stageGather, gather: j.gather}, {kind: stageScatter, scatter: j.scatter}}
	return j
}

// array is a field as an array.
func array(b *problem.Discretization, f kernel.Field) []float64 {
	if f.Array != nil {
		return f.Array
	}
	out := make([]float64, b.Layout.Points())
	for i := range out {
		out[i] = f.Value
	}
	return out
}

// home is the grid on which this peer does stages of level l; nil: it does none.
func (m *multigrid) ownerLevel(l int) *gridLevel {
	switch {
	case l < m.plan.gathered:
		return m.levels[l]
	case m.root():
		return m.rootLevels[l-m.plan.gathered]
	}
	return nil
}

// translate tells also what the stages cost, in sweeps over the grid.
func (m *multigrid) compileStages(list []method.Stage, j gatherBoundary) (out []stage, work float64) {
	list = method.Fuse(list, func(s method.Stage) bool {
		f := m.ownerLevel(s.Level)
		if s.Kind == method.Measure && m.distributed() || s.Kind == method.Prolong && m.atGatherBoundary(s.Level) {
			return false
		}
		return f != nil && f.faces[0] == nil && f.CanFuse(s)
	})
	checks := stopChecks{m: m}
	for i, s := range list {
		corners := i+1 < len(list) && list[i+1].Level == s.Level-1 &&
			(list[i+1].Kind == method.Prolong || list[i+1].Kind == method.Interpolate)
		out = m.appendStage(out, s, j, corners)
		cost := m.relativeSize(s.Level) * s.Work()
		work += cost
		out = checks.after(out, s, cost, i+1 == len(list))
	}
	return out, work
}

// meets tells whether level l is the last that is cut.
func (m *multigrid) atGatherBoundary(l int) bool { return m.distributed() && l+1 == m.plan.gathered }

// append adds what a stage is to this peer; corners: interpolation follows.
func (m *multigrid) appendStage(out []stage, s method.Stage, j gatherBoundary, corners bool) []stage {
	f := m.ownerLevel(s.Level)
	passes := 1 + s.Sweeps
	if s.Prolongs {
		c, keep := m.ownerLevel(s.Level+1), m.savedFor(s.Level)
		out = append(out, stage{kind: stageDo, do: func() { f.DeferProlong(c.Level, keep) }})
		passes++
	}
	if s.Kind == method.Measure {
		if m.distributed() && m.plan.gathered == 0 {
			out = append(out, stage{kind: stageScatter, scatter: j.scatter})
		}
		if s.Sweeps > 0 {
			rows := m.measureRows // once: a method's value is allocated where it is taken
			return append(out, f.onePass(func() { f.Smooth(s.Sweeps, s.Omega, f.exec, rows) }, passes))
		}
		return append(out, m.residualStage)
	}
	if f == nil {
		return out
	}
	switch s.Kind {
	case method.ReferenceStart, method.ChooseStart:
		return m.guardedStart(out, s.Kind, f)
	case method.Relax, method.Solve:
		if f.faces[0] == nil {
			return append(out, f.onePass(func() { f.Smooth(s.Sweeps, s.Omega, f.exec, nil) }, passes-1))
		}
		return f.relax(out, s.Sweeps, s.Omega, corners)
	}
	atBoundary := m.atGatherBoundary(s.Level)
	c := m.coarseLevel(s.Level, atBoundary)
	switch s.Kind {
	case method.Restrict:
		if f.Residual != nil {
			out = append(out, f.compute(nil, func(b kernel.Box, _ int) { f.Defect(b) }))
			out = append(exchangeStages(out, f.residual...), f.scanContacts())
		} else {
			out = append(out, f.onePass(func() { f.SmoothRestrict(s.Sweeps, s.Omega, f.exec) }, passes))
		}
		out = append(out, c.compute(nil, func(b kernel.Box, _ int) { f.Restrict(c.Level, b) }))
		to, scan := c, m.distributed() || m.plan.hierarchy.Dim == 1 // rows are cut
		if atBoundary {
			if out = append(out, stage{kind: stageGather, gather: j.gather}); !m.root() {
				return out
			}
			to = m.rootLevels[0]
			out = append(out, stage{kind: stageDo, do: func() { clear(to.Values) }})
		}
		out = append(out, stage{kind: stageDo, do: func() { to.ClearGhosts(); to.UpdateTruncated(scan) }})
	case method.SampleProblem:
		out = m.data(out, s.Level, f, c)
		if atBoundary {
			out = append(out, stage{kind: stageGather, gather: j.gather})
			if m.root() {
				out = append(out, stage{kind: stageDo, do: m.rootLevels[0].ClearTruncation}, m.boundary(m.plan.gathered, m.rootLevels[0]))
			}
		}
	case method.Prolong, method.Interpolate:
		if atBoundary {
			out = append(out, stage{kind: stageScatter, scatter: j.scatter})
		}
		if s.Kind == method.Prolong {
			keep := m.savedFor(s.Level)
			if s.Level == 0 && keep == nil {
				out = append(out, f.copies(m.saved, f.Values)) // ghosts, too, as the neighbours keep them
			}
			return f.correctAndSend(out, func(b kernel.Box, _ int) { f.Prolong(c.Level, keep, b) })
		}
		out = f.correctAndSend(out, func(b kernel.Box, _ int) { f.Interpolate(c.Level, b) })
		out = append(out, stage{kind: stageDo, do: c.ClearGhosts})
		if atBoundary && m.root() {
			out = append(out, stage{kind: stageDo, do: m.rootLevels[0].ClearGhosts})
		}
	}
	return out
}

// kept is where the correction of grid l keeps what it corrects; nil: nowhere.
func (m *multigrid) savedFor(l int) []float64 {
	if f := m.ownerLevel(l); l > 0 || f.faces[0] != nil {
		return nil
	}
	return m.saved
}

// below is the next coarser grid of level l's, where this peer writes what it restricts.
func (m *multigrid) coarseLevel(l int, meets bool) *gridLevel {
	if meets {
		return m.levels[l+1]
	}
	return m.ownerLevel(l + 1)
}

// data are the stages that make the problem itself on a coarser grid, as package method
// does on one block.
func (m *multigrid) data(out []stage, l int, f, c *gridLevel) []stage {
	n := m.plan.hierarchy.Grids[l+1]
	if m.problem.Evolution == nil && !m.plan.hierarchy.Nested(l) {
		out = append(out, stage{kind: stageDo, do: func() {
			c.ClearTruncation()
			m.fail(m.problem.CoarseFieldsIn(n, c.window, c.Source.Array, c.Lower.Array, c.Upper.Array))
		}})
	} else {
		out = append(out, stage{kind: stageDo, do: c.ClearTruncation}, c.compute(nil, func(b kernel.Box, _ int) { f.SampleProblem(c.Level, b) }))
	}
	return append(out, m.boundary(l+1, c))
}

// boundary is the stage that evaluates the boundary data of a coarser grid.
func (m *multigrid) boundary(l int, c *gridLevel) stage {
	n := m.plan.hierarchy.Grids[l]
	return stage{kind: stageDo, do: func() { m.fail(m.problem.CoarseBoundaryIn(n, c.window, c.Part.Layout, c.Values)) }}
}

func (m *multigrid) fail(err error) {
	if err != nil {
		m.peer.fault = err
	}
}

// keepGhosts is what the values kept of grid 0 lack: where nobody shares it only own points
// were kept, and the ghosts are boundary data.
func (m *multigrid) keepGhosts(f *gridLevel) []stage {
	if f.faces[0] != nil {
		return nil
	}
	return []stage{{kind: stageDo, do: func() { method.CopyGhosts(f.Part.Layout, m.saved, f.Values) }}}
}

// copies is a stage that copies padded arrays of a grid, ghosts and all.
func (g *gridLevel) copies(dst, src []float64) stage {
	share := func(i int) {
		lo, hi := i*len(src)/problem.MaxChunks, (i+1)*len(src)/problem.MaxChunks
		copy(dst[lo:hi], src[lo:hi])
	}
	return stage{kind: stageCompute, steps: []problem.Step{{Box: g.own, Chunks: 1}}, runAll: func() { g.exec.For(problem.MaxChunks, share) }}
}

// scales is a stage that takes a part of the way from the values kept, ghosts and all: what
// the neighbours do there.
func (g *gridLevel) scales(part *float64, keep []float64) stage {
	share := func(i int) {
		lo, hi := i*len(keep)/problem.MaxChunks, (i+1)*len(keep)/problem.MaxChunks
		method.ScalePoints(g.Values[lo:hi], keep[lo:hi], *part)
	}
	return stage{kind: stageCompute, steps: []problem.Step{{Box: g.own, Chunks: 1}}, runAll: func() { g.exec.For(problem.MaxChunks, share) }}
}

// back is what is done instead of a cycle that was not accepted: the values kept, sweeps
// from there, and a measurement.
type fallback struct{ restore, sweep, measure []stage }

func (m *multigrid) compileFallback(sweep []stage, j gatherBoundary) fallback {
	b := fallback{sweep: sweep}
	if f := m.ownerLevel(0); f != nil {
		b.restore = append(m.keepGhosts(f), f.copies(f.Values, m.saved))
	}
	b.measure = m.appendStage(nil, method.Stage{Kind: method.Measure}, j, false)
	return b
}
