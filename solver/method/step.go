package method

// takeBack brings back the values before a correction, and owes relaxations instead: as many
// as the safeguard asks for and Spent allows.
func (m *Multigrid) takeBack() {
	m.team.each(m.levels[0].Part.Layout.Interior(), m.do.restore)
	for m.owed = 0; m.owed < m.guard.Sweeps() && (m.BudgetSpent == nil || !m.BudgetSpent(m.relaxations+m.owed)); {
		m.owed++
	}
	m.relaxations += m.owed
}

// relax does sweeps of what was owed.
func (m *Multigrid) relax(sweeps int) float64 {
	if sweeps == 0 {
		return 0
	}
	return m.run(Stage{Kind: Relax, Sweeps: sweeps, Omega: 1})
}

// relaxed measures at the end.
func (m *Multigrid) relaxed() float64 {
	work := m.run(Stage{Kind: Measure})
	m.guard.AcceptRelaxed(m.residual)
	return work
}

// Relaxations is how many were done instead of corrections.
func (m *Multigrid) Relaxations() int { return m.relaxations }

// Nominal is what a cycle costs that is accepted, in sweeps over the block.
func (m *Multigrid) NominalWork() float64 {
	if len(m.levels) == 1 {
		return NominalWork(&m.hierarchy, []Stage{m.hierarchy.solve(0), {Kind: Measure}})
	}
	return NominalWork(&m.hierarchy, m.hierarchy.Cycle(DefaultSmoothing(m.options), 0))
}

// Nominal is what stages cost, in sweeps over grid 0, before any are fused.
func NominalWork(h *Hierarchy, stages []Stage) float64 {
	work := 0.0
	for _, s := range stages {
		work += s.Work() * float64(volume(h.Grids[s.Level])) / float64(volume(h.Grids[0]))
	}
	return work
}
