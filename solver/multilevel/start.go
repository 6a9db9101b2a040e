package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// guarded are the stages that keep the full multigrid start of a grid only if its residual
// is not larger than that of 0 between the obstacles. Where the grid is cut the totals
// decide, so that all peers do the same.
func (m *multigrid) guarded(out []stage, kind method.Kind, f *gridLevel) []stage {
	refer := f.compute(nil, func(b kernel.Box, _ int) { f.SetReference(b) })
	norms := make([]kernel.Norm, 1+pieces(refer.steps))
	gauge := f.compute(nil, func(b kernel.Box, i int) { f.Sweep.Residual(&norms[i], f.Values, b) })
	take := func() (sum kernel.Sum) {
		for i := range norms {
			sum.Merge(&norms[i].Squares)
			norms[i].Reset()
		}
		return sum
	}
	if kind == method.ReferenceStart {
		out = append(out, refer)
		for _, x := range f.faces {
			if x != nil {
				out = bring(out, x)
			}
		}
		return append(out, gauge, stage{kind: stageDo, do: func() { m.before = take() }})
	}
	total := &m.g.total
	back := func(before, after float64) {
		if !(after <= before) {
			f.SetReference(f.own)
		}
	}
	if out = append(out, gauge); f.faces[0] == nil {
		return append(out, stage{kind: stageDo, do: func() {
			after := take()
			back(m.before.Float64(), after.Float64())
		}})
	}
	out = append(out, stage{kind: stageDo, do: func() {
		total.sums[0], total.sums[1] = m.before, take()
		total.give(2)
	}}, stage{kind: stageTotal}, stage{kind: stageDo, do: func() { back(total.values[0], total.values[1]) }})
	return bring(out, f.all...)
}

// afresh is a cycle that begins with the reference vector, whatever there was.
func (m *multigrid) afresh() []stage {
	again := func() { m.fail(m.block.FillReference(m.u)) }
	if m.shared() && m.plan.gathered == 0 { // the root has all values, and its cycle scatters them
		if again = func() {}; m.root() {
			f := m.whole[0]
			again = func() { f.SetReference(f.own) }
		}
	}
	return append([]stage{{kind: stageDo, do: again}}, m.cycle...)
}
