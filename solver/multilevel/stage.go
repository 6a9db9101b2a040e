package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stage is what a peer does between two meetings with others.
type stage struct {
	kind     stageKind
	x        *exchange                     // what is sent or awaited
	steps    []problem.Step                // of a computation: parts, and legs of x as soon as they may go
	runPiece func(b kernel.Box, piece int) // does points b of a part
	runAll   func()                        // instead of pieces: does all of the only part
	// passes is how many times a part is gone over, for whoever counts points; 0: once.
	passes  int
	do      func() // of a stageDo
	gather  *gather
	scatter *scatter
}

type stageKind int

const (
	stageCompute stageKind = iota + 1
	stageSend              // send every leg of x
	stageAwait             // wait for every leg of x
	stageReduce            // wait for the total
	stageDo                // something that takes no time worth telling
	stageGather            // bring arrays of a grid to the root
	stageScatter           // bring its values back to everyone
)

// planParts cuts own points into parts so that the layers that a neighbour reads come
// first; each leg of the exchange (nil: there is none) follows the last part that it
// reads of the first grid.
func planParts(own kernel.Box, dim int, x *exchange) []problem.Step {
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
				if problem.Meets(b, x.neighbours[i].send[0]) {
					last[i] = n
				}
			}
		}
	}
	var out []problem.Step
	for n, b := range parts {
		chunks, axis := problem.Split(b, problem.Jacobi, dim)
		out = append(out, problem.Step{Part: n, Box: b, Chunks: chunks, Axis: axis})
		for i, at := range last {
			if at == n {
				out = append(out, problem.Step{Send: true, Face: i})
			}
		}
	}
	return out
}

// peelLayer takes the layer that a leg sends off what is left of the own points.
func peelLayer(rest, own, sends kernel.Box, to problem.Neighbour) (layer, left kernel.Box) {
	if rest.Empty() {
		return kernel.Box{}, rest
	}
	a := to.Axis
	layer, left = rest, rest
	if to.Side < 0 {
		end := sends.Hi[a]
		if a == 0 {
			end = max(end, own.Lo[a]+problem.Columns)
		}
		cut := min(max(end, rest.Lo[a]), rest.Hi[a])
		layer.Hi[a], left.Lo[a] = cut, cut
		return layer, left
	}
	begin := sends.Lo[a]
	if a == 0 {
		begin = min(begin, own.Hi[a]-problem.Columns)
	}
	cut := max(min(begin, rest.Hi[a]), rest.Lo[a])
	layer.Lo[a], left.Hi[a] = cut, cut
	return layer, left
}

// now does a computation at once, for what has to be known before a run begins.
func (g *peer) runNow(s *stage) {
	was, at := g.stage, g.at
	g.stage = s
	for g.at = range s.steps {
		g.exec.For(s.steps[g.at].Chunks, g.runPieceFunc)
	}
	g.stage, g.at = was, at
}

// pieces is the most pieces that a part of the steps is cut into.
func pieces(steps []problem.Step) int {
	most := 1
	for i := range steps {
		most = max(most, steps[i].Chunks)
	}
	return most
}
