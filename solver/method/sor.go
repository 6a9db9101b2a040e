package method

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// SOR is red-black projected successive over-relaxation.
type SOR struct {
	layout kernel.Layout
	sweep  *kernel.Sweep
	exec   kernel.Executor
	omega  float64
}

// NewSOR makes the solver.
func NewSOR(s System, o Options) (*SOR, error) {
	sweep, err := s.sweep(o, 1)
	if err != nil {
		return nil, err
	}
	r := &SOR{layout: s.Layout, sweep: sweep, exec: o.Executor, omega: o.Omega}
	if r.omega == 0 {
		r.omega = 1
	}
	if small(s.Layout) {
		r.exec = kernel.Sequential{}
	}
	return r, nil
}

// Name is "sor".
func (s *SOR) Name() string { return NameSOR }

// Start does nothing.
func (s *SOR) Start([]float64) float64 { return 0 }

// Cycle is one sweep, red and black.
func (s *SOR) Cycle(u []float64) float64 {
	s.sweep.RedBlack(u, s.omega, 1, s.exec)
	return 1
}

// Changed does nothing: what was observed of the rate still holds.
func (s *SOR) Changed() {}

// Describe tells the factor.
func (s *SOR) Describe() string { return fmt.Sprintf("ω = %.4g", s.omega) }

// Bytes is 0: values are relaxed in place.
func (s *SOR) Bytes() int { return 0 }
