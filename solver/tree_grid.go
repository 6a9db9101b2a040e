package solver

// treeOf walks towards rank 0 along z first, then y, then x: in a tensor product
// partition the parent of a box is thus known without looking at the others, and
// the depth is that of a breadth-first tree.
func treeOf(p Partition, r Rank) tree {
	t := tree{parent: parentOf(p, r)}
	for _, n := range p.Neighbours(r) {
		if parentOf(p, n.Rank) == r {
			t.children = append(t.children, n.Rank)
		}
	}
	return t
}

func parentOf(p Partition, r Rank) Rank {
	parts, place := p.Parts(), p.Place(r)
	switch {
	case place[2] > 0:
		return r - Rank(parts[0]*parts[1])
	case place[1] > 0:
		return r - Rank(parts[0])
	case place[0] > 0:
		return r - 1
	}
	return -1
}
