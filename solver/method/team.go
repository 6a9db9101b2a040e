package method

import "github.com/p2pdc/p2pdc/internal/kernel"

// team cuts boxes along their slowest axis and has the executor do the pieces. What is
// done is bound once: a closure a call would allocate.
type team struct {
	exec  kernel.Executor
	dim   int
	box   kernel.Box
	count int
	do    func(piece int, b kernel.Box)
	run   func(i int)
}

const (
	// pieces of a box at most; more than threads, so that a late one costs little.
	pieces = 16
	// leastPiece points are worth handing to another thread.
	leastPiece = 1 << 13
)

func newTeam(exec kernel.Executor, dim int) *team {
	if exec == nil {
		exec = kernel.Sequential{}
	}
	t := &team{exec: exec, dim: dim}
	t.run = func(i int) {
		b, slow := t.box, t.dim-1
		lo, n := b.Lo[slow], b.Hi[slow]-b.Lo[slow]
		b.Lo[slow], b.Hi[slow] = lo+i*n/t.count, lo+(i+1)*n/t.count
		t.do(i, b)
	}
	return t
}

// each calls do for the pieces of b.
func (t *team) each(b kernel.Box, do func(piece int, b kernel.Box)) {
	t.count = max(1, min(pieces, b.Hi[t.dim-1]-b.Lo[t.dim-1], b.Points()/leastPiece))
	if t.count == 1 {
		do(0, b)
		return
	}
	t.box, t.do = b, do
	t.exec.For(t.count, t.run)
}

// small tells whether a block is not worth sharing out.
func small(l kernel.Layout) bool { return l.Points() < 2*leastPiece }
