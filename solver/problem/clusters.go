package problem

import "github.com/p2pdc/p2pdc/solver/iterate"

// Clusters labels the peers of a partition with n clusters 0 … n−1 of nearly equal size. The peers are ordered
// along a snake through the grid of boxes, in which consecutive boxes share a face. Each cluster is a range of
// that order and therefore connected. At most as many clusters as peers are made.
func Clusters(p Partition, n int) []int {
	parts, peers := p.Parts(), p.Peers()
	out := make([]int, peers)
	for r := range out {
		out[r] = snakeIndex(p.Position(iterate.Rank(r)), parts) * max(1, min(n, peers)) / peers
	}
	return out
}

// snakeIndex returns the index of a box along the snake: rows and planes alternate in direction.
func snakeIndex(at, parts [3]int) int {
	y := at[1]
	if at[2]%2 == 1 {
		y = parts[1] - 1 - y
	}
	row := y + parts[1]*at[2]
	x := at[0]
	if row%2 == 1 {
		x = parts[0] - 1 - x
	}
	return x + parts[0]*row
}
