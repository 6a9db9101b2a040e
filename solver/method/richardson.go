package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// richardson is projected Richardson iteration, u ← P(u − δ·(A·u − f)), where δ is the inverse of the
// largest diagonal entry.
type richardson struct {
	layout   kernel.Layout
	sweep    *kernel.Sweep
	parallel *parallelFor
	next     []float64
	values   []float64
	relax    func(piece int, b kernel.Box)
	copyBack func(piece int, b kernel.Box)
}

func newRichardson(s System, o Options) (*richardson, error) {
	_, diagonal := diagonalRange(s.Operator)
	sweep, err := s.sweep(1 / diagonal)
	if err != nil {
		return nil, err
	}
	r := &richardson{layout: s.Layout, sweep: sweep, parallel: newParallelFor(o.Executor, s.Layout.Dim),
		next: o.array(s.Layout.Len())}
	r.relax = func(_ int, b kernel.Box) { r.sweep.Relax(r.next, r.values, r.values, b) }
	r.copyBack = func(_ int, b kernel.Box) { copyPoints(r.layout, r.values, r.next, b) }
	return r, nil
}

func (r *richardson) Name() string            { return NameRichardson }
func (r *richardson) Start([]float64) float64 { return 0 }
func (r *richardson) Changed()                {}
func (r *richardson) Describe() string        { return "" }

// Cycle is one sweep.
func (r *richardson) Cycle(u []float64) float64 {
	r.values = u
	r.parallel.run(r.layout.Interior(), r.relax)
	r.parallel.run(r.layout.Interior(), r.copyBack)
	return 1
}

// diagonalRange returns the smallest and the largest diagonal entry, NaN if any is.
func diagonalRange(op kernel.Operator) (least, most float64) {
	if op.Form != kernel.Variable {
		d := Coefficient(&op, kernel.Center, 0)
		return d, d
	}
	least = math.Inf(1)
	for _, v := range op.Arrays[kernel.Center] {
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

func (s *System) sweep(step float64) (*kernel.Sweep, error) {
	return kernel.New(kernel.Config{
		Layout: s.Layout, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper,
		Step: step, Parity: s.Parity,
	})
}
