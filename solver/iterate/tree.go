package iterate

// Tree is a peer's place in the spanning tree of the neighbour graph, rooted at
// rank 0, along which residuals are reduced and verdicts travel. On a grid
// every edge joins two neighbours, so the sessions that exist are enough.
type Tree struct {
	Parent   Rank // −1 at the root
	Children []Rank
}

// Child is the index of q among the children, −1 if it is none.
func (t Tree) Child(q Rank) int {
	for i, c := range t.Children {
		if c == q {
			return i
		}
	}
	return -1
}

// edges returns the parent, if there is one, and the children.
func (t Tree) edges() []Rank {
	if t.Parent < 0 {
		return t.Children
	}
	return append([]Rank{t.Parent}, t.Children...)
}
