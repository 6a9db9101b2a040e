package iterate

import "github.com/p2pdc/p2pdc/internal/kernel"

// reduction adds up a residual over a peer's subtree: the own share and that of
// every child. The sums are exact, so the order of arrival does not matter.
type reduction struct {
	ownAdded      bool   // the own share is in
	added         []bool // whose shares are in
	childrenAdded int
	squares       kernel.Sum
	start         kernel.Sum // of the reference vector or of magnitudes, where they are asked for
	void          bool       // snapshots: planes were on their way
}

func newReduction(children int) reduction { return reduction{added: make([]bool, children)} }

// reset begins the next one.
func (r *reduction) reset() {
	r.ownAdded, r.childrenAdded, r.void = false, 0, false
	clear(r.added)
	r.squares, r.start = kernel.Sum{}, kernel.Sum{}
}

// share adds the own share; reference is nil where it is not asked for.
func (r *reduction) addOwn(residual, reference *kernel.Sum) {
	r.ownAdded = true
	r.squares.Merge(residual)
	if reference != nil {
		r.start.Merge(reference)
	}
}

// hear adds the share of a child's subtree.
func (r *reduction) addChild(child int, m *Message) {
	r.added[child] = true
	r.childrenAdded++
	r.void = r.void || m.Mark > 0
	r.squares.Merge(&m.Squares)
	r.start.Merge(&m.Start)
}

// complete tells that the sums are those of the whole subtree.
func (r *reduction) complete() bool { return r.ownAdded && r.childrenAdded == len(r.added) }

// message tells the parent the sums.
func (r *reduction) message(number uint64) Message {
	m := Message{Kind: MsgResidual, Number: number, Squares: r.squares, Start: r.start}
	if r.void {
		m.Mark = 1
	}
	return m
}
