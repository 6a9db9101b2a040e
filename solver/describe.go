package solver

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/solver/method"
)

// Describe says what a peer's method works with, for reports: the grids of multigrid
// and what became of one that does not coarsen, the factor of SOR, what Schwarz chose.
// Empty where there is nothing to say.
func Describe(p Peer) string {
	switch w := p.(type) {
	case *Levels:
		if d, is := w.course.method.(described); is {
			return d.describe()
		}
	case *schwarz:
		return w.describe()
	}
	return ""
}

type described interface{ describe() string }

func (m *redBlack) describe() string { return fmt.Sprintf("ω = %.4f at the end", m.factor.Omega()) }

func (m *multigrid) describe() string {
	h := &m.plan.hierarchy
	out := []string{"grids " + h.String()}
	for l := range h.Coarsest() {
		if !h.Nested(l) {
			out = append(out, "the points of a grid that does not halve lie between those of the finer one")
			break
		}
	}
	switch at := m.plan.gathered; {
	case h.Coarsest() == 0:
		out = []string{"this grid cannot be coarsened: it is relaxed only"}
	case len(m.g.wires) > 0 && at < len(h.Grids):
		out = append(out, fmt.Sprintf("from level %d of %d on gathered on peer 0", at+1, len(h.Grids)))
	}
	return strings.Join(out, "; ")
}

func (w *schwarz) describe() string {
	out := []string{fmt.Sprintf("%s on boxes that overlap by %d", cmp.Or(w.config.Method.Local, Multigrid), w.overlap)}
	if w.local != nil && w.local.solver.Name() == method.NameMultigrid {
		out = append(out, w.local.solver.Describe())
	}
	switch {
	case w.pace.fixed > 0:
		out = append(out, fmt.Sprintf("%d cycles an exchange", w.pace.fixed))
	default:
		out = append(out, fmt.Sprintf("%.1f cycles an exchange at the end, by measurement", w.pace.chosen))
	}
	if c := w.coarse; c != nil {
		out = append(out, fmt.Sprintf("coarse correction on %d points", c.grid.n[0]*c.grid.n[1]*c.grid.n[2]))
	}
	return strings.Join(out, "; ")
}
