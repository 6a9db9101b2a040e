package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// gridLevel is a grid of multigrid, or the block of it that this peer holds.
type gridLevel struct {
	*method.Level
	window   problem.Box // the block, in the grid
	own      kernel.Box  // own points, in the block
	exec     problem.Executor
	faces    [2]*exchange // of values, by colour; nil where nobody shares the grid
	all      []*exchange  // of values, edges and corners too
	residual []*exchange  // of what restriction reads
}

// smallLevel points are not worth sharing out among threads.
const minThreadedPoints = 1 << 14

// newGridLevel makes a grid's block; own is the peer's box in the grid. The operator is
// that of the block, fields those of grid 0.
func (m *multigrid) newGridLevel(l int, window, own problem.Box, op kernel.Operator, b *problem.Discretization) (*gridLevel, error) {
	layout, err := kernel.NewLayout(m.plan.hierarchy.Dim, window.Size())
	if err != nil {
		return nil, err
	}
	c := method.LevelConfig{
		Part:     kernel.Part{Layout: layout, Global: m.plan.hierarchy.Grids[l], Lo: window.Lo},
		Operator: op, Parity: (window.Lo[0] + window.Lo[1] + window.Lo[2]) & 1, Truncate: true,
		Allocate: m.peer.config.Allocate,
	}
	if m.problem.Upper == nil {
		c.Upper = kernel.NoUpper()
	}
	if b != nil {
		c.Source, c.Lower, c.Upper = b.Source, b.Lower, b.Upper
	}
	g := &gridLevel{window: window, own: within(own, window), exec: m.peer.exec}
	if g.Level, err = method.NewLevel(c, b == nil); err != nil {
		return nil, err
	}
	if layout.Points() < minThreadedPoints {
		g.exec = problem.Sequential{}
	}
	return g, nil
}

// share prepares the exchanges of a grid that is cut; Values must be there.
func (g *gridLevel) share(channels []*channel, d depth) {
	l := g.Part.Layout
	values := grid{array: g.Values, layout: l, colour: -1, parity: (g.window.Lo[0] + g.window.Lo[1] + g.window.Lo[2]) & 1}
	g.all = phases(channels, g.own, oneLayer(), values)
	g.Residual = make([]float64, l.Len())
	read := []grid{{array: g.Residual, layout: l, colour: -1}}
	if g.Truncation != nil {
		read = append(read, grid{array: g.Truncation, layout: l, colour: -1})
	}
	g.residual = phases(channels, g.own, d, read...)
	for c := range g.faces {
		values.colour = c
		g.faces[c] = faceExchange(channels, values, g.own)
	}
}

// compute is a stage that does f for the pieces of own points, and sends an exchange (nil:
// none).
func (g *gridLevel) compute(x *exchange, f func(b kernel.Box, piece int)) stage {
	return stage{kind: stageCompute, x: x, steps: planParts(g.own, g.Part.Layout.Dim, x), runPiece: f}
}

// contacts is the stage that notes, before a restriction, which rows are in contact: those
// that neighbours have marked, too.
func (g *gridLevel) scanContacts() stage {
	l := g.Part.Layout
	b, slow := l.Interior(), l.Dim-1
	for a := 1; a < l.Dim; a++ {
		b.Lo[a], b.Hi[a] = -1, l.N[a]+1
	}
	chunks := 1
	if slow > 0 {
		chunks = max(1, min(b.Points()/problem.ChunkPoints, problem.MaxChunks, b.Hi[slow]-b.Lo[slow]))
	}
	return stage{
		kind: stageCompute, steps: []problem.Step{{Box: b, Chunks: chunks, Axis: slow}},
		runPiece: func(b kernel.Box, _ int) { g.ScanContact(b) },
	}
}

// at is a stage that goes over all of a grid that nobody shares, so many times.
func (g *gridLevel) onePass(f func(), passes int) stage {
	return stage{kind: stageCompute, steps: []problem.Step{{Box: g.own, Chunks: 1}}, passes: passes, runAll: f}
}

// bring are the stages of exchanges one after the other.
func exchangeStages(out []stage, xs ...*exchange) []stage {
	for _, x := range xs {
		out = append(out, stage{kind: stageSend, x: x}, stage{kind: stageAwait, x: x})
	}
	return out
}

// relax are the stages of red-black sweeps. Afterwards the ghosts on faces are up to
// date, those on edges and corners, too, if they are asked for.
func (g *gridLevel) relax(out []stage, sweeps int, omega float64, corners bool) []stage {
	for half := range 2 * sweeps {
		colour := half % 2
		f := func(b kernel.Box, _ int) { g.Relax(colour, omega, b) }
		if corners && half == 2*sweeps-1 {
			return exchangeStages(append(out, g.compute(nil, f)), g.all...)
		}
		x := g.faces[colour]
		out = append(out, g.compute(x, f), stage{kind: stageAwait, x: x})
	}
	return out
}

// correct is a stage that writes the values and lets the neighbours know those that the
// next relaxation reads first.
func (g *gridLevel) correctAndSend(out []stage, f func(b kernel.Box, piece int)) []stage {
	if g.faces[0] == nil {
		return append(out, g.compute(nil, f))
	}
	x := g.faces[1]
	return append(out, g.compute(x, f), stage{kind: stageAwait, x: x})
}

// data are the arrays of source and obstacles below grid 0, as a gather takes them.
func (g *gridLevel) problemFields() []grid {
	n := g.Part.Layout.N
	out := []grid{denseGrid(g.Source.Array, n), denseGrid(g.Lower.Array, n)}
	if g.Upper.Array != nil {
		out = append(out, denseGrid(g.Upper.Array, n))
	}
	return out
}

// fields are the data and the walls.
func (g *gridLevel) gatheredFields() []grid {
	return append(g.problemFields(), grid{array: g.Truncation, layout: g.Part.Layout, colour: -1})
}

// values is the array of values, as a scatter takes it.
func (g *gridLevel) values() grid {
	return grid{array: g.Values, layout: g.Part.Layout, colour: -1}
}
