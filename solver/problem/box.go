package problem

// Holds tells whether a point, 0-based, lies in the box.
func (b Box) Holds(at [3]int) bool {
	for a := range 3 {
		if at[a] < b.Lo[a] || at[a] >= b.Hi[a] {
			return false
		}
	}
	return true
}

// Each visits the box's points in memory order: their dense index and their grid
// index (1-based); it ends early when f says so.
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

// Box is a half-open box of interior grid points, 0-based: Lo[a] ≤ i < Hi[a] per
// axis.
type Box struct{ Lo, Hi [3]int }

// Size is the number of points along each axis.
func (b Box) Size() [3]int {
	return [3]int{b.Hi[0] - b.Lo[0], b.Hi[1] - b.Lo[1], b.Hi[2] - b.Lo[2]}
}

// Points is the number of points of the box.
func (b Box) Points() int {
	s := b.Size()
	return s[0] * s[1] * s[2]
}
