package solver

import "slices"

// Hybrid is the scheme that is synchronous within a cluster and asynchronous
// between clusters. clusters[r] is the cluster of rank r. With one cluster it is
// the synchronous scheme, bit by bit; with one peer per cluster the asynchronous
// one.
//
// Two neighbours of one cluster read exactly each other's iterate k, whatever
// either of them reads of other clusters; so all peers of a connected cluster are
// at most a distance apart, and a slow cluster holds up no other. The run ends by
// the asynchronous rule, a snapshot, unless there is one cluster only.
func Hybrid(clusters []int) Scheme { return hybrid{clusters: slices.Clone(clusters)} }

type hybrid struct{ clusters []int }

func (h hybrid) Name() string { return "hybrid" }

// Lockstep: everybody is in one cluster.
func (h hybrid) Lockstep() bool {
	for _, c := range h.clusters {
		if c != h.clusters[0] {
			return false
		}
	}
	return true
}

func (h hybrid) Asynchronous() bool { return !h.Lockstep() }

// Admit is that of the freest pair of neighbours; the worker asks Between.
func (h hybrid) Admit(k, v Iteration, _ Rank) bool { return h.Asynchronous() || v == k }

func (h hybrid) Slots() int { return Synchronous().Slots() }

func (h hybrid) between(a, b Rank) Scheme {
	known := int(max(a, b)) < len(h.clusters) && min(a, b) >= 0
	if known && h.clusters[a] == h.clusters[b] {
		return Synchronous()
	}
	return Asynchronous()
}

// Clusters labels the peers of a partition as n clusters 0 … n−1, as even as
// possible. Along the walk that goes through the grid of boxes like a plough, so
// that two that follow each other share a face, each cluster takes a run of peers:
// so every cluster is connected. There are at most as many clusters as peers.
func Clusters(p Partition, n int) []int {
	parts, peers := p.Parts(), p.Peers()
	out := make([]int, peers)
	for r := range out {
		out[r] = plough(p.Place(Rank(r)), parts) * max(1, min(n, peers)) / peers
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
