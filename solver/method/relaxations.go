package method

// relaxInstead restores the values before the coarse correction, relaxes as often as the safeguard requires and
// BudgetSpent allows, and measures the residual. It returns work increased by the work of these stages.
func (m *Multigrid) relaxInstead(work float64) float64 {
	m.parallel.run(m.levels[0].Part.Layout.Interior(), m.funcs.restore)
	sweeps := 0
	for sweeps < m.safeguard.Sweeps() && (m.BudgetSpent == nil || !m.BudgetSpent(m.relaxations+sweeps)) {
		sweeps++
	}
	m.relaxations += sweeps
	if sweeps > 0 {
		work += m.run(Stage{Kind: Relax, Sweeps: sweeps, Omega: 1})
	}
	work += m.run(Stage{Kind: Measure})
	m.safeguard.AcceptRelaxed(m.residual)
	return work
}

// Relaxations returns the number of relaxations executed instead of corrections.
func (m *Multigrid) Relaxations() int { return m.relaxations }

// NominalWork returns the cost of an accepted cycle in sweeps over the block.
func (m *Multigrid) NominalWork() float64 {
	if len(m.levels) == 1 {
		return NominalWork(&m.hierarchy, []Stage{m.hierarchy.solve(0), {Kind: Measure}})
	}
	return NominalWork(&m.hierarchy, m.hierarchy.Cycle(DefaultSmoothing(m.options), 0))
}

// NominalWork returns the cost of stages in sweeps over grid 0, before any are fused.
func NominalWork(h *Hierarchy, stages []Stage) float64 {
	work := 0.0
	for _, s := range stages {
		work += s.Work() * float64(points(h.Grids[s.Level])) / float64(points(h.Grids[0]))
	}
	return work
}
