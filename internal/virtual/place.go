package virtual

import "github.com/p2pdc/p2pdc/solver/problem"

// Place puts the values of a box, [z][y][x], into a grid of n points.
func Place(u []float64, n [3]int, b problem.Box, v []float64) {
	i := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i += copy(u[b.Lo[0]+n[0]*(y+n[1]*z):], v[i:i+b.Hi[0]-b.Lo[0]])
		}
	}
}
