package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ownBlock is a peer's block of grid 0 with its values. It contains the peer's box, and for multigrid the points
// around it that restriction reads.
type ownBlock struct {
	peer          *peer
	block         *problem.Discretization
	own           kernel.Box // the peer's box in the block
	u             []float64
	sweep         *kernel.Sweep
	norms         []kernel.Norm // one per chunk
	residualStage stage
	atReference   bool // the values are the reference vector, whose residual is known
}

func newOwnBlock(g *peer, window problem.Box) (*ownBlock, error) {
	l, err := kernel.NewLayout(g.config.Problem.Dimension, window.Size())
	if err != nil {
		return nil, err
	}
	o := &ownBlock{
		peer:  g,
		block: &problem.Discretization{Box: window, Layout: l, Executor: g.exec, Allocate: g.config.Allocate},
		own:   g.box.From(window.Lo),
		u:     g.config.NewArray(l.Len()),
	}
	o.residualStage = stage{kind: stageCompute, steps: planParts(o.own, l.Dim, nil, false)}
	o.residualStage.runPiece = func(b kernel.Box, i int) { o.sweep.Residual(&o.norms[i], o.u, b) }
	o.norms = make([]kernel.Norm, max(pieces(o.residualStage.steps), kernel.Workers(g.exec)))
	return o, nil
}

// parity returns the colour of the block's first point in the whole grid.
func parity(window problem.Box) int { return (window.Lo[0] + window.Lo[1] + window.Lo[2]) & 1 }

// build discretizes a problem, or a time step of length dt from before, and sets the values to the reference vector.
func (o *ownBlock) build(p *problem.Problem, before []float64, dt float64) error {
	b := o.block
	if err := b.Build(p); err != nil {
		return err
	}
	if before != nil {
		b.AddPrevious(o.embed(before), dt)
	}
	var err error
	o.sweep, err = kernel.New(kernel.Config{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source, Lower: b.Lower, Upper: b.Upper,
		Step: 1, Parity: parity(b.Box),
	})
	if err != nil {
		return err
	}
	return b.FillReference(o.u)
}

// embed returns values of the own box as an array of the block. Values that are not of the own box are returned as
// they are.
func (o *ownBlock) embed(values []float64) []float64 {
	l, size := o.block.Layout, o.peer.box.Size()
	if o.own == l.Interior() || len(values) != o.own.Points() {
		return values
	}
	out := make([]float64, l.Points())
	method.CopyBox(out, method.DenseLayout(l.N), o.own, values, method.DenseLayout(size), [3]int{})
	return out
}

// copyOut writes the own box of values of the block to a dense array.
func (o *ownBlock) copyOut(dst, values []float64) {
	size := o.peer.box.Size()
	method.CopyBox(dst, method.DenseLayout(size), kernel.Box{Hi: size}, values, o.block.Layout, o.own.Lo)
}

// squares returns the squared residual that residualStage has measured.
func (o *ownBlock) squares() kernel.Sum { return method.TakeSquares(o.norms) }
