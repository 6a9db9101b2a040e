package launch

import (
	"sync"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// answerBoxes are the boxes of the blocks in the answer. Goroutines that read from peers share them.
type answerBoxes struct {
	mu        sync.Mutex
	ownership *ownership
}

// recut begins again with another partition.
func (o *answerBoxes) recut(p problem.Partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ownership.recut(p)
}

// declare sets the box of a peer's block.
func (o *answerBoxes) declare(rank int, b problem.Box) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownership.declare(rank, b)
}

// box returns the declared box of a peer, or that of the partition.
func (o *answerBoxes) box(rank int) problem.Box {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownership.box(rank)
}

// unowned returns the planes that belong to no peer with a complete block.
func (o *answerBoxes) unowned(whole func(rank int) bool) []problem.Box {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownership.unowned(whole)
}
