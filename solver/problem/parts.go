package problem

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// SweepStep is one step of a sweep: relax a part, or send a face.
type SweepStep struct {
	Send   bool       // true: send a face; false: relax a part
	Face   int        // send: index of the face
	Part   int        // relax: number of the part
	Box    kernel.Box // relax: own points, local indices
	Chunks int        // relax: number of chunks for the executor
	Axis   int        // relax: axis along which chunks are cut
	Points int        // relax: point relaxations
}

const (
	// PartPoints bounds the points of a part so that the shell polls the network several times per millisecond.
	PartPoints = 1 << 18
	// ChunkPoints is the least work that is worth another thread.
	ChunkPoints = 1 << 12
	// MaxChunks bounds the chunks of a part.
	MaxChunks = 64
	// edgeColumns is the width of the parts at x faces: a cache line of values, or a quarter of a narrow box.
	edgeColumns = 8
)

// SentLayer is a layer of own points that a neighbour reads.
type SentLayer struct {
	To     Neighbour
	Points kernel.Box
}

// PlanSweep cuts own points into parts and orders a sweep of them: layers that neighbours read are relaxed and sent
// before the interior is relaxed, unless late is set (Config.Late).
func PlanSweep(own kernel.Box, dim int, sends []SentLayer, late bool) []SweepStep {
	if late {
		return PlanParts(appendParts(nil, own), Jacobi, dim, sends)
	}
	var parts []kernel.Box
	rest := own
	for _, s := range slices.Backward(sends) { // z layers first: they lie together in memory
		var layer kernel.Box
		layer, rest = s.peel(rest, own)
		parts = appendParts(parts, layer)
	}
	return PlanParts(appendParts(parts, rest), Jacobi, dim, sends)
}

// PlanParts returns the steps of a sweep of parts in the given order. Each layer is sent after the last part that has
// points of it.
func PlanParts(parts []kernel.Box, order Order, dim int, sends []SentLayer) []SweepStep {
	last := make([]int, len(sends))
	for i, s := range sends {
		for n, b := range parts {
			if intersect(b, s.Points) {
				last[i] = n
			}
		}
	}
	var out []SweepStep
	for n, b := range parts {
		chunks, axis := Split(b, order, dim)
		out = append(out, SweepStep{Part: n, Box: b, Chunks: chunks, Axis: axis, Points: b.Points()})
		for i, at := range last {
			if at == n {
				out = append(out, SweepStep{Send: true, Face: i})
			}
		}
	}
	return out
}

// peel separates the layer from the remaining own points. In a thin box an earlier layer may have its points already.
func (s SentLayer) peel(rest, own kernel.Box) (layer, left kernel.Box) {
	if rest.Empty() {
		return kernel.Box{}, rest
	}
	a := s.To.Axis
	edge := min(edgeColumns, (own.Hi[0]-own.Lo[0])/4)
	layer, left = rest, rest
	if s.To.Side < 0 {
		end := s.Points.Hi[a]
		if a == 0 {
			end = max(end, own.Lo[a]+edge)
		}
		cut := min(max(end, rest.Lo[a]), rest.Hi[a])
		layer.Hi[a], left.Lo[a] = cut, cut
		return layer, left
	}
	begin := s.Points.Lo[a]
	if a == 0 {
		begin = min(begin, own.Hi[a]-edge)
	}
	cut := max(min(begin, rest.Hi[a]), rest.Lo[a])
	layer.Lo[a], left.Hi[a] = cut, cut
	return layer, left
}

// intersect reports whether two boxes have a point in common.
func intersect(a, b kernel.Box) bool {
	for i := range 3 {
		if a.Lo[i] >= b.Hi[i] || b.Lo[i] >= a.Hi[i] {
			return false
		}
	}
	return true
}

// appendParts cuts a box into parts of at most PartPoints points, along z, then y, then x, and appends them to
// dst.
func appendParts(dst []kernel.Box, b kernel.Box) []kernel.Box {
	if b.Empty() {
		return dst
	}
	if b.Points() <= PartPoints {
		return append(dst, b)
	}
	axis := 2
	for axis > 0 && b.Hi[axis]-b.Lo[axis] == 1 {
		axis--
	}
	layer := b.Points() / (b.Hi[axis] - b.Lo[axis])
	thick := max(1, PartPoints/layer)
	for lo := b.Lo[axis]; lo < b.Hi[axis]; lo += thick {
		piece := b
		piece.Lo[axis], piece.Hi[axis] = lo, min(lo+thick, b.Hi[axis])
		dst = appendParts(dst, piece)
	}
	return dst
}

// Split returns the number of chunks into which a part may be cut for the executor, and the axis. With InTurn,
// planes depend on each other and only a plane may be cut.
func Split(b kernel.Box, order Order, dim int) (chunks, axis int) {
	points := b.Points()
	if order == InTurn {
		slow := dim - 1
		points /= b.Hi[slow] - b.Lo[slow]
		axis = max(slow-1, 0)
		if dim == 1 {
			return 1, 0
		}
	} else {
		axis = 2
		for axis > 0 && b.Hi[axis]-b.Lo[axis] < 8 {
			axis--
		}
	}
	return max(1, min(points/ChunkPoints, MaxChunks, b.Hi[axis]-b.Lo[axis])), axis
}

// Chunk returns chunk i of n of a box along an axis.
func Chunk(b kernel.Box, axis, i, n int) kernel.Box {
	lo, size := b.Lo[axis], b.Hi[axis]-b.Lo[axis]
	b.Lo[axis], b.Hi[axis] = lo+size*i/n, lo+size*(i+1)/n
	return b
}
