package multilevel

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// cycleStages are the stages of multigrid on this peer.
type cycleStages struct {
	start, cycle         []stage
	startWork, cycleWork float64 // in sweeps over grid 0
	nominal              float64 // work of a cycle, in relaxations
	restartCycle         []stage // a cycle that begins with the reference vector
	energy               []stage // measures the change of the energy into changes
	measureFraction      []stage // the same after stepFraction of the step
	takeFraction         []stage // takes stepFraction of the step and measures the residual
	restore              []stage // restores the saved values
	relaxation           []stage
	measureRelaxed       []stage
	stopStages           []stage // check for an early end between two relaxations
	awaitReduction       []stage
	opened               []stage      // see opening
	changes              []kernel.Sum // one per chunk
	gather               *gather
	scatter              *scatter
}

// compile translates the stages of the method into those of this peer: computations on its own boxes, the
// exchanges before them, and at the root the grids that only it holds.
func (m *multigrid) compile() {
	h, name := &m.plan.hierarchy, m.peer.config.Method.Cycle
	cycle, start := h.Cycle(name), h.Start(name, m.block.Operator.Form == kernel.Variable)
	if h.Coarsest() == 0 {
		cycle, start = append(oneSweepEach(cycle[0]), method.Stage{Kind: method.Measure}), nil
	}
	c := &m.cycleStages
	*c = cycleStages{
		nominal: method.NominalWork(h, cycle), stopStages: m.stopCheck(false),
		awaitReduction: []stage{{kind: stageReduce}},
	}
	c.opened = m.compileGather()
	c.cycle, c.cycleWork = m.compileStages(cycle)
	c.start, c.startWork = m.compileStages(start)
	// Without a check for an early end: the sweep is the last stage.
	c.relaxation, _ = m.compileStages([]method.Stage{{Kind: method.Relax, Sweeps: 1, Omega: 1}})
	c.measureRelaxed = m.appendStage(nil, method.Stage{Kind: method.Measure}, false)
	c.restartCycle = m.restartStages()
	if f := m.ownerLevel(0); f != nil {
		var keep []stage
		if f.faces[0] == nil { // only own points were saved: the ghosts are boundary data
			keep = []stage{{kind: stageDo, do: func() { method.CopyGhosts(f.Part.Layout, m.saved, f.Values) }}}
		}
		restore := f.eachChunk(func(lo, hi int) { copy(f.Values[lo:hi], m.saved[lo:hi]) })
		c.restore = slices.Concat(keep, []stage{restore})
		measure := f.compute(nil, func(b kernel.Box, i int) { f.Sweep.Energy(&c.changes[i], m.saved, f.Values, b) })
		c.changes = make([]kernel.Sum, pieces(measure.steps))
		c.energy = slices.Concat(keep, []stage{measure})
		// The ghosts move as those of the neighbours do.
		scale := f.eachChunk(func(lo, hi int) { method.ScalePoints(f.Values[lo:hi], m.saved[lo:hi], m.stepFraction) })
		c.measureFraction, c.takeFraction = []stage{scale, measure}, []stage{scale}
	}
	c.takeFraction = append(c.takeFraction, c.measureRelaxed...)
}

// compileGather prepares the gather and the scatter between the distributed grids and those of the root. It returns
// the stages that update the ghosts of the starting values.
func (m *multigrid) compileGather() []stage {
	if !m.distributed() {
		return nil
	}
	l, b := m.plan.gathered, m.block
	var values grid // of the whole grid
	var global []grid
	if m.root() {
		values, global = m.rootLevels[0].values(), m.rootLevels[0].gatheredFields()
	}
	if l > 0 {
		c := m.levels[l]
		m.gather = newGather(m, c.own, c.gatheredFields(), global)
		m.scatter = newScatter(m, c.own, c.values(), values)
		return exchangeStages(nil, m.levels[0].faces[:]...)
	}
	// Nothing can be cut: the root gets the problem itself.
	u := grid{array: m.u, layout: b.Layout, colour: -1}
	local, fields := []grid{u}, []kernel.Field{b.Source, b.Lower}
	if m.problem.Upper != nil {
		fields = append(fields, b.Upper)
	}
	for _, f := range fields {
		local = append(local, denseGrid(problem.FieldArray(f, b.Layout.Points()), b.Layout.N))
	}
	if m.root() {
		global = append([]grid{values}, m.rootLevels[0].problemFields()...)
	}
	m.gather = newGather(m, m.own, local, global)
	m.scatter = newScatter(m, m.own, u, values)
	return []stage{{kind: stageTransfer, transfer: m.gather}, {kind: stageTransfer, transfer: m.scatter}}
}

// ownerLevel returns the grid on which this peer runs stages of level l, or nil if it runs none.
func (m *multigrid) ownerLevel(l int) *gridLevel {
	switch {
	case l < m.plan.gathered:
		return m.levels[l]
	case m.root():
		return m.rootLevels[l-m.plan.gathered]
	}
	return nil
}

