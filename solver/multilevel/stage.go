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

// planParts cuts the own points into parts, the layers that neighbours read first. Each send of the exchange
// (nil: none) follows the last part with points that it reads of the first grid.
func planParts(own kernel.Box, dim int, x *exchange) []problem.SweepStep {
	var parts []kernel.Box
	rest := own
	if x != nil {
		for i := len(x.neighbours) - 1; i >= 0; i-- { // z layers first: they lie together in memory
			var layer kernel.Box
			layer, rest = peelLayer(rest, own, x.neighbours[i].send[0], x.neighbours[i].channel.to)
			parts = problem.AppendParts(parts, layer)
		}
	}
	parts = problem.AppendParts(parts, rest)
	var last []int
	if x != nil {
		last = make([]int, len(x.neighbours))
		for i := range x.neighbours {
			for n, b := range parts {
				if problem.Intersect(b, x.neighbours[i].send[0]) {
					last[i] = n
				}
			}
		}
	}
	var out []problem.SweepStep
	for n, b := range parts {
		chunks, axis := problem.Split(b, problem.Jacobi, dim)
		out = append(out, problem.SweepStep{Part: n, Box: b, Chunks: chunks, Axis: axis})
		for i, at := range last {
			if at == n {
				out = append(out, problem.SweepStep{Send: true, Face: i})
			}
		}
	}
	return out
}

// peelLayer separates the layer that is sent to a neighbour from the remaining own points.
func peelLayer(rest, own, sends kernel.Box, to problem.Neighbour) (layer, left kernel.Box) {
	if rest.Empty() {
		return kernel.Box{}, rest
	}
	a := to.Axis
	layer, left = rest, rest
	if to.Side < 0 {
		end := sends.Hi[a]
		if a == 0 {
			end = max(end, own.Lo[a]+problem.EdgeColumns)
		}
		cut := min(max(end, rest.Lo[a]), rest.Hi[a])
		layer.Hi[a], left.Lo[a] = cut, cut
		return layer, left
	}
	begin := sends.Lo[a]
	if a == 0 {
		begin = min(begin, own.Hi[a]-problem.EdgeColumns)
	}
	cut := max(min(begin, rest.Hi[a]), rest.Lo[a])
	layer.Lo[a], left.Hi[a] = cut, cut
	return layer, left
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
