package problem

import "github.com/p2pdc/p2pdc/internal/kernel"

// Step is one thing of a sweep, in order: relax a part, or send a face.
type Step struct {
	Send   bool
	Face   int        // send: index of the face
	Part   int        // relax: number of the part
	Box    kernel.Box // relax: own points, local indices
	Chunks int        // relax: pieces for the executor
	Axis   int        // relax: axis that the pieces cut
	Points int        // relax: relaxations of a point
}

const (
	// PartPoints bounds a part, so that the shell polls every fraction of a
	// millisecond.
	PartPoints = 1 << 18
	// ChunkPoints is the least work worth handing to another thread.
	ChunkPoints = 1 << 12
	// MaxChunks is the most pieces that a part is cut into for the executor.
	MaxChunks = 64
	// Columns is the width of the parts at x faces: a cache line of values.
	Columns = 8
)

// Meets reports whether two boxes have a point in common.
func Meets(a, b kernel.Box) bool {
	for i := range 3 {
		if a.Lo[i] >= b.Hi[i] || b.Lo[i] >= a.Hi[i] {
			return false
		}
	}
	return true
}

// AppendParts cuts a box into parts of at most partPoints points, along z, then y,
// then x.
func AppendParts(dst []kernel.Box, b kernel.Box) []kernel.Box {
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
		dst = AppendParts(dst, piece)
	}
	return dst
}

// Split says into how many pieces, along which axis, a part may be cut for the
// executor. In-turn planes depend on each other, so there it is what a plane may
// be cut into.
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

// Chunk is piece i of n of a box along an axis.
func Chunk(b kernel.Box, axis, i, n int) kernel.Box {
	lo, size := b.Lo[axis], b.Hi[axis]-b.Lo[axis]
	b.Lo[axis], b.Hi[axis] = lo+size*i/n, lo+size*(i+1)/n
	return b
}
