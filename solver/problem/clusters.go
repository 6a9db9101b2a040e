package problem

import "github.com/p2pdc/p2pdc/solver/iterate"

// Clusters labels the peers of a partition as n clusters 0 … n−1, as even as
// possible. Along the walk that goes through the grid of boxes like a plough, so
// that two that follow each other share a face, each cluster takes a run of peers:
// so every cluster is connected. There are at most as many clusters as peers.
func Clusters(p Partition, n int) []int {
	parts, peers := p.Parts(), p.Peers()
	out := make([]int, peers)
	for r := range out {
		out[r] = plough(p.Place(iterate.Rank(r)), parts) * max(1, min(n, peers)) / peers
	}
	return out
}

// plough is when the walk comes to a place: rows and planes alternate in direction.
func plough(at, parts [3]int) int {
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
