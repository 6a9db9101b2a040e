package repair

import (
	"slices"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Groups divides disjoint boxes into groups of boxes that share faces, directly or through others of the group.
func Groups(boxes []problem.Box) (groups [][]problem.Box) {
	for _, b := range boxes {
		group := []problem.Box{b}
		groups = slices.DeleteFunc(groups, func(g []problem.Box) bool {
			is := slices.ContainsFunc(g, func(other problem.Box) bool { return shareFace(b, other) })
			if is {
				group = append(group, g...)
			}
			return is
		})
		groups = append(groups, group)
	}
	return groups
}

// shareFace reports whether two boxes without a common point share a face.
func shareFace(a, b problem.Box) bool {
	beside := 0
	for x := range 3 {
		if a.Hi[x] < b.Lo[x] || b.Hi[x] < a.Lo[x] {
			return false
		}
		if a.Hi[x] == b.Lo[x] || b.Hi[x] == a.Lo[x] {
			beside++
		}
	}
	return beside == 1
}

// enclosing returns the smallest box that contains all boxes, and the sum of their points.
func enclosing(boxes []problem.Box) (out problem.Box, points int) {
	out = boxes[0]
	for _, b := range boxes {
		points += b.Points()
		for a := range 3 {
			out.Lo[a], out.Hi[a] = min(out.Lo[a], b.Lo[a]), max(out.Hi[a], b.Hi[a])
		}
	}
	return out, points
}

// contains reports whether one of the boxes contains the point of a grid index (1-based).
func contains(boxes []problem.Box, idx [3]int) bool {
	return find(boxes, idx) >= 0
}

// find returns the first box that contains the point of a grid index (1-based), −1 if none does.
func find(boxes []problem.Box, idx [3]int) int {
	at := [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}
	return slices.IndexFunc(boxes, func(b problem.Box) bool { return b.Contains(at) })
}
