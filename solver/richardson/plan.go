package richardson

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// planSweep orders a sweep so that every face with a neighbour is relaxed and sent before the interior is
// relaxed.
func planSweep(l kernel.Layout, faces []*face, order problem.Order) []problem.SweepStep {
	var parts []kernel.Box
	if order == problem.InTurn {
		parts = planesInTurn(l)
	} else {
		rest := l.Interior()
		for i := len(faces) - 1; i >= 0; i-- { // z faces first: they are contiguous in memory
			var slab kernel.Box
			slab, rest = peel(rest, faces[i])
			parts = problem.AppendParts(parts, slab)
		}
		parts = problem.AppendParts(parts, rest)
	}
	last := make([]int, len(faces))
	for i, f := range faces {
		for n, b := range parts {
			if problem.Intersect(b, f.own) {
				last[i] = n
			}
		}
	}
	var out []problem.SweepStep
	for n, b := range parts {
		chunks, axis := problem.Split(b, order, l.Dim)
		out = append(out, problem.SweepStep{Part: n, Box: b, Chunks: chunks, Axis: axis, Points: b.Points()})
		for i := range faces {
			if last[i] == n {
				out = append(out, problem.SweepStep{Send: true, Face: i})
			}
		}
	}
	return out
}

// peel separates the layer at a face from the box. The layer of an empty box is empty.
func peel(b kernel.Box, f *face) (slab, rest kernel.Box) {
	if b.Empty() {
		return kernel.Box{}, b
	}
	a, width := f.to.Axis, 1
	if a == 0 {
		width = problem.EdgeColumns
	}
	slab, rest = b, b
	if f.to.Side < 0 {
		// In a thin box an earlier face may have the layer already.
		cut := min(max(width, b.Lo[a]), b.Hi[a])
		slab.Hi[a], rest.Lo[a] = cut, cut
	} else {
		cut := max(min(f.own.Hi[a]-width, b.Hi[a]), b.Lo[a])
		slab.Lo[a], rest.Hi[a] = cut, cut
	}
	return slab, rest
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
