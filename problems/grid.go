package problems

import "fmt"

// MaxAxis and MaxPoints bound the points of a grid along an axis and in all. MaxAxis keeps index arithmetic
// far from overflow. A vector of MaxPoints values has 64 GiB.
const (
	MaxAxis   = 1 << 24
	MaxPoints = 1 << 33
)

// CheckGrid returns an error unless n is a grid of that dimension: 1 to MaxAxis interior points on each used
// axis, 1 on the others, and at most MaxPoints in all.
func CheckGrid(dimension int, n [3]int) error {
	if dimension < 1 || dimension > 3 {
		return fmt.Errorf("dimension %d: it must be 1, 2 or 3", dimension)
	}
	points := 1
	for a, name := range [3]string{"x", "y", "z"} {
		switch {
		case a >= dimension && n[a] != 1:
			return fmt.Errorf("%d grid points along %s, but the problem is %d-D", n[a], name, dimension)
		case n[a] < 1:
			return fmt.Errorf("%d grid points along %s: there must be at least 1", n[a], name)
		case n[a] > MaxAxis:
			return fmt.Errorf("%d grid points along %s: there may be at most %d", n[a], name, MaxAxis)
		case n[a] > MaxPoints/points:
			return fmt.Errorf("a grid of %v has more than %d points", n[:dimension], MaxPoints)
		}
		points *= n[a]
	}
	return nil
}

// Grid returns the grid of a problem of that dimension from user input: one number for all axes or one per
// axis, x first.
func Grid(dimension int, n []int) ([3]int, error) {
	grid := [3]int{1, 1, 1}
	if len(n) != 1 && len(n) != dimension {
		return grid, fmt.Errorf("%d numbers of grid points for a %d-D problem: give one for all axes, or %d",
			len(n), dimension, dimension)
	}
	for a := range min(dimension, 3) {
		grid[a] = n[min(a, len(n)-1)]
	}
	return grid, CheckGrid(dimension, grid)
}
