package iterate

import "slices"

// Tree is a peer's place in a spanning tree of the peers, rooted at rank 0. Residuals are reduced along the
// tree, and verdicts are sent along it. On a grid every edge joins two neighbours, so no more sessions are
// needed.
type Tree struct {
	Parent   Rank // −1 at the root
	Children []Rank
}

// Child returns the index of q among the children, −1 if it is not a child.
func (t Tree) Child(q Rank) int { return slices.Index(t.Children, q) }

// edges returns the parent, if there is one, and the children.
func (t Tree) edges() []Rank {
	if t.Parent < 0 {
		return t.Children
	}
	return append([]Rank{t.Parent}, t.Children...)
}
