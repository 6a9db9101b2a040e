package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// gridLevel is the block of a multigrid grid that this peer holds.
type gridLevel struct {
	*method.Level
	window   problem.Box // the block, in the grid
	own      kernel.Box  // own points, in the block
	exec     problem.Executor
	late     bool         // problem.Config.Late
	faces    [2]*exchange // of values, by colour; nil if the grid is not distributed
	all      []*exchange  // of values, with edges and corners
	residual []*exchange  // of the arrays that restriction reads
}

// minThreadedPoints is the least number of points that is worth sharing among threads.
const minThreadedPoints = 1 << 14

// newGridLevel creates the block of a grid. own is the peer's box in the grid, op the block's operator. b holds
// the fields of grid 0 and is nil for other grids.
func (m *multigrid) newGridLevel(
	l int, window, own problem.Box, op kernel.Operator, b *problem.Discretization,
) (*gridLevel, error) {
	layout, err := kernel.NewLayout(m.plan.hierarchy.Dim, window.Size())
	if err != nil {
		return nil, err
	}
	c := method.LevelConfig{
		Part:     kernel.Part{Layout: layout, Global: m.plan.hierarchy.Grids[l], Lo: window.Lo},
		Operator: op, Parity: parity(window),
		Allocate: m.peer.config.Allocate,
	}
	if m.problem.Upper == nil {
		c.Upper = kernel.NoUpper()
	}
	if b != nil {
		c.Source = b.Source
		c.Lower = b.Lower
		c.Upper = b.Upper
	}
	g := &gridLevel{window: window, own: own.From(window.Lo), exec: m.peer.exec, late: m.peer.config.Late}
	if g.Level, err = method.NewLevel(c, b == nil); err != nil {
		return nil, err
	}
	if layout.Points() < minThreadedPoints {
		g.exec = problem.Sequential{}
	}
	return g, nil
}

// share prepares the exchanges of a distributed grid. Values must be set.
func (g *gridLevel) share(channels []*channel, d depth, allocate func(int) []float64) {
	l := g.Part.Layout
	values := g.values()
	values.parity = parity(g.window)
	g.all = phases(channels, g.own, oneLayer(), values)
	g.Residual = allocate(l.Len())
	read := []grid{{array: g.Residual, layout: l, colour: -1}}
	if g.Truncation != nil { // below grid 0
		read = append(read, grid{array: g.Truncation, layout: l, colour: -1})
	}
	g.residual = phases(channels, g.own, d, read...)
	for c := range g.faces {
		values.colour = c
		g.faces[c] = faceExchange(channels, values, g.own)
	}
}

// compute returns a stage that calls f for the pieces of the own points and sends an exchange (nil: none).
func (g *gridLevel) compute(x *exchange, f func(b kernel.Box, piece int)) stage {
	return stage{kind: stageCompute, x: x, steps: planParts(g.own, g.Part.Layout.Dim, x, g.late), runPiece: f}
}

// scanContacts returns the stage that records, before a restriction, which rows are in contact, including those
// that neighbours have marked.
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
		kind: stageCompute, steps: []problem.SweepStep{{Box: b, Chunks: chunks, Axis: slow}},
		runPiece: func(b kernel.Box, _ int) { g.ScanContact(b) },
	}
}

// onePass returns a stage that processes all of a grid that is not distributed. passes is the number of passes,
// for accounting.
func (g *gridLevel) onePass(f func(), passes int) stage {
	return stage{kind: stageCompute, steps: []problem.SweepStep{{Box: g.own, Chunks: 1}}, passes: passes, runAll: f}
}

// exchangeStages appends the stages of exchanges in sequence.
func exchangeStages(out []stage, xs ...*exchange) []stage {
	for _, x := range xs {
		out = append(out, stage{kind: stageSend, x: x}, stage{kind: stageAwait, x: x})
	}
	return out
}

// relax appends the stages of red-black sweeps. Afterwards the face ghosts are up to date, with corners also
// those on edges and corners.
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

// correctAndSend appends a stage that writes the values and sends the neighbours those that the next relaxation
// reads first.
func (g *gridLevel) correctAndSend(out []stage, f func(b kernel.Box, piece int)) []stage {
	if g.faces[0] == nil {
		return append(out, g.compute(nil, f))
	}
	return append(out, g.compute(g.faces[1], f), stage{kind: stageAwait, x: g.faces[1]})
}

// problemFields returns the arrays of source and obstacles below grid 0 for a gather.
func (g *gridLevel) problemFields() []grid {
	n := g.Part.Layout.N
	out := []grid{denseGrid(g.Source.Array, n), denseGrid(g.Lower.Array, n)}
	if g.Upper.Array != nil {
		out = append(out, denseGrid(g.Upper.Array, n))
	}
	return out
}

// gatheredFields returns the problem's fields and the truncation for a gather.
func (g *gridLevel) gatheredFields() []grid {
	return append(g.problemFields(), grid{array: g.Truncation, layout: g.Part.Layout, colour: -1})
}

// values returns the array of values for a scatter.
func (g *gridLevel) values() grid {
	return grid{array: g.Values, layout: g.Part.Layout, colour: -1}
}
