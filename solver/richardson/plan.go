package richardson

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// planSweep orders a sweep so that every face with a neighbour is relaxed and sent before the interior is
// relaxed, unless late is set. With the order in-turn a face is sent after the last part with points of it.
func planSweep(l kernel.Layout, faces []*face, order problem.Order, late bool) []problem.SweepStep {
	var sends []problem.SentLayer
	for _, f := range faces {
		sends = append(sends, problem.SentLayer{To: f.to, Points: f.own})
	}
	if order == problem.InTurn {
		return problem.PlanParts(planesInTurn(l), order, l.Dim, sends)
	}
	return problem.PlanSweep(l.Interior(), l.Dim, sends, late)
}

// planesInTurn groups whole planes in ascending order.
func planesInTurn(l kernel.Layout) []kernel.Box {
	slow := l.Dim - 1
	plane := l.Points() / l.N[slow]
	thick := max(1, problem.PartPoints/plane)
	var out []kernel.Box
	for lo := 0; lo < l.N[slow]; lo += thick {
		b := l.Interior()
		b.Lo[slow], b.Hi[slow] = lo, min(lo+thick, l.N[slow])
		out = append(out, b)
	}
	return out
}
