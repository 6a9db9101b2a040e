package method

import (
	"cmp"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// parallelFor divides boxes along their slowest axis and runs the pieces on an executor. runPiece is
// bound once, because a closure per call would allocate memory.
type parallelFor struct {
	exec     kernel.Executor
	dim      int
	box      kernel.Box
	count    int
	do       func(piece int, b kernel.Box)
	runPiece func(i int)
}

const (
	// maxPieces bounds the pieces of a box. It exceeds usual numbers of threads, so that a late thread costs little.
	maxPieces = 16
	// minPiecePoints is the smallest number of points that justifies another thread.
	minPiecePoints = 1 << 13
)

func newParallelFor(exec kernel.Executor, dim int) *parallelFor {
	t := &parallelFor{exec: cmp.Or[kernel.Executor](exec, kernel.Sequential{}), dim: dim}
	t.runPiece = func(i int) {
		b, slow := t.box, t.dim-1
		lo, n := b.Lo[slow], b.Hi[slow]-b.Lo[slow]
		b.Lo[slow], b.Hi[slow] = lo+i*n/t.count, lo+(i+1)*n/t.count
		t.do(i, b)
	}
	return t
}

// run calls do for the pieces of b.
func (t *parallelFor) run(b kernel.Box, do func(piece int, b kernel.Box)) {
	t.count = max(1, min(maxPieces, b.Hi[t.dim-1]-b.Lo[t.dim-1], b.Points()/minPiecePoints))
	if t.count == 1 {
		do(0, b)
		return
	}
	t.box, t.do = b, do
	t.exec.For(t.count, t.runPiece)
}

// executor returns the executor for a block, which may be too small for several threads.
func (t *parallelFor) executor(l kernel.Layout) kernel.Executor {
	if l.Points() < 2*minPiecePoints {
		return kernel.Sequential{}
	}
	return t.exec
}
