package verify

import (
	"cmp"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// RoundingLevel returns the relative residual at which every method stagnates by rounding near an assembled vector u of a
// stationary problem: a tolerance from there on can be met in double precision. It is that of iterate.Stagnation.
func RoundingLevel(p *problem.Problem, u []float64, e problem.Executor) (float64, error) {
	p, in, err := p.InRange()
	if err != nil {
		return 0, err
	}
	if p.Evolution != nil || len(u) != p.Points() {
		return 0, p.Errorf("a vector of %d values for the rounding errors of a stationary problem of %d points", len(u), p.Points())
	}
	j := evaluator{p: p, units: in, u: in.Scaled(u), quick: true}
	boxes := j.boxes()
	norms, sums := make([]kernel.Norm, len(boxes)), make([]kernel.Sum, len(boxes))
	err = j.eachChunk(cmp.Or[problem.Executor](e, problem.Sequential{}), boxes, func(i int, w *chunk) error {
		b := &w.Discretization
		w.sweep.Residual(&norms[i], w.v, b.Layout.Interior())
		j.fill(b, w.v)
		sums[i] = b.Magnitudes(w.v, b.Layout.Interior())
		return nil
	})
	for i := range boxes[1:] {
		norms[0].Merge(&norms[i+1])
		sums[0].Merge(&sums[i+1])
	}
	return iterate.RoundingLevel(iterate.Norm(&sums[0])) / in.Reference(norms[0].L2()), err
}