// compileStages translates stages and returns their work in sweeps over the grid.
func (m *multigrid) compileStages(list []method.Stage) (out []stage, work float64) {
	work = method.NominalWork(&m.plan.hierarchy, list) // before peers fuse stages differently: it is the same on all
	list = method.Fuse(list, func(s method.Stage) bool {
		f := m.ownerLevel(s.Level)
		if s.Kind == method.Measure && m.distributed() || s.Kind == method.Prolong && m.atGatherBoundary(s.Level) {
			return false
		}
		return f != nil && f.faces[0] == nil && f.CanFuse(s)
	})
	checks, grids := stopChecks{m: m}, m.plan.hierarchy.Grids
	for i, s := range list {
		corners := i+1 < len(list) && list[i+1].Level == s.Level-1 &&
			(list[i+1].Kind == method.Prolong || list[i+1].Kind == method.Interpolate)
		out = m.appendStage(out, s, corners)
		cost := float64(boxPoints(grids[s.Level])) / float64(boxPoints(grids[0])) * s.Work()
		out = checks.after(out, s, cost, i+1 == len(list))
	}
	return out, work
}

// atGatherBoundary reports whether level l is the last distributed one.
func (m *multigrid) atGatherBoundary(l int) bool { return m.distributed() && l+1 == m.plan.gathered }

// appendStage appends this peer's part of a stage. corners: interpolation follows.
func (m *multigrid) appendStage(out []stage, s method.Stage, corners bool) []stage {
	f := m.ownerLevel(s.Level)
	passes := 1 + s.Sweeps
	if s.Prolongs {
		c, keep := m.ownerLevel(s.Level+1), m.savedFor(s.Level)
		out = append(out, stage{kind: stageDo, do: func() { f.DeferProlong(c.Level, keep) }})
		passes++
	}
	if s.Kind == method.Measure {
		if m.distributed() && m.plan.gathered == 0 {
			out = append(out, stage{kind: stageTransfer, transfer: m.scatter})
		}
		if s.Sweeps > 0 {
			rows := m.measureRows // once: each evaluation of a method value allocates
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
	case method.Solve: // its level is at the root, or on the only peer
		return append(out, f.onePass(func() { f.Solve(s, f.exec) }, passes-1))
	case method.Relax:
		if f.faces[0] == nil {
			return append(out, f.onePass(func() { f.Smooth(s.Sweeps, s.Omega, f.exec, nil) }, passes-1))
		}
		return f.relax(out, s.Sweeps, s.Omega, corners)
	}
	atBoundary := m.atGatherBoundary(s.Level)
	c := m.ownerLevel(s.Level + 1)
	if atBoundary {
		c = m.levels[s.Level+1] // the part of the gathered grid that this peer computes
	}
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
			if out = append(out, stage{kind: stageTransfer, transfer: m.gather}); !m.root() {
				return out
			}
			to = m.rootLevels[0]
			out = append(out, stage{kind: stageDo, do: func() { clear(to.Values) }})
		}
		out = append(out, stage{kind: stageDo, do: func() { to.ClearGhosts(); to.UpdateTruncated(scan) }})
	case method.SampleProblem:
		out = m.data(out, s.Level, f, c)
		if atBoundary {
			out = append(out, stage{kind: stageTransfer, transfer: m.gather})
			if m.root() {
				r := m.rootLevels[0]
				out = append(out, stage{kind: stageDo, do: r.ClearTruncation}, m.boundary(m.plan.gathered, r))
			}
		}
	case method.Prolong, method.Interpolate:
		if atBoundary {
			out = append(out, stage{kind: stageTransfer, transfer: m.scatter})
		}
		if s.Kind == method.Prolong {
			keep := m.savedFor(s.Level)
			if s.Level == 0 && keep == nil {
				// with ghosts, as the neighbours save them
				out = append(out, f.eachChunk(func(lo, hi int) { copy(m.saved[lo:hi], f.Values[lo:hi]) }))
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

// savedFor returns the array in which the correction of grid l saves what it corrects, or nil.
func (m *multigrid) savedFor(l int) []float64 {
	if f := m.ownerLevel(l); l > 0 || f.faces[0] != nil {
		return nil
	}
	return m.saved
}

// data are the stages that make the problem itself on a coarser grid, as package method
// does on one block.
func (m *multigrid) data(out []stage, l int, f, c *gridLevel) []stage {
	fields := c.compute(nil, func(b kernel.Box, _ int) { f.SampleProblem(c.Level, b) })
	if h := &m.plan.hierarchy; m.problem.Evolution == nil && !h.Nested(l) {
		fields = stage{kind: stageDo, do: func() {
			m.fail(m.problem.CoarseFieldsIn(h.Grids[l+1], c.window, c.Source.Array, c.Lower.Array, c.Upper.Array))
		}}
	}
	out = append(out, stage{kind: stageDo, do: c.ClearTruncation}, fields)
	return append(out, m.boundary(l+1, c))
}

// boundary returns the stage that evaluates the boundary data of a coarser grid.
func (m *multigrid) boundary(l int, c *gridLevel) stage {
	n := m.plan.hierarchy.Grids[l]
	return stage{kind: stageDo, do: func() { m.fail(m.problem.CoarseBoundaryIn(n, c.window, c.Part.Layout, c.Values)) }}
}

func (m *multigrid) fail(err error) {
	if err != nil {
		m.peer.fault = err
	}
}

// eachChunk returns a stage that calls f for chunks of a padded array of a grid, ghosts included.
func (g *gridLevel) eachChunk(f func(lo, hi int)) stage {
	chunk := func(i int) {
		n := len(g.Values)
		f(i*n/problem.MaxChunks, (i+1)*n/problem.MaxChunks)
	}
	return g.onePass(func() { g.exec.For(problem.MaxChunks, chunk) }, 0)
}
