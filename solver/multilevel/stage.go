package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stage is one step of a method between two communications.
type stage struct {
	kind stageKind
	x    *exchange // exchange to send or await
	// of a computation: parts, and sends of x as soon as their points are ready
	steps    []problem.SweepStep
	runPiece func(b kernel.Box, piece int) // computes the points b of a part
	runAll   func()                        // computes the only part as a whole, instead of runPiece
	// passes is the number of passes over a part, for accounting. 0: one.
	passes   int
	do       func() // of a stageDo
	transfer transfer
}

type stageKind int

const (
	stageCompute  stageKind = iota + 1
	stageSend               // send x to all its neighbours
	stageAwait              // wait for all neighbours of x
	stageReduce             // wait for the reduction
	stageDo                 // a computation of negligible time
	stageTransfer           // collect arrays of a grid at the root, or distribute its values
)

// transfer is a gather or a scatter.
type transfer interface {
	// proceed returns the next operation, or more = false when the transfer is complete.
	proceed() (op iterate.Op, more bool, err error)
}

// planParts cuts the own points into parts, the layers that neighbours read first unless late is set. Each send of the
// exchange (nil: none) follows the last part with points that it reads of the first grid.
func planParts(own kernel.Box, dim int, x *exchange, late bool) []problem.SweepStep {
	var sends []problem.SentLayer
	if x != nil {
		for _, l := range x.neighbours {
			sends = append(sends, problem.SentLayer{To: l.channel.to, Points: l.send[0]})
		}
	}
	return problem.PlanSweep(own, dim, sends, late)
}

// runNow runs a computation at once, before the run begins.
func (g *peer) runNow(s *stage) {
	was, at := g.stage, g.at
	g.stage = s
	for g.at = range s.steps {
		g.exec.For(s.steps[g.at].Chunks, g.runPieceFunc)
	}
	g.stage, g.at = was, at
}

// pieces returns the largest number of pieces per part.
func pieces(steps []problem.SweepStep) int {
	most := 1
	for i := range steps {
		most = max(most, steps[i].Chunks)
	}
	return most
}
