package method

import (
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
	sweep, err := s.sweep(o, 1/largestDiagonal(s.Operator))
	if err != nil {
		return nil, err
	}
	r := &richardson{layout: s.Layout, sweep: sweep, parallel: newParallelFor(o.Executor, s.Layout.Dim),
		next: make([]float64, s.Layout.Len())}
	r.relax = func(_ int, b kernel.Box) { r.sweep.Relax(r.next, r.values, r.values, b) }
	r.copyBack = func(_ int, b kernel.Box) { copyPoints(r.layout, r.values, r.next, b) }
	return r, nil
}

func (r *richardson) Name() string            { return NameRichardson }
func (r *richardson) Start([]float64) float64 { return 0 }
func (r *richardson) Changed()                {}
func (r *richardson) Describe() string        { return "" }
func (r *richardson) Bytes() int              { return 8 * len(r.next) }

// Cycle is one sweep.
func (r *richardson) Cycle(u []float64) float64 {
	r.values = u
	r.parallel.run(r.layout.Interior(), r.relax)
	r.parallel.run(r.layout.Interior(), r.copyBack)
	return 1
}

func largestDiagonal(op kernel.Operator) float64 {
	switch op.Form {
	case kernel.Isotropic:
		return op.Diag
	case kernel.Constant:
		return op.Values[kernel.Center]
	}
	most := 0.0
	for _, v := range op.Arrays[kernel.Center] {
		most = max(most, v)
	}
	return most
}

func (s *System) sweep(o Options, step float64) (*kernel.Sweep, error) {
	return kernel.New(kernel.Config{
		Layout: s.Layout, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper,
		Step: step, Parity: s.Parity, Kernel: o.Kernel,
	})
}
