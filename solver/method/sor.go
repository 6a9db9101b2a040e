package method

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// SOR is red-black projected successive over-relaxation (Cryer, SIAM J. Control 9, 1971),
// which for a symmetric positive definite A converges for every 0 < ω < 2. Without an ω
// of the user's, Factor finds it; the residual that it goes by is measured now and then.
type SOR struct {
	layout   kernel.Layout
	sweep    *kernel.Sweep
	exec     kernel.Executor
	parallel *parallelFor
	factor   AdaptiveOmega
	norms    []kernel.Norm
	values   []float64
	do       func(piece int, b kernel.Box)
	sweeps   int
	next     int // sweep after which the residual is measured again
}

// firstMeasure sweeps smooth what the start has of all frequencies, whose residual says
// nothing of the rate.
const firstMeasure = 12

// NewSOR makes the solver.
func NewSOR(s System, o Options) (*SOR, error) {
	sweep, err := s.sweep(o, 1)
	if err != nil {
		return nil, err
	}
	r := &SOR{layout: s.Layout, sweep: sweep, exec: o.Executor, parallel: newParallelFor(o.Executor, s.Layout.Dim), next: firstMeasure}
	if o.Executor == nil || tooSmallToShare(s.Layout) {
		r.exec = kernel.Sequential{}
	}
	omega := o.Omega
	switch {
	case omega != 0:
	case o.InitialOmega != 0:
		omega = o.InitialOmega
	case !s.Symmetric:
		omega = 1
	default:
		omega = InitialOmega(largestDiagonal(s.Operator), UnconstrainedEigenvalue(s.Layout, s.Operator))
	}
	r.factor = NewAdaptiveOmega(omega, o.Omega != 0)
	r.norms = make([]kernel.Norm, maxPieces)
	r.do = func(i int, b kernel.Box) { r.sweep.Residual(&r.norms[i], r.values, b) }
	return r, nil
}

// Name is "sor".
func (s *SOR) Name() string { return NameSOR }

// Start does nothing.
func (s *SOR) Start([]float64) float64 { return 0 }

// Cycle is one sweep, red and black, and now and then a residual.
func (s *SOR) Cycle(u []float64) float64 {
	s.sweep.RedBlack(u, s.factor.Omega(), 1, s.exec)
	if s.sweeps++; s.factor.fixed || s.sweeps < s.next {
		return 1
	}
	s.values = u
	s.parallel.run(s.layout.Interior(), s.do)
	s.factor.Observe(s.sweeps, mergeNorms(s.norms))
	s.next = s.sweeps + int(math.Ceil(max(8, 1/(2-s.factor.Omega()))))
	return 2
}

// Changed begins the observation anew: what was observed before still holds.
func (s *SOR) Changed() { s.factor.Forget() }

// Describe tells the factor.
func (s *SOR) Describe() string { return fmt.Sprintf("ω = %.4g", s.factor.Omega()) }

// Bytes is 0: values are relaxed in place.
func (s *SOR) Bytes() int { return 0 }
