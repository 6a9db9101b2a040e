package iterate

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// verdicts is the part of a rule of termination that reduces residuals over the tree and applies verdicts.
type verdicts struct {
	p               *Coordination
	sums            reduction  // of the open check or snapshot
	magnitudes      kernel.Sum // of this peer
	wantsMagnitudes bool       // the next reduction also adds magnitudes
	schedule        CheckSchedule
	stagnant        Stagnation // at the root
	norm0           float64    // divisor of relative residuals; NaN before the verdict on the starting vector
	residual        float64    // of the last verdict
	reason          Reason
}

func newVerdicts(p *Coordination) verdicts {
	return verdicts{
		p: p, sums: newReduction(len(p.Tree.Children)), norm0: UnknownResidual(), residual: UnknownResidual(),
		stagnant: Stagnation{MayDiverge: p.Config.MayDiverge},
	}
}

// addOwn adds this peer's residual, with that of the starting vector the reference.
func (e *verdicts) addOwn(residual *kernel.Sum, start bool) {
	var second *kernel.Sum
	switch {
	case start:
		second = &e.p.Reference
	case e.wantsMagnitudes:
		e.magnitudes = e.p.Source.Magnitudes()
		second = &e.magnitudes
	}
	e.sums.addOwn(residual, second)
}

// addChild adds the residual of a child's subtree to that of check or snapshot number, which no residual
// completes any more if closed is true. It returns false for a duplicate.
func (e *verdicts) addChild(q Rank, m *Message, what string, number uint64, closed bool) (bool, error) {
	i := e.p.Tree.Child(q)
	switch {
	case m.Number < number, m.Number == number && (closed || e.sums.added[i]):
		return false, nil
	case m.Number > number:
		return false, fmt.Errorf("the residual of %s %d; that of %s %d is expected", what, m.Number, what, number)
	}
	e.sums.addChild(i, m)
	return true, nil
}

// checkVerdict returns false for a duplicate of the verdict on check or snapshot number.
func (e *verdicts) checkVerdict(m *Message, what string, number uint64, closed bool) (bool, error) {
	switch {
	case m.Number < number, m.Number == number && closed:
		return false, nil
	case m.Number > number, !e.sums.complete():
		return false, fmt.Errorf("a verdict on %s %d, whose reduction is not complete at this peer", what, m.Number)
	}
	return true, nil
}

// reduction adds the squared residuals of a peer and its subtree. The sums are exact, so they do not depend
// on the order of arrival.
type reduction struct {
	ownAdded bool
	added    []bool // by child
	squares  kernel.Sum
	start    kernel.Sum // of the reference vector, later of the magnitudes if they are wanted
	void     bool       // the snapshot is void: it was taken while planes moved
}

func newReduction(children int) reduction { return reduction{added: make([]bool, children)} }

// reset begins the next reduction.
func (r *reduction) reset() {
	r.ownAdded, r.void = false, false
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
	r.void = r.void || m.Mark > 0
	r.squares.Merge(&m.Squares)
	r.start.Merge(&m.Start)
}

// complete reports whether the sums cover the whole subtree.
func (r *reduction) complete() bool { return r.ownAdded && !slices.Contains(r.added, false) }

// message returns the message with the sums for the parent.
func (r *reduction) message(number uint64) Message {
	m := Message{Kind: MsgResidual, Number: number, Squares: r.squares, Start: r.start}
	if r.void {
		m.Mark = 1
	}
	return m
}
