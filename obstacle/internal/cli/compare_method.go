package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// methodComparison holds the simulated runs of one method: every scheme on every number of machines, and one machine.
type methodComparison struct {
	method string // as requested; out of lockstep, sor means Schwarz with sor
	rows   []*virtualRun
	one    *virtualRun // the run of one machine; nil if t(1) follows from a row

	coarse nullable.Number // t(1) on the coarser stand-in, once the runs are summarized
}

// compareMethod prepares the runs of a method. Its errors are bad input.
func (a *app) compareMethod(q *request, s *simulation, f *clusterfile.File, ref, method string, all selection) (
	*methodComparison, error,
) {
	of := *q
	of.method.Name = method
	m := &methodComparison{method: method}
	if _, err := of.method.config(iterate.Synchronous(), a.catalog); err != nil {
		return nil, err
	}
	for _, scheme := range all.schemes {
		for _, machines := range all.peers {
			if _, err := a.catalog.Scheme(scheme, nil); err != nil {
				return nil, badInput(err)
			}
			r, err := a.prepare(&of, s, f, ref, scheme, machines)
			if err != nil {
				r = &virtualRun{refused: err, figures: report.Refused(scheme, machines, err)}
			} else {
				a.coarser(r, func(side int) (*virtualRun, error) {
					return a.prepare(&of, s.with(side), f, ref, scheme, machines)
				})
			}
			m.rows = append(m.rows, r)
		}
	}
	if !slices.ContainsFunc(m.rows, func(r *virtualRun) bool { return r.refused == nil }) {
		return m, nil
	}
	host, err := referenceOf(f, all.peers), error(nil)
	if !slices.ContainsFunc(m.rows, (*virtualRun).sequential) {
		if m.one, err = a.single(&of, s, f, ref, host); err != nil {
			return nil, err
		}
		a.coarser(m.one, func(side int) (*virtualRun, error) { return a.single(&of, s.with(side), f, ref, host) })
	}
	for _, r := range m.runs() {
		r.alone = host
	}
	if len(all.methods) > 1 {
		for _, r := range m.runs() {
			r.label = method + ", " + r.label
		}
	}
	return m, nil
}

func (m *methodComparison) runs() []*virtualRun {
	out := slices.DeleteFunc(slices.Clone(m.rows), func(r *virtualRun) bool { return r.refused != nil })
	if m.one != nil {
		out = append(out, m.one)
	}
	return withCoarser(out)
}

// addRows adds the rows of the simulated runs with their efficiencies.
func (m *methodComparison) addRows(c *report.SimulatedComparison) {
	rows, of := m.summarize(&c.Subject)
	c.Rows = append(c.Rows, rows...)
	c.Refer(of)
}

// summarize returns the rows, and their reference.
func (m *methodComparison) summarize(c *report.Subject) (rows []report.SimulatedRow, of report.Reference) {
	of = report.Reference{
		Method: m.method, Reference: "unknown: every run was refused", Alone: nullable.NaN(),
	}
	var alone, coarse report.Alone
	if len(m.runs()) > 0 {
		like := slices.IndexFunc(m.rows, func(r *virtualRun) bool { return r.sequential() && r.figures.Converged })
		if like < 0 {
			like = max(slices.IndexFunc(m.rows, (*virtualRun).sequential), 0)
		}
		alone, of.Reference = reference(m.one, m.rows[like])
		if c := cmp.Or(onCoarser(m.one), m.rows[like].coarser); c != nil {
			coarse, _ = reference(onCoarser(m.one), c)
		}
		of.Alone, m.coarse = nullable.Time(float64(alone.Seconds)), nullable.Time(float64(coarse.Seconds))
	}
	for _, r := range m.rows {
		if r.refused == nil {
			r.against(alone, coarse)
			if r.coarser != nil {
				c.Coarser = r.coarser.Scale
			}
			if name := r.work.method.Name; name != m.method {
				of.About = fmt.Sprintf("out of lockstep, %s means %s with %s on the box of every machine", m.method,
					name, m.method)
			}
		}
		if r.figures.Converged {
			r.residuals = figure.Record(r.residuals, r.figures.Seconds, float64(r.figures.Residual))
		}
		rows = append(rows, report.SimulatedRow{Method: m.method, Simulated: r.figures, Residuals: r.residuals})
	}
	return rows, of
}
