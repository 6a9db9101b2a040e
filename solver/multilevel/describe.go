package multilevel

import (
	"fmt"
	"strings"
)

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
	case len(m.peer.channels) > 0 && at < len(h.Grids):
		out = append(out, fmt.Sprintf("from level %d of %d on gathered on peer 0", at+1, len(h.Grids)))
	}
	return strings.Join(out, "; ")
}
