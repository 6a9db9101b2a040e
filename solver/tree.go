package solver

// tree is a peer's place in the spanning tree of the neighbour graph, rooted at
// rank 0, along which residuals are reduced and verdicts travel. Every edge joins
// two neighbours, so the sessions that exist are enough.
type tree struct {
	parent   Rank // −1 at the root
	children []Rank
}

// child is the index of q among the children, −1 if it is none.
func (t tree) child(q Rank) int {
	for i, c := range t.children {
		if c == q {
			return i
		}
	}
	return -1
}
