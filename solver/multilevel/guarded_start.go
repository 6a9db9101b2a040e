package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// guardedStart appends the stages that keep the full multigrid start of a grid only if its residual does not
// exceed that of 0 projected between the obstacles. On a distributed grid a reduction decides, so that all
// peers agree.
func (m *multigrid) guardedStart(out []stage, kind method.Kind, f *gridLevel) []stage {
	setReference := f.compute(nil, func(b kernel.Box, _ int) { f.SetReference(b) })
	norms := make([]kernel.Norm, 1+pieces(setReference.steps))
	residual := f.compute(nil, func(b kernel.Box, i int) { f.Sweep.Residual(&norms[i], f.Values, b) })
	if kind == method.ReferenceStart {
		out = append(out, setReference)
		for _, x := range f.faces {
			if x != nil {
				out = exchangeStages(out, x)
			}
		}
		return append(out, residual, stage{kind: stageDo, do: func() { m.referenceSquares = method.TakeSquares(norms) }})
	}
	total := &m.peer.allReduce
	revert := func(before, after float64) {
		if !(after <= before) {
			f.SetReference(f.own)
		}
	}
	if out = append(out, residual); f.faces[0] == nil {
		return append(out, stage{kind: stageDo, do: func() {
			after := method.TakeSquares(norms)
			revert(m.referenceSquares.Float64(), after.Float64())
		}})
	}
	out = append(out, stage{kind: stageDo, do: func() {
		total.sums[0], total.sums[1] = m.referenceSquares, method.TakeSquares(norms)
		total.contribute(2)
	}}, stage{kind: stageReduce}, stage{kind: stageDo, do: func() { revert(total.values[0], total.values[1]) }})
	return exchangeStages(out, f.all...)
}

// restartStages returns a cycle that begins with the reference vector.
func (m *multigrid) restartStages() []stage {
	again := func() { m.fail(m.block.FillReference(m.u)) }
	if m.distributed() && m.plan.gathered == 0 { // the root has all values, and its cycle scatters them
		if again = func() {}; m.root() {
			f := m.rootLevels[0]
			again = func() { f.SetReference(f.own) }
		}
	}
	return append([]stage{{kind: stageDo, do: again}}, m.cycle...)
}
