package schwarz

import (
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// directShares is the number of peers up to which, out of lockstep, everybody sends the
// shares of the coarse correction to the root itself: each peer on the way costs a share
// about a relaxation, and corrections are worth less the later they come.
const directShares = 512

// coarseTree is a peer's place in the tree that shares of the coarse problem go up.
func coarseTree(c *problem.Config, r iterate.Rank) iterate.Tree {
	if c.Scheme.Lockstep() || c.Partition.Peers() > directShares {
		return problem.TreeOf(c.Partition, r)
	}
	if r > 0 {
		return iterate.Tree{Parent: 0}
	}
	t := iterate.Tree{Parent: -1}
	for q := iterate.Rank(1); int(q) < c.Partition.Peers(); q++ {
		t.Children = append(t.Children, q)
	}
	return t
}

// coarseBelow lists rank r and those below it in that tree, ascending.
func coarseSubtree(c *problem.Config, r iterate.Rank) []iterate.Rank {
	switch {
	case c.Scheme.Lockstep() || c.Partition.Peers() > directShares:
		return subtreeRanks(c.Partition, r)
	case r > 0:
		return []iterate.Rank{r}
	}
	all := make([]iterate.Rank, c.Partition.Peers())
	for q := range all {
		all[q] = iterate.Rank(q)
	}
	return all
}

// coarseLinks are the peers that rank r exchanges shares with.
func coarseLinks(c *problem.Config, r iterate.Rank) []iterate.Rank {
	t := coarseTree(c, r)
	if t.Parent >= 0 {
		return append([]iterate.Rank{t.Parent}, t.Children...)
	}
	return t.Children
}
