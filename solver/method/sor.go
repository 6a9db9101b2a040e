package method

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// sor is red-black projected successive over-relaxation (Cryer, SIAM J. Control 9, 1971), which converges
// for a symmetric positive definite A and every 0 < ω < 2. If the user sets no ω, AdaptiveOmega selects
// it by the residual, which is measured at intervals.
type sor struct {
	layout   kernel.Layout
	sweep    *kernel.Sweep
	exec     kernel.Executor
	parallel *parallelFor
	factor   AdaptiveOmega
	norms    []kernel.Norm
	values   []float64
	do       func(piece int, b kernel.Box)
	sweeps   int
	next     int // sweep of the next residual measurement
}

// firstMeasure is the sweep of the first residual measurement. Earlier sweeps reduce high
// frequencies of the initial error, and their residuals do not show the asymptotic rate.
const firstMeasure = 12

func newSOR(s System, o Options) (*sor, error) {
	sweep, err := s.sweep(1)
	if err != nil {
		return nil, err
	}
	r := &sor{layout: s.Layout, sweep: sweep, next: firstMeasure, norms: make([]kernel.Norm, maxPieces)}
	r.parallel = newParallelFor(o.Executor, s.Layout.Dim)
	r.exec = r.parallel.executor(s.Layout)
	omega := cmp.Or(o.Omega, o.InitialOmega)
	switch {
	case omega != 0:
	case !s.Symmetric:
		omega = 1
	default:
		_, diagonal := diagonalRange(s.Operator)
		omega = InitialOmega(diagonal, UnconstrainedEigenvalue(s.Layout, s.Operator))
	}
	if r.factor = NewAdaptiveOmega(omega, o.Omega != 0); !s.Symmetric && o.Omega == 0 {
		limit, scalable := s.stableOmega()
		r.factor = NewGuardedOmega(omega, limit, scalable)
	}
	r.do = func(i int, b kernel.Box) { r.sweep.Residual(&r.norms[i], r.values, b) }
	return r, nil
}

// stableIntervals is the number of intervals per axis of the points at which the bound of ω is found.
const stableIntervals = 24

// stableOmega returns StableOmega of the block.
func (s *System) stableOmega() (omega float64, scalable bool) {
	l := s.Layout
	stride := [3]int{1, 1, 1}
	for a := range l.Dim {
		if stride[a] = (l.N[a] + stableIntervals - 1) / stableIntervals; s.Operator.Form != kernel.Variable {
			stride[a] = l.N[a]
		}
	}
	return StableOmega(l.Dim, l.N, stride, func(idx [3]int) (row [kernel.Directions]float64) {
		for k := range 1 + 2*l.Dim {
			row[k] = Coefficient(&s.Operator, k, idx[0]-1+l.N[0]*(idx[1]-1+l.N[1]*(idx[2]-1)))
		}
		return row
	})
}

func (s *sor) Name() string            { return NameSOR }
func (s *sor) Start([]float64) float64 { return 0 }
func (s *sor) Changed()                { s.factor.Forget() } // ω is kept
func (s *sor) Describe() string        { return fmt.Sprintf("ω = %.4g", s.factor.Omega()) }

// Cycle executes one red-black sweep and, at intervals, measures the residual.
func (s *sor) Cycle(u []float64) float64 {
	s.sweep.RedBlack(u, s.factor.Omega(), 1, s.exec)
	if s.sweeps++; s.factor.fixed || s.sweeps < s.next {
		return 1
	}
	s.values = u
	s.parallel.run(s.layout.Interior(), s.do)
	s.factor.Observe(s.sweeps, takeNorm(s.norms))
	s.next = s.sweeps + int(math.Ceil(max(8, 1/(2-s.factor.Omega()))))
	return 2
}
