package problem

import "github.com/p2pdc/p2pdc/internal/kernel"

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
	// EdgeColumns is the width of the parts at x faces: a cache line of values.
	EdgeColumns = 8
)

// Intersect reports whether two boxes have a point in common.
func Intersect(a, b kernel.Box) bool {
	for i := range 3 {
		if a.Lo[i] >= b.Hi[i] || b.Lo[i] >= a.Hi[i] {
			return false
		}
	}
	return true
}

// AppendParts cuts a box into parts of at most PartPoints points, along z, then y, then x, and appends them to
// dst.
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
