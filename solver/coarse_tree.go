package solver

// directShares is the number of peers up to which, out of lockstep, everybody sends the
// shares of the coarse correction to the root itself: each peer on the way costs a share
// about a relaxation, and corrections are worth less the later they come.
const directShares = 512

// coarseTree is a peer's place in the tree that shares of the coarse problem go up.
func coarseTree(c *Config, r Rank) tree {
	if inLockstep(c.Scheme) || c.Partition.Peers() > directShares {
		return treeOf(c.Partition, r)
	}
	if r > 0 {
		return tree{parent: 0}
	}
	t := tree{parent: -1}
	for q := Rank(1); int(q) < c.Partition.Peers(); q++ {
		t.children = append(t.children, q)
	}
	return t
}

// coarseBelow lists rank r and those below it in that tree, ascending.
func coarseBelow(c *Config, r Rank) []Rank {
	switch {
	case inLockstep(c.Scheme) || c.Partition.Peers() > directShares:
		return below(c.Partition, r)
	case r > 0:
		return []Rank{r}
	}
	all := make([]Rank, c.Partition.Peers())
	for q := range all {
		all[q] = Rank(q)
	}
	return all
}

// coarseLinks are the peers that rank r exchanges shares with.
func coarseLinks(c *Config, r Rank) []Rank {
	t := coarseTree(c, r)
	if t.parent >= 0 {
		return append([]Rank{t.parent}, t.children...)
	}
	return t.children
}
