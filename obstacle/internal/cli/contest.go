package cli

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/choice"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/iterate"

	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
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
	if _, err := of.method.config(iterate.Synchronous()); err != nil { // a wrong word is wrong in every row
		return nil, err
	}
	for _, scheme := range all.schemes {
		for _, machines := range all.peers {
			if _, err := choice.Scheme(scheme, nil); err != nil {
				return nil, badInput(err)
			}
			r, err := a.prepare(&of, s, f, ref, scheme, machines)
			if err != nil {
				r = &virtualRun{refused: err, figures: report.Refused(scheme, machines, err)}
			}
			m.rows = append(m.rows, r)
		}
	}
	if !slices.ContainsFunc(m.rows, func(r *virtualRun) bool { return r.refused == nil }) {
		return m, nil
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
	out := slices.DeleteFunc(slices.Clone(m.rows), func(r *virtualRun) bool { return r.refused != nil })
	if m.one != nil {
		out = append(out, m.one)
	}
	return out
}

// judge adds the rows of runs that have been simulated, with their efficiencies.
func (m *contest) judge(c *report.SimulatedComparison) {
	of := report.Reference{Method: m.method, Reference: "not known: no run of it was possible", Alone: nullable.NaN(), Costing: 1}
	if len(m.runs()) == 0 {
		for _, r := range m.rows {
			c.Rows = append(c.Rows, report.SimulatedRow{Method: m.method, Simulated: r.figures})
		}
		c.Refer(of)
		return
	}
	like := slices.IndexFunc(m.rows, func(r *virtualRun) bool { return r.sequential() && r.figures.Converged })
	if like < 0 {
		like = max(slices.IndexFunc(m.rows, (*virtualRun).sequential), 0)
	}
	alone, about := reference(m.one, m.rows[like])
	of.Reference, of.Alone = about, known(alone.Seconds)
	for _, r := range m.rows {
		if r.refused != nil {
			c.Rows = append(c.Rows, report.SimulatedRow{Method: m.method, Simulated: r.figures})
			continue
		}
		r.figures.Against(alone, r.costing())
		if name := r.work.method.Name; name != m.method {
			of.About = fmt.Sprintf("%s out of lockstep is %s, with %s on every machine's own box", m.method, name, m.method)
		}
		of.Costing = max(of.Costing, r.costing())
		c.Rows = append(c.Rows, report.SimulatedRow{Method: m.method, Simulated: r.figures})
	}
	c.Refer(of)
}
