package cli

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/report"
	clusterfile "github.com/p2pdc/p2pdc/internal/cluster/file"
)

// contest is what one method does in a simulated comparison: every scheme on every number
// of machines, against one machine with that method.
type contest struct {
	method string // as the user said it: sor out of lockstep is Schwarz with it
	rows   []*virtualRun
	one    *virtualRun // the run of one machine; nil: t(1) follows from a row
}

// contest prepares the runs of a method; every error is bad input.
func (a *app) contest(q *request, s *simulation, f *clusterfile.File, ref, method string, all choices) (*contest, error) {
	of := *q
	of.method.name = method
	m := &contest{method: method}
	for _, scheme := range all.schemes {
		for _, machines := range all.peers {
			r, err := a.prepare(&of, s, f, ref, scheme, machines)
			if err != nil {
				return nil, err
			}
			m.rows = append(m.rows, r)
		}
	}
	if !slices.ContainsFunc(m.rows, (*virtualRun).sequential) {
		one, err := a.alone(&of, s, f, ref)
		if err != nil {
			return nil, err
		}
		m.one = one
	}
	if len(all.methods) > 1 {
		for _, r := range m.runs() {
			r.label = method + ", "
		}
	}
	return m, nil
}

// runs are all that are to be simulated.
func (m *contest) runs() []*virtualRun {
	if m.one == nil {
		return m.rows
	}
	return append(slices.Clone(m.rows), m.one)
}

// judge adds the rows of runs that have been simulated, with their efficiencies.
func (m *contest) judge(c *report.SimulatedComparison) {
	like := slices.IndexFunc(m.rows, func(r *virtualRun) bool { return r.sequential() && r.figures.Converged })
	if like < 0 {
		like = max(slices.IndexFunc(m.rows, (*virtualRun).sequential), 0)
	}
	alone, about := reference(m.one, m.rows[like])
	of := report.Reference{Method: m.method, Reference: about, Alone: known(alone.Seconds), Costing: 1}
	for _, r := range m.rows {
		r.figures.Against(alone, r.costing())
		if name := r.work.method.Name; name != m.method {
			of.About = fmt.Sprintf("%s out of lockstep is %s, with %s on every machine's own box", m.method, name, m.method)
		}
		of.Costing = max(of.Costing, r.costing())
		c.Rows = append(c.Rows, report.SimulatedRow{Method: m.method, Simulated: r.figures})
	}
	c.Refer(of)
}
