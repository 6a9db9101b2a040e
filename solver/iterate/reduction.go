package iterate

import "github.com/p2pdc/p2pdc/internal/kernel"

// reduction adds the squared residuals of a peer and its subtree. The sums are exact, so they do not depend
// on the order of arrival.
type reduction struct {
	ownAdded      bool
	added         []bool // by child
	childrenAdded int
	squares       kernel.Sum
	start         kernel.Sum // of the reference vector, later of the magnitudes if they are wanted
	void          bool       // the snapshot is void: it was taken while planes moved
}

func newReduction(children int) reduction { return reduction{added: make([]bool, children)} }

// reset begins the next reduction.
func (r *reduction) reset() {
	r.ownAdded, r.childrenAdded, r.void = false, 0, false
	clear(r.added)
	r.squares, r.start = kernel.Sum{}, kernel.Sum{}
}

// addOwn adds this peer's sums; reference may be nil.
func (r *reduction) addOwn(residual, reference *kernel.Sum) {
	r.ownAdded = true
	r.squares.Merge(residual)
	if reference != nil {
		r.start.Merge(reference)
	}
}

// addChild adds the sums of a child's subtree.
func (r *reduction) addChild(child int, m *Message) {
	r.added[child] = true
	r.childrenAdded++
	r.void = r.void || m.Mark > 0
	r.squares.Merge(&m.Squares)
	r.start.Merge(&m.Start)
}

// complete reports whether the sums cover the whole subtree.
func (r *reduction) complete() bool { return r.ownAdded && r.childrenAdded == len(r.added) }

// message returns the message with the sums for the parent.
func (r *reduction) message(number uint64) Message {
	m := Message{Kind: MsgResidual, Number: number, Squares: r.squares, Start: r.start}
	if r.void {
		m.Mark = 1
	}
	return m
}
