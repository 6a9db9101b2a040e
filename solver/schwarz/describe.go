package schwarz

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Describe says what the method works with; see Block.
func (w *peer) Describe() string {
	out := []string{fmt.Sprintf("%s on boxes that overlap by %d", cmp.Or(w.config.Method.Local, problem.Multigrid), w.overlap)}
	if w.local != nil && w.local.solver.Name() == method.NameMultigrid {
		out = append(out, w.local.solver.Describe())
	}
	switch {
	case w.choice.fixed > 0:
		out = append(out, fmt.Sprintf("%d cycles an exchange", w.choice.fixed))
	default:
		out = append(out, fmt.Sprintf("%.1f cycles an exchange at the end, by measurement", w.choice.chosen))
	}
	if c := w.coarse; c != nil {
		out = append(out, fmt.Sprintf("coarse correction on %d points", c.grid.n[0]*c.grid.n[1]*c.grid.n[2]))
	}
	return strings.Join(out, "; ")
}
