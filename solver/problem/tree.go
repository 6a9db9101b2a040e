package problem

import "github.com/p2pdc/p2pdc/solver/iterate"

// TreeOf walks towards rank 0 along z first, then y, then x: in a tensor product
// partition the parent of a box is thus known without looking at the others, and
// the depth is that of a breadth-first tree.
func TreeOf(p Partition, r iterate.Rank) iterate.Tree {
	t := iterate.Tree{Parent: ParentOf(p, r)}
	for _, n := range p.Neighbours(r) {
		if ParentOf(p, n.Rank) == r {
			t.Children = append(t.Children, n.Rank)
		}
	}
	return t
}

// ParentOf returns the parent of rank r in the tree, −1 for the root.
func ParentOf(p Partition, r iterate.Rank) iterate.Rank {
	parts, place := p.Parts(), p.Place(r)
	switch {
	case place[2] > 0:
		return r - iterate.Rank(parts[0]*parts[1])
	case place[1] > 0:
		return r - iterate.Rank(parts[0])
	case place[0] > 0:
		return r - 1
	}
	return -1
}
