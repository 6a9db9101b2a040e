package kernel

import "fmt"

// Box is a half-open box of points of a block: Lo[a] ≤ i < Hi[a] on each axis a, 0-based, axis 0 being x. Functions
// that accept ghost points say so; the ghosts of axis a have the indices −1 and N[a].
type Box struct{ Lo, Hi [3]int }

// Empty reports whether the box contains no point.
func (b Box) Empty() bool {
	return b.Hi[0] <= b.Lo[0] || b.Hi[1] <= b.Lo[1] || b.Hi[2] <= b.Lo[2]
}

// Points returns the number of points of the box.
func (b Box) Points() int {
	if b.Empty() {
		return 0
	}
	n := b.Size()
	return n[0] * n[1] * n[2]
}

// Size returns the number of points along each axis.
func (b Box) Size() [3]int {
	return [3]int{b.Hi[0] - b.Lo[0], b.Hi[1] - b.Lo[1], b.Hi[2] - b.Lo[2]}
}

// Contains reports whether a point lies in the box.
func (b Box) Contains(at [3]int) bool {
	for a := range at {
		if at[a] < b.Lo[a] || at[a] >= b.Hi[a] {
			return false
		}
	}
	return true
}

// From returns the box in indices that count from origin.
func (b Box) From(origin [3]int) Box {
	for a := range origin {
		b.Lo[a] -= origin[a]
		b.Hi[a] -= origin[a]
	}
	return b
}

// Each calls f for the points of the box in memory order, with their dense index and their grid index
// (1-based). It stops when f returns false.
func (b Box) Each(f func(dense int, idx [3]int) bool) {
	d := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				if !f(d, [3]int{x + 1, y + 1, z + 1}) {
					return
				}
				d++
			}
		}
	}
}

// Layout maps a block of points to a padded array: one layer of ghost points on either side of
// every used axis, x fastest. Rows of at least 32 points are padded so that the first own point of
// every row is aligned to 64 bytes relative to the start of the array.
type Layout struct {
	Dim    int    // used axes: 1, 2 or 3
	N      [3]int // own points per axis, 1 on unused axes
	Row    int    // distance from (x, y, z) to (x, y+1, z); 0 in 1-D
	Plane  int    // distance from (x, y, z) to (x, y, z+1); 0 in 1-D and 2-D
	Origin int    // index of own point (0, 0, 0)
}

const (
	lineFloats = 8       // float64s in a cache line
	alignFrom  = 32      // shorter rows are not worth padding
	maxAxis    = 1 << 31 // keeps products of strides in an int64
	maxLength  = 1 << 40 // float64s in one array
)

// NewLayout returns the layout of a block of n own points in dim dimensions.
func NewLayout(dim int, n [3]int) (Layout, error) {
	if dim < 1 || dim > 3 {
		return Layout{}, fmt.Errorf("kernel: a block of %d dimensions; dimensions must be 1, 2 or 3", dim)
	}
	for a, m := range n {
		if m < 1 || m > maxAxis || (a >= dim && m != 1) {
			return Layout{}, fmt.Errorf("kernel: a %d-D block has %d points on axis %d; "+
				"used axes need 1 to %d points, unused axes exactly 1", dim, m, a, maxAxis)
		}
	}
	tooLarge := fmt.Errorf("kernel: a block of %v points exceeds %d values", n, maxLength)
	l := Layout{Dim: dim, N: n}
	row, pad := n[0]+2, 1
	if n[0] >= alignFrom {
		row, pad = (row+lineFloats-1)/lineFloats*lineFloats, lineFloats
	}
	l.Origin = pad
	if dim > 1 {
		l.Row = row
		l.Origin += row
	}
	if dim > 2 {
		if n[1]+2 > maxLength/row {
			return Layout{}, tooLarge
		}
		l.Plane = row * (n[1] + 2)
		l.Origin += l.Plane
		if n[2]+2 > maxLength/l.Plane {
			return Layout{}, tooLarge
		}
	}
	return l, nil
}

// Index returns the array index of point (x, y, z). The indices −1 and N select the ghosts of used axes.
func (l Layout) Index(x, y, z int) int { return l.Origin + x + y*l.Row + z*l.Plane }

// Len returns the length of a padded array.
func (l Layout) Len() int {
	return l.Index(l.N[0], l.N[1], l.N[2]) + 1 // the strides of unused axes are 0
}

// Points returns the number of own points, which is the length of a dense array.
func (l Layout) Points() int { return l.N[0] * l.N[1] * l.N[2] }

// Dense returns the index of own point (x, y, z) in a dense array [z][y][x] without ghosts.
func (l Layout) Dense(x, y, z int) int { return x + l.N[0]*(y+l.N[1]*z) }

// Interior returns the box of all own points.
func (l Layout) Interior() Box { return Box{Hi: l.N} }

// holds reports whether b lies within the own points extended by ghost layers on the used axes.
func (l Layout) holds(b Box, ghost int) bool {
	for a := range l.N {
		g := ghost
		if a >= l.Dim {
			g = 0
		}
		if b.Lo[a] < -g || b.Hi[a] > l.N[a]+g {
			return false
		}
	}
	return true
}
